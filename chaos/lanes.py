"""Lanes of a campaign: processes that run cases side by side, on a lab and an environment each."""

import contextlib
import multiprocessing
import os
import signal
import tempfile
import time
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import NamedTuple, Self, cast

import pytest

from berth.components.core.errors import BerthError
from berth.lab.home import LabHome
from chaos.case import Outcome, Part, chance_of
from chaos.fleet import Fleet, launched
from tests.lab.conftest import Lab, brought_up


class Result(NamedTuple):
    """Case that has been run.

    Attributes:
        number: number of the case in its part.
        outcome: what came of it.
        seconds: duration.
    """

    number: int
    outcome: Outcome
    seconds: float


def run_case(fleet: Fleet, part: Part, seed: int, number: int) -> Result:
    """Run a case of a part that is prepared; one that cannot be run has a problem."""
    began = time.monotonic()
    try:
        outcome = part.run(fleet, number, chance_of(seed, part.name, number))
    except (pytest.fail.Exception, AssertionError, OSError, KeyError, ValueError) as error:
        outcome = Outcome("not run", f"case {number}", [f"could not be run: {error}"[:1500]])
    return Result(number, outcome, time.monotonic() - began)


class Lanes:
    """Lanes that start with the `with` statement; at its end they take their labs down.

    Args:
        count: number of lanes.
        lab: folder of a lab to use, which stays, for one lane; by default a new lab for each lane.
    """

    def __init__(self, count: int, lab: Path | None = None) -> None:
        self._count = count
        self._lab = lab
        self._processes: list[BaseProcess] = []
        self._starting: list[Connection] = []
        self._idle: list[Connection] = []

    def __enter__(self) -> Self:
        context = multiprocessing.get_context("spawn")
        for number in range(self._count):
            ours, theirs = context.Pipe()
            process = context.Process(target=_lane, args=(theirs, self._lab), name=f"lane-{number}")
            process.start()
            theirs.close()
            self._processes.append(process)
            self._starting.append(ours)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            # A lane that waits for a case takes it as the end.
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid or 0, signal.SIGINT)
        for process in self._processes:
            process.join()

    def run(self, part: Part, seed: int, numbers: Iterable[int]) -> Iterator[Result]:
        """Yield the results of a part's cases as they come; a free lane takes the next number.

        Raises:
            BerthError: a lane ended by itself.
        """
        left = iter(numbers)
        working: list[Connection] = []
        while True:
            while self._idle and (number := next(left, None)) is not None:
                working.append(self._idle.pop())
                working[-1].send((part, seed, number))
            if self._idle and not working:
                return
            for ready in wait([*working, *self._starting]):
                connection = cast(Connection, ready)
                try:
                    result = connection.recv()
                except EOFError:
                    raise BerthError(
                        "a lane of the campaign has ended; its output above says why"
                    ) from None
                if connection in working:
                    working.remove(connection)
                    yield result
                else:
                    self._starting.remove(connection)
                self._idle.append(connection)


def _lane(connection: Connection, lab: Path | None) -> None:
    """Bring up a lab and an environment, and run cases until the campaign's end."""
    # Ctrl-C reaches the campaign, which interrupts its lanes once.
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    prepared = ""
    # Sockets need short paths.
    with (
        contextlib.suppress(KeyboardInterrupt, EOFError, BrokenPipeError),
        tempfile.TemporaryDirectory(prefix="chaos-") as folder,
        lab_of(Path(folder), lab) as ready,
        launched(Path(folder), ready) as fleet,
        contextlib.ExitStack() as afterward,
    ):
        if lab is not None:
            afterward.callback(fleet.remove)
        connection.send(None)
        while True:
            part, seed, number = connection.recv()
            if part.name != prepared:
                here = part
                prepared = part.name
                here.prepare(fleet)
            connection.send(run_case(fleet, here, seed, number))


@contextlib.contextmanager
def lab_of(folder: Path, existing: Path | None) -> Iterator[Lab]:
    """Yield the lab that a folder has, or a new one for the lane."""
    if existing is None:
        with brought_up(folder / "lab") as lab:
            yield lab
        return
    lab = Lab(LabHome(existing.resolve()))
    lab.up()
    yield lab

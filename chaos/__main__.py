"""`make chaos`: campaign of faults against berth on a lab of its own.

Every case is chosen by the seed, the part's name and the case's number, so that a failure can be
repeated: `make chaos SEED=… PART=… CASE=…`. Results are in build/chaos.json; `--record FILE`
writes the parts that ran into a file, from which docs/reliability.md is drawn. A full campaign
takes hours: `--resume` goes on after the cases that the file has.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from rich.console import Console

from berth.lab.home import CLONE, Home
from chaos.answers import Answers, Outages
from chaos.case import Outcome, Part, chance_of
from chaos.fleet import Fleet, launched
from chaos.interrupts import Interrupts
from chaos.kills import Kills
from chaos.large import LargeUpdates
from chaos.races import Races
from chaos.record import Results, joined, recorded, results_of, write
from chaos.restarts import BERTHS, Restarts
from tests.lab.conftest import Lab, brought_up

PARTS: tuple[type[Part], ...] = (Interrupts, Answers, Outages, Kills, LargeUpdates, Races, Restarts)
INTERRUPTED = 130
RESULTS = CLONE / "build" / "chaos.json"

err = Console(stderr=True, highlight=False, soft_wrap=True)


def campaign(fleet: Fleet, part: Part, seed: int, numbers: Sequence[int]) -> Iterator[tuple[int, Outcome, float]]:
    """Yield number, outcome and seconds of each case of a part."""
    part.prepare(fleet)
    for number in numbers:
        began = time.monotonic()
        try:
            outcome = part.run(fleet, number, chance_of(seed, part.name, number))
        except (pytest.fail.Exception, AssertionError, OSError, KeyError, ValueError) as error:
            outcome = Outcome("not run", f"case {number}", [f"could not be run: {error}"[:1500]])
        yield number, outcome, time.monotonic() - began


def show(part: Part, total: int, index: int, number: int, outcome: Outcome, seconds: float) -> None:
    """Print one line for a case, and its problems."""
    verdict = "[bold red]✗[/]" if outcome.problems else "[green]✓[/]"
    err.print(f"{verdict} {part.name} {index}/{total} ", end="")
    err.print(f"(case {number}) {outcome.what} {outcome.facts or ''} ({seconds:.1f} s)", markup=False)
    for problem in outcome.problems:
        err.print(f"    {problem}", markup=False, style="red")


def chosen(options: argparse.Namespace) -> list[type[Part]]:
    """Return the parts that the command line asks for."""
    return [part for part in PARTS if not options.part or part.name in options.part]


def continued(options: argparse.Namespace) -> dict[str, Results]:
    """Return the recorded figures that this run goes on with; exit with 2 if it cannot."""
    if not options.resume:
        return {}
    if options.record is None or options.case is not None:
        err.print("--resume goes on with the cases of a file: give --record FILE, and no --case")
        raise SystemExit(2)
    names = {part.name for part in chosen(options)}
    earlier = {name: figures for name, figures in recorded(options.record).items() if name in names}
    for name, figures in earlier.items():
        if figures["seed"] != options.seed:
            err.print(
                f"{options.record} has cases of {name} with seed {figures['seed']}, not {options.seed}: give"
                f" --seed {figures['seed']}, or replace them without --resume"
            )
            raise SystemExit(2)
    return earlier


def numbers_of(part: type[Part], options: argparse.Namespace, earlier: Results | None) -> list[int]:
    """Return the cases of a part to run: one, or all after those that are recorded."""
    if options.case is not None:
        return [options.case]
    return list(range(earlier["cases"] if earlier else 0, options.cases or part.cases))


def run(fleet: Fleet, options: argparse.Namespace, results: dict[str, Results]) -> None:
    """Run the chosen parts; the results are there also if it is interrupted.

    Args:
        fleet: what is disturbed.
        options: the command line.
        results: figures by part; at the beginning those that are continued.
    """
    for kind in chosen(options):
        part = Restarts(options.berths) if kind is Restarts else kind()
        earlier = results.get(part.name)
        numbers = numbers_of(kind, options, earlier)
        if not numbers:
            err.print(f"[bold]{part.name}[/]: all cases have been run")
            continue
        began, outcomes = time.monotonic(), list[tuple[int, Outcome, float]]()
        err.print(f"[bold]{part.name}[/]: {part.title}: {len(numbers)} cases")
        try:
            for number, outcome, seconds in campaign(fleet, part, options.seed, numbers):
                outcomes.append((number, outcome, seconds))
                show(part, len(numbers), len(outcomes), number, outcome, seconds)
                if options.minutes and time.monotonic() - began > 60 * options.minutes:
                    break
        finally:
            if outcomes:
                later = results_of(part, options.seed, outcomes)
                results[part.name] = joined(earlier, later) if earlier else later


def summarize(results: dict[str, Results]) -> int:
    """Print the figures; return 1 if one is missed."""
    missed = False
    for name, result in results.items():
        good = result["share"] >= result["bar"]
        missed = missed or not good
        verdict = "[green]✓[/]" if good else "[bold red]✗[/]"
        err.print(f"{verdict} {name}: {result['good']} of {result['cases']} good (goal: {result['bar']:.1%})")
    return 1 if missed or not results else 0


@contextlib.contextmanager
def lab_of(folder: Path, existing: Path | None) -> Iterator[Lab]:
    """Yield the lab that a folder has, or a new one for the campaign."""
    if existing is None:
        with brought_up(folder / "lab") as lab:
            yield lab
        return
    lab = Lab(Home(existing.resolve()))
    lab.up()
    yield lab


def main() -> int:
    """Run the campaign; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="seed of all choices; %(default)s")
    parser.add_argument("--cases", type=int, help="number of cases of each part; by default the full campaign")
    parser.add_argument("--case", type=int, help="run this case alone")
    parser.add_argument("--part", action="append", choices=[part.name for part in PARTS], help="run this part alone")
    parser.add_argument("--berths", type=int, default=BERTHS, help="berths of the part `restarts`; %(default)s")
    parser.add_argument("--minutes", type=float, help="begin no case of a part after that time")
    parser.add_argument("--lab", type=Path, help="use this lab, which stays; by default a new one")
    parser.add_argument("--record", type=Path, help="write the figures of the parts that ran into this file, too")
    parser.add_argument("--resume", action="store_true", help="go on after the cases that the recorded file has")
    options = parser.parse_args()
    results = continued(options)
    code = INTERRUPTED
    # Sockets need short paths.
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        try:
            err.print("bringing up a lab and an environment …")
            with lab_of(Path(folder), options.lab) as lab, launched(Path(folder), lab) as fleet:
                run(fleet, options, results)
            code = 0
        except KeyboardInterrupt:
            err.print("interrupted")
    for path in filter(None, (RESULTS, options.record)):
        write(path, results)
    missed = summarize(results)
    return code or missed


if __name__ == "__main__":
    os.environ.setdefault("PULUMI_SKIP_UPDATE_CHECK", "true")
    # Ended by a program, it takes its lab down as after Ctrl-C. In a shell's background Ctrl-C is
    # ignored, and the commands under test, which cases interrupt, would inherit that.
    for interrupt in (signal.SIGINT, signal.SIGTERM):
        signal.signal(interrupt, signal.default_int_handler)
    sys.exit(main())

"""Lanes that make tools at the same time; the first failure, and Ctrl-C, stop all of them."""

from __future__ import annotations

import queue
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Sequence

    from berth.lab.toolchain.tools import Tool


@dataclass
class Lane:
    """Thread that takes one tool after the other from a queue, which lanes can share.

    Attributes:
        tools: queue of the tools.
        make: makes one of them, or raises.
        after: lane whose first tool is made before this lane begins.
        quiet: whether its tools are not reported, since another lane goes on with them.
    """

    tools: deque[Tool]
    make: Callable[[Tool], None]
    after: Lane | None = None
    quiet: bool = False
    begun: threading.Event = field(default_factory=threading.Event)

    def work(self, report: Callable[[str, Tool], None], stopped: threading.Event) -> None:
        """Make tools until the queue is empty or the crew is stopped."""
        try:
            if self.after is not None:
                self.after.begun.wait()
            while not stopped.is_set():
                try:
                    tool = self.tools.popleft()
                except IndexError:
                    return
                report("started", tool)
                self.make(tool)
                report("finished", tool)
                self.begun.set()
        finally:
            self.begun.set()


def run(lanes: Sequence[Lane], stop: Callable[[], None], report: Callable[[str, Tool], None]) -> None:
    """Run lanes until all of them have ended; raise the first error of any.

    Args:
        lanes: lanes, each in a thread.
        stop: ends the programs that lanes wait for; called after an error, and after Ctrl-C.
        report: is called here, in this thread, when a tool is `started` and `finished`.
    """
    events: queue.SimpleQueue[tuple[str, Tool] | BaseException | None] = queue.SimpleQueue()
    stopped = threading.Event()

    def work(lane: Lane) -> None:
        try:
            lane.work(lambda what, tool: None if lane.quiet else events.put((what, tool)), stopped)
        except BaseException as error:  # noqa: BLE001 - raised again below, in the caller's thread
            events.put(error)
        finally:
            events.put(None)

    threads = [threading.Thread(target=work, args=(lane,), daemon=True) for lane in lanes]
    working = len(threads)
    complete = False
    try:
        for thread in threads:
            thread.start()
        while working:
            event = events.get()
            if isinstance(event, BaseException):
                raise event
            if event is None:
                working -= 1
            else:
                report(*event)
        complete = True
    finally:
        stopped.set()
        if not complete:
            stop()
        for thread in threads:
            if thread.is_alive():
                thread.join()

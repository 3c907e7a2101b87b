"""`make chaos`: campaign of faults against berth on a lab of its own.

Every case is chosen by the seed, the part's name and the case's number, so that a failure can be
repeated: `make chaos SEED=… PART=… CASE=…`. Results are in build/chaos.json; `--record FILE`
writes the parts that ran into a file, from which docs/proven.md has its figures. A full campaign
takes hours: `--resume` goes on after the cases that the file has.
"""

import argparse
import itertools
import math
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from berth.components.core.errors import BerthError
from berth.components.core.words import counted
from berth.lab.home import CLONE
from chaos.answers import Answers, Outages
from chaos.case import Part
from chaos.interrupts import Interrupts
from chaos.kills import Kills
from chaos.lanes import Lanes, Result
from chaos.large import LargeUpdates
from chaos.races import Races
from chaos.record import Figures, continued, err, figures_of, joined, summarize, write
from chaos.releases import Releases
from chaos.restarts import Restarts
from chaos.upgrades import Upgrades

PARTS: tuple[type[Part], ...] = (
    Interrupts,
    Answers,
    Outages,
    Kills,
    Releases,
    LargeUpdates,
    Races,
    Restarts,
    Upgrades,
)
_OF_MANY = (Restarts, Upgrades)
INTERRUPTED = 130
RESULTS = CLONE / "build" / "chaos.json"


def show(part: Part, total: int, index: int, result: Result) -> None:
    """Print one line for a case, and its problems."""
    number, outcome, seconds = result
    verdict = "[bold red]✗[/]" if outcome.problems else "[green]✓[/]"
    err.print(f"{verdict} {part.name} {index}/{total} ", end="")
    err.print(
        f"(case {number}) {outcome.what} {outcome.facts or ''} ({seconds:.1f} s)", markup=False
    )
    for problem in outcome.problems:
        err.print(f"    {problem}", markup=False, style="red")


def chosen(options: argparse.Namespace) -> list[type[Part]]:
    """Return the parts that the command line asks for."""
    return [part for part in PARTS if not options.part or part.name in options.part]


def numbers_of(part: type[Part], options: argparse.Namespace, earlier: Figures | None) -> list[int]:
    """Return the cases of a part to run: one, or all after those that are recorded."""
    if options.case is not None:
        return [options.case]
    return list(range(earlier["cases"] if earlier else 0, options.cases or part.cases))


def begun_before(deadline: float, numbers: Sequence[int]) -> Iterator[int]:
    """Yield numbers until a monotonic time."""
    for number in numbers:
        if time.monotonic() > deadline:
            return
        yield number


def without_gaps(results: Sequence[Result], numbers: Sequence[int]) -> list[Result]:
    """Return the results up to the first missing case, in order: a later run begins there."""
    by_number = {result.number: result for result in results}
    return [by_number[number] for number in itertools.takewhile(by_number.__contains__, numbers)]


def run(lanes: Lanes, options: argparse.Namespace, figures: dict[str, Figures]) -> None:
    """Run the chosen parts; the figures are there also if it is interrupted.

    Args:
        lanes: where cases run.
        options: the command line.
        figures: figures by part; at the beginning those that are continued.
    """
    for kind in chosen(options):
        part = kind(options.berths) if options.berths and issubclass(kind, _OF_MANY) else kind()
        earlier = figures.get(part.name)
        numbers = numbers_of(kind, options, earlier)
        if not numbers:
            err.print(f"[bold]{part.name}[/]: all cases have been run")
            continue
        results: list[Result] = []
        deadline = time.monotonic() + 60 * (options.minutes or math.inf)
        err.print(f"[bold]{part.name}[/]: {part.title}: {len(numbers)} cases")
        try:
            for result in lanes.run(part, options.seed, begun_before(deadline, numbers)):
                results.append(result)
                show(part, len(numbers), len(results), result)
        finally:
            if complete := without_gaps(results, numbers):
                later = figures_of(part, options.seed, complete)
                figures[part.name] = joined(earlier, later) if earlier else later


def main() -> int:
    """Run the campaign; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="seed of all choices; %(default)s")
    parser.add_argument(
        "--cases", type=int, help="number of cases of each part; by default the full campaign"
    )
    parser.add_argument("--case", type=int, help="run this case alone")
    parser.add_argument(
        "--part", action="append", choices=[part.name for part in PARTS], help="run this part alone"
    )
    parser.add_argument("--berths", type=int, help="berths of the parts `restarts` and `upgrades`")
    parser.add_argument("--minutes", type=float, help="begin no case of a part after that time")
    parser.add_argument("--lab", type=Path, help="use this lab, which stays; by default a new one")
    parser.add_argument(
        "--record", type=Path, help="write the figures of the parts that ran into this file, too"
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on after the cases that the recorded file has"
    )
    parser.add_argument(
        "--jobs", type=int, default=1, help="labs side by side, of 1.5 GiB each; %(default)s"
    )
    options = parser.parse_args()
    if options.jobs < 1 or (options.lab and options.jobs > 1):
        parser.error(
            "--jobs is a number from 1 on, and 1 with --lab: cases of one lab would disturb each"
            " other"
        )
    if options.resume and options.case is not None:
        parser.error("--resume goes on with the cases of a file: give no --case")
    figures = continued([part.name for part in chosen(options)], options)
    code = INTERRUPTED
    try:
        err.print(f"bringing up {counted(options.jobs, 'lab')}, with an environment …")
        with Lanes(options.jobs, options.lab) as lanes:
            run(lanes, options, figures)
        code = 0
    except KeyboardInterrupt:
        err.print("interrupted")
    except BerthError as error:
        err.print(f"error: {error}", markup=False)
    for path in filter(None, (RESULTS, options.record)):
        write(path, figures)
    missed = summarize(figures)
    return code or missed


if __name__ == "__main__":
    os.environ.setdefault("PULUMI_SKIP_UPDATE_CHECK", "true")
    # Ended by a program, it takes its lab down as after Ctrl-C. In a shell's background Ctrl-C is
    # ignored, and the commands under test, which cases interrupt, would inherit that.
    for interrupt in (signal.SIGINT, signal.SIGTERM):
        signal.signal(interrupt, signal.default_int_handler)
    sys.exit(main())

"""`make chaos`: campaign of faults against berth on a lab of its own.

Every case is chosen by the seed, the part's name and the case's number, so that a failure can be
repeated: `make chaos SEED=… PART=… CASE=…`. Results are in build/chaos.json; `--record FILE`
merges the parts that ran into a file, from which docs/reliability.md is drawn.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from berth.lab.home import CLONE, Home
from chaos.answers import Answers, Outages
from chaos.case import Outcome, Part, chance_of
from chaos.fleet import Fleet, launched
from chaos.interrupts import Interrupts
from chaos.kills import Kills
from chaos.races import Races
from chaos.restarts import BERTHS, Restarts
from tests.lab.conftest import Lab, brought_up

PARTS: tuple[type[Part], ...] = (Interrupts, Answers, Outages, Kills, Races, Restarts)
INTERRUPTED = 130
RESULTS = CLONE / "build" / "chaos.json"

err = Console(stderr=True, highlight=False, soft_wrap=True)

_COUNTS = ("cases", "disturbed", "good", "succeeded")

Results = dict[str, Any]


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


def results_of(part: Part, seed: int, outcomes: Sequence[tuple[int, Outcome, float]]) -> Results:
    """Return the figures of a part."""
    groups: dict[str, dict[str, Any]] = {}
    for _, outcome, seconds in outcomes:
        group = groups.setdefault(outcome.group, dict.fromkeys(_COUNTS, 0) | {"longest": 0.0})
        group["cases"] += 1
        group["disturbed"] += outcome.facts.get("disturbed", True)
        group["good"] += not outcome.problems
        group["succeeded"] += outcome.facts.get("succeeded", not outcome.problems)
        group["longest"] = max(group["longest"], outcome.facts.get("seconds", round(seconds, 1)))
    good = sum(not outcome.problems for _, outcome, _ in outcomes)
    return {
        "title": part.title,
        "good_case": part.good,
        "bar": part.bar,
        "full": part.cases,
        "seed": seed,
        "date": f"{datetime.now(tz=UTC):%Y-%m-%d}",
        "cases": len(outcomes),
        "good": good,
        "share": good / len(outcomes) if outcomes else 0.0,
        "seconds": round(sum(seconds for _, _, seconds in outcomes)),
        "groups": dict(sorted(groups.items())),
        "failed": [{"number": number, **asdict(outcome)} for number, outcome, _ in outcomes if outcome.problems],
    }


def show(part: Part, total: int, index: int, number: int, outcome: Outcome, seconds: float) -> None:
    """Print one line for a case, and its problems."""
    verdict = "[bold red]✗[/]" if outcome.problems else "[green]✓[/]"
    err.print(f"{verdict} {part.name} {index}/{total} ", end="")
    err.print(f"(case {number}) {outcome.what} {outcome.facts or ''} ({seconds:.1f} s)", markup=False)
    for problem in outcome.problems:
        err.print(f"    {problem}", markup=False, style="red")


def run(fleet: Fleet, options: argparse.Namespace, results: dict[str, Results]) -> None:
    """Run the chosen parts; the results are there also if it is interrupted."""
    for kind in PARTS:
        if options.part and kind.name not in options.part:
            continue
        part = Restarts(options.berths) if kind is Restarts else kind()
        numbers = [options.case] if options.case is not None else list(range(options.cases or part.cases))
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
                results[part.name] = results_of(part, options.seed, outcomes)


def write(path: Path, results: dict[str, Results]) -> None:
    """Merge results into a file: a part that ran replaces its earlier result."""
    known: dict[str, Results] = {}
    with contextlib.suppress(OSError, ValueError):
        known = json.loads(path.read_text(encoding="utf-8"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(known | results, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


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
    parser.add_argument("--record", type=Path, help="merge the results into this file, beside build/chaos.json")
    options = parser.parse_args()
    results: dict[str, Results] = {}
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
    sys.exit(main())

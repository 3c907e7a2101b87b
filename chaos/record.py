"""Figures of a campaign: made from its cases, joined over several runs, kept in a file."""

import argparse
import contextlib
import json
import sysconfig
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from berth.lab.home import CLONE
from chaos.case import Goal, Outcome

_COUNTS = ("cases", "disturbed", "good", "succeeded")
_DATES = " to "
_FOLDERS = (str(CLONE), sysconfig.get_path("stdlib"), tempfile.gettempdir(), str(Path.home()))
"""Folders of this machine, which say nothing to a reader of the figures."""

Figures = dict[str, Any]
"""Figures of a part."""

err = Console(stderr=True, highlight=False, soft_wrap=True)


def figures_of(part: Goal, seed: int, outcomes: Sequence[tuple[int, Outcome, float]]) -> Figures:
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
        "share": _share(good, len(outcomes)),
        "seconds": round(sum(seconds for _, _, seconds in outcomes)),
        "groups": dict(sorted(groups.items())),
        "failed": [
            {
                "number": number,
                **asdict(outcome),
                "problems": list(map(_without_folders, outcome.problems)),
            }
            for number, outcome, _ in outcomes
            if outcome.problems
        ],
    }


def _share(good: int, cases: int) -> float:
    return good / cases if cases else 1.0


def _without_folders(problem: str) -> str:
    """Return a problem's text with paths that begin in the clone or in Python's library."""
    for folder in _FOLDERS:
        problem = problem.replace(f"{folder}/", "")
    return problem


def joined(earlier: Figures, later: Figures) -> Figures:
    """Return the figures of two runs of a part, with the same seed and different cases."""
    groups = {name: dict(group) for name, group in earlier["groups"].items()}
    for name, group in later["groups"].items():
        if name not in groups:
            groups[name] = group
            continue
        for count in _COUNTS:
            groups[name][count] += group[count]
        groups[name]["longest"] = max(groups[name]["longest"], group["longest"])
    cases = earlier["cases"] + later["cases"]
    good = earlier["good"] + later["good"]
    dates = [*earlier["date"].split(_DATES), *later["date"].split(_DATES)]
    return later | {
        "date": _DATES.join(dict.fromkeys([min(dates), max(dates)])),
        "cases": cases,
        "good": good,
        "share": _share(good, cases),
        "seconds": earlier["seconds"] + later["seconds"],
        "groups": dict(sorted(groups.items())),
        "failed": [*earlier["failed"], *later["failed"]],
    }


def recorded(path: Path | None) -> dict[str, Figures]:
    """Return the figures in a file by part; none if there is no such file."""
    with contextlib.suppress(OSError, ValueError):
        found: dict[str, Figures] = json.loads(path.read_text(encoding="utf-8")) if path else {}
        return found
    return {}


def write(path: Path, results: dict[str, Figures]) -> None:
    """Write figures into a file: a part that ran replaces its earlier figures."""
    path.parent.mkdir(parents=True, exist_ok=True)
    merged = recorded(path) | results
    path.write_text(json.dumps(merged, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def continued(names: Collection[str], options: argparse.Namespace) -> dict[str, Figures]:
    """Return the recorded figures that a run goes on with; exit with 2 if it cannot."""
    if not options.resume:
        return {}
    if options.record is None:
        err.print("--resume goes on with the cases of a file: give --record FILE")
        raise SystemExit(2)
    earlier = {name: figures for name, figures in recorded(options.record).items() if name in names}
    for name, figures in earlier.items():
        if figures["seed"] != options.seed:
            err.print(
                f"{options.record} has cases of {name} with seed {figures['seed']}, not"
                f" {options.seed}: give --seed {figures['seed']}, or replace them without --resume"
            )
            raise SystemExit(2)
    return earlier


def summarize(results: dict[str, Figures]) -> int:
    """Print the figures; return 1 if one is missed."""
    missed = False
    for name, result in results.items():
        good = result["share"] >= result["bar"]
        missed = missed or not good
        verdict = "[green]✓[/]" if good else "[bold red]✗[/]"
        err.print(
            f"{verdict} {name}: {result['good']} of {result['cases']} good (goal:"
            f" {result['bar']:.1%})"
        )
    return 1 if missed or not results else 0

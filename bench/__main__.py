"""`make bench`: cost of berths as their number grows, beside the same berths without berth.

Each run of a part has a lab of its own, with real engine, API server and operator, and its figures
are in build/bench.json when it ends: a benchmark that was interrupted goes on with `PART` and `N`.
`RECORD=docs/performance.json` also merges them into the figures of docs/proven.md. Seconds of
a busy machine say little: figures are printed beside their bars, and `JUDGE=1` exits with 1 if one
is above its own.
"""

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.bars import RELEASED, measured, ratios
from bench.figures import machine, merge
from bench.fleet import err, launched
from bench.measured import BenchError
from bench.parts import PARTS
from berth.lab.home import CLONE

RESULTS = CLONE / "build" / "bench.json"
SIZES = {
    "environment": (1, 10, 100, 300),
    "bucket": (10, 100),
    "preview": (100,),
    "check": (1000,),
    "stacks": (10, 100),
    "status": (10, 100, 1000),
}
"""Numbers of engineers of each part in a full benchmark."""
SHORT = [("short", 3)]
INTERRUPTED = 130


def run(part: str, size: int) -> dict[str, Any]:
    """Run a part in a lab of its own; return its document."""
    before = machine()
    err.print(
        f"[bold]{part}[/], {size} engineers: {(PARTS[part].__doc__ or '').partition(chr(10))[0]}"
    )
    # Sockets need short paths.
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
        launched(Path(folder), size) as bench,
    ):
        PARTS[part](bench)
        return bench.run.document(before)


def show(part: str, size: int, document: dict[str, Any]) -> bool:
    """Print the figures that have a bar; return whether all are good."""
    found = list(measured(part, size, document))
    for figure in found:
        err.print(f"{'[green]✓[/]' if figure.good else '[bold red]✗[/]'} {figure}")
    return all(figure.good for figure in found)


def chosen(parts: Sequence[str], sizes: Sequence[int], *, short: bool) -> list[tuple[str, int]]:
    """Return the runs: parts in their order, small numbers of engineers first."""
    if short:
        return SHORT
    names = [part for part in SIZES if not parts or part in parts]
    return [(part, size) for part in names for size in sorted(sizes or SIZES[part])]


def main() -> int:
    """Run the benchmark; return the exit code: 1 if a run fails, or where asked a bar is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--part", action="append", choices=list(SIZES), help="run this part alone")
    parser.add_argument(
        "--size", action="append", type=int, help="number of engineers, in place of each part's own"
    )
    parser.add_argument(
        "--record", type=Path, help="merge the figures into this file, beside build/bench.json"
    )
    parser.add_argument(
        "--short", action="store_true", help="a minute's part, compared with the last release"
    )
    parser.add_argument(
        "--judge", action="store_true", help="exit with 1 if a figure is above its bar"
    )
    parser.add_argument(
        "--json", action="store_true", help="print the documents of all runs for programs"
    )
    options = parser.parse_args()
    documents: list[dict[str, Any]] = []
    failed = missed = False
    try:
        for part, size in chosen(options.part or [], options.size or [], short=options.short):
            try:
                document = run(part, size)
            except (BenchError, pytest.fail.Exception) as error:
                failed = True
                err.print(f"✗ {part}, {size} engineers: {error}", markup=False, style="red")
                continue
            documents.append({"part": part, "engineers": size, **document})
            for path in filter(None, (RESULTS, options.record)):
                merge(path, part, size, document)
            missed |= not show(part, size, document)
    except KeyboardInterrupt:
        err.print("interrupted; the runs that ended are in build/bench.json")
        return INTERRUPTED
    if options.json:
        sys.stdout.write(json.dumps(documents, indent=2, ensure_ascii=False) + "\n")
    if options.short:
        for document in documents:
            err.print(f"ratios for {RELEASED.name}: {json.dumps(ratios(document))}", markup=False)
    return 1 if failed or (options.judge and missed) else 0


if __name__ == "__main__":
    # A shell that starts it in the background ignores Ctrl-C for it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main())

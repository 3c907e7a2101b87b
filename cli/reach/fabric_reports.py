"""Reports of fabric proofs on this machine, for the page of `berth status --html`."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path("build") / "fabric-proof"
"""Folder of the reports, unless `--output` names another one."""


@dataclass(frozen=True)
class FabricReport:
    """Report of the newest proof of a RayCluster."""

    cluster: str
    run: str
    counts: dict[str, int]
    """Number of checks by verdict."""
    link: str
    """Path of the report, from the folder of the page."""


def newest(environment: str, seen_from: Path) -> list[FabricReport]:
    """Return the newest report of each RayCluster of an environment, by name."""
    found = {report.cluster: report for report in _all(environment, seen_from)}
    return [found[name] for name in sorted(found)]


def _all(environment: str, seen_from: Path) -> Iterator[FabricReport]:
    """Yield all readable reports, the newest last."""
    for path in sorted(FOLDER.glob("*/evidence.json"), key=lambda path: path.stat().st_mtime):
        report = path.with_name("report.html")
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content["environment"] == environment and report.exists():
                link = Path(os.path.relpath(report, seen_from)).as_posix()
                yield FabricReport(str(content["cluster"]), str(content["run"]), dict(content["counts"]), link)
        except (OSError, ValueError, KeyError, TypeError):
            continue  # not written by this version of berth

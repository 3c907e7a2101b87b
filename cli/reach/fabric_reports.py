"""Reports of fabric proofs on this machine, for the page of `berth status --html`."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path("build") / "fabric-proof"
"""Folder of the reports, unless `--output` names another one."""


@dataclass(frozen=True)
class FabricReport:
    """Report of one proof, on this machine."""

    cluster: str
    """Name of the RayCluster."""
    run: str
    counts: Mapping[str, int]
    """Numbers of checks by verdict."""
    link: str
    """Path of the report from the folder of the page."""


def newest_reports(environment: str, seen_from: Path) -> list[FabricReport]:
    """Return the newest report of each RayCluster of an environment, by name.

    Args:
        environment: name of the environment.
        seen_from: folder of the page with the links to the reports.
    """
    newest: dict[str, FabricReport] = {}
    for path in sorted(FOLDER.glob("*/evidence.json"), key=lambda path: path.stat().st_mtime):
        report = path.with_name("report.html")
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content["environment"] == environment and report.exists():
                link = Path(os.path.relpath(report, seen_from)).as_posix()
                cluster = str(content["cluster"])
                counts = dict(content["counts"])
                newest[cluster] = FabricReport(cluster, str(content["run"]), counts, link)
        except (OSError, ValueError, KeyError, TypeError):
            continue  # not written by this version of berth
    return [newest[cluster] for cluster in sorted(newest)]

"""Reports of fabric proofs on this machine, for the page of `berth status --html`."""

import json
import os
from pathlib import Path
from typing import Any

FOLDER = Path("build") / "fabric-proof"
"""Folder of the reports, unless `--output` names another one."""


def newest_reports(environment: str, seen_from: Path) -> list[dict[str, Any]]:
    """Return the newest report of each RayCluster of an environment, by name.

    A report has `cluster`, `run`, `counts` of checks by verdict, and `link`, its path from the
    folder of the page.
    """
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(FOLDER.glob("*/evidence.json"), key=lambda path: path.stat().st_mtime):
        report = path.with_name("report.html")
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content["environment"] == environment and report.exists():
                facts = {key: content[key] for key in ("cluster", "run", "counts")}
                found[facts["cluster"]] = {
                    **facts,
                    "link": Path(os.path.relpath(report, seen_from)).as_posix(),
                }
        except (OSError, ValueError, KeyError, TypeError):
            continue  # not written by this version of berth
    return [found[name] for name in sorted(found)]

"""`make states`: states of all shipped stacks, for updates by later versions of berth.

Each stack comes up in a lab, unchanged. states/VERSION/ gets NAME.json.gz, which is `pulumi stack
export` with secrets under the lab's public passphrase, and NAME.yaml, the stack's file.
"""

import gzip
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from berth.components.hardware.versions import CHART_MIRROR
from tests.lab.conftest import Lab, brought_up
from tests.lab.database import Database
from tests.lab.project import CLONE, Project

STATES = Path(__file__).parent / "states"
SHIPPED = {
    file.stem.removeprefix("Pulumi."): file
    for file in sorted((CLONE / "stacks").rglob("Pulumi.*.yaml"))
}
"""Files of stacks by name."""


def project_of(folder: Path, lab: Lab) -> Project:
    """Project for shipped stacks, in an empty lab."""
    lab.forget()
    project = Project.make(folder, lab)
    shutil.copytree(CLONE / "stacks/gallery", project.folder / "stacks/gallery")
    (project.folder / ".lab").symlink_to(lab.home.root)
    return project


def record(project: Project, stack: str, target: Path) -> None:
    """Bring a stack up, and keep its state and file."""
    project.up(stack)
    state = project.run("pulumi", "stack", "export", "-s", stack).stdout
    state = state.replace(project.lab.env[CHART_MIRROR], CHART_MIRROR)
    (target / f"{stack}.json.gz").write_bytes(gzip.compress(state.encode(), mtime=0))
    shutil.copy(project.folder / "stacks" / f"Pulumi.{stack}.yaml", target / f"{stack}.yaml")


def main(version: str) -> None:
    """Record all stacks, and an engineer's own stack on the lab's."""
    target = STATES / version
    target.mkdir()
    with tempfile.TemporaryDirectory() as folder, brought_up(Path(folder) / "lab") as started:
        lab = replace(started, database=Database(started.home))
        for stack, file in SHIPPED.items():
            project = project_of(Path(folder) / stack, lab)
            shutil.copy(file, project.folder / "stacks")
            record(project, stack, target)
            if stack == "lab":
                project.write("alice", engineer={"environment": "lab", "workers": 2})
                record(project, "alice", target)


if __name__ == "__main__":
    main(*sys.argv[1:])

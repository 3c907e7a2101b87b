"""Berth on the real node: its settings, and its way up from whatever state the lab is in."""

from pathlib import Path

from berth.lab import lifecycle, update
from berth.lab.home import LabHome
from berth.lab.progress import LabProgress
from berth.lab.realnode import lifecycle as realnode
from berth.lab.realnode import requirements
from berth.stacks.files import stack_file

STACK = "real"
_SETTINGS = Path(__file__).with_name(f"Pulumi.{STACK}.yaml")


def provide_settings() -> None:
    """Write the berth's settings to the project's stacks, unless the file is there."""
    path = stack_file.stack_path(STACK)
    if not path.exists():
        path.write_bytes(_SETTINGS.read_bytes())


def bring_up(home: LabHome, progress: LabProgress, *, with_berth: bool) -> None:
    """Bring a lab up, join its real node, and bring a berth up on the node."""
    requirements.require(home)
    running = lifecycle.up(home, progress)
    realnode.prepare(home, progress)
    if running.forgotten or not realnode.has_pool(home):
        update.update(home, progress, refresh=running.forgotten)
    realnode.up(home, running.plane, progress)
    if with_berth:
        provide_settings()
        update.update(home, progress, stack=STACK, refresh=True)
        progress.say(f"`berth submit {STACK} -- python hello.py` runs a program on its workers")
        progress.say(f"`berth verify fabric -s {STACK}` proves that they talk over their NICs")

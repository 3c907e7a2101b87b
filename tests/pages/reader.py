"""A reader of the pages, with a checkout and a shell, and the tests' way to be one."""

import contextlib
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.pages.checkout import copy, do, install, readers_environment
from tests.pages.page import CLONE, Block, blocks
from tests.pages.shell import opened

KUBECONFIG = Path.home() / ".kube" / "config"
_TEARDOWN = "make lab-down\n"


@dataclass(frozen=True)
class Reader:
    """A reader with a checkout.

    Attributes:
        folder: the checkout.
        environment: variables of the reader's shell.
        kubeconfig: the reader's own kubeconfig before.
    """

    folder: Path
    environment: dict[str, str]
    kubeconfig: str

    def does(self, blocks: list[Block]) -> list[str]:
        """Do blocks in a shell of their own; return what the terminal showed."""
        with opened(self.folder, self.environment) as shell:
            ran = [(block, do(shell, self.folder, block)) for block in blocks]
        shown = [one.output for _, one in ran if one]
        assert shown
        for block, one in ran:
            is_a_program_that_fails = bool(block.marks.exits) and block.text.startswith(
                "berth submit"
            )
            assert one is None or is_a_program_that_fails or "Traceback" not in one.output, (
                one.output
            )
        return shown

    def stacks(self) -> list[str]:
        """Names of the files of the checkout's stacks."""
        return sorted(path.name for path in (self.folder / "stacks").glob("Pulumi.*.yaml"))


@contextlib.contextmanager
def arrived(folder: Path) -> Iterator[Reader]:
    """Reader with a checkout in a new folder, whose lab is gone in the end."""
    copy(folder)
    install(folder)
    reader = Reader(folder, readers_environment(), own_kubeconfig())
    yield reader
    subprocess.run(
        ["make", "lab-clean"], cwd=folder, env=reader.environment, check=False, capture_output=True
    )


def own_kubeconfig() -> str:
    """Return the text of the user's kubeconfig, "" without one."""
    return KUBECONFIG.read_text() if KUBECONFIG.exists() else ""


def parts(page: str) -> tuple[list[Block], list[Block]]:
    """Return a page's blocks before the teardown of the lab, and from there on."""
    found = blocks(CLONE / page)
    end = next(
        (at for at, block in enumerate(found) if block.text.startswith(_TEARDOWN)), len(found)
    )
    return found[:end], found[end:]

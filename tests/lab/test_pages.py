"""Blocks of the pages, run in order in one checkout with one lab, as a reader types them.

The README's last block takes the lab down, so that it runs last.
"""

from __future__ import annotations

import filecmp
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.pages.checkout import copy, do, readers_environment
from tests.pages.page import CLONE, RUN, Block, blocks
from tests.pages.shell import opened

pytestmark = pytest.mark.lab

TEARDOWN = "make lab-down\n"
KUBECONFIG = Path.home() / ".kube" / "config"


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
            ran = [do(shell, self.folder, block) for block in blocks]
        shown = [one.output for one in ran if one]
        assert "Traceback" not in "".join(shown)
        return shown

    def stacks(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "stacks").glob("Pulumi.*.yaml"))


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    folder = copy(tmp_path_factory.mktemp("pages") / "berth")
    reader = Reader(folder, readers_environment(), own_kubeconfig())
    yield reader
    subprocess.run(["make", "lab-clean"], cwd=folder, env=reader.environment, check=False, capture_output=True)


def own_kubeconfig() -> str:
    return KUBECONFIG.read_text() if KUBECONFIG.exists() else ""


def parts(page: str) -> tuple[list[Block], list[Block]]:
    """A page's blocks before the teardown of the lab, and from there on."""
    found = blocks(CLONE / page)
    end = next((at for at, block in enumerate(found) if block.text.startswith(TEARDOWN)), len(found))
    return found[:end], found[end:]


@pytest.mark.parametrize("page", RUN)
def test_the_blocks_of_a_page_run_as_shown(page: str, reader: Reader) -> None:
    output = reader.does(parts(page)[0])
    assert output
    if page == "README.md":
        assert "berth-alice" in "".join(output)
        same = filecmp.dircmp(CLONE / "stacks", reader.folder / "stacks")
        assert [name for name in (*same.diff_files, *same.right_only) if name != "Pulumi.dev.yaml"] == []
        assert reader.stacks() == sorted(path.name for path in (CLONE / "stacks").glob("Pulumi.*.yaml"))


def test_the_readme_ends_with_the_lab_gone(reader: Reader) -> None:
    teardown = parts("README.md")[1]
    assert teardown
    reader.does(teardown)
    assert not (reader.folder / ".lab").exists()
    assert own_kubeconfig() == reader.kubeconfig, "kubectl's own context stays"

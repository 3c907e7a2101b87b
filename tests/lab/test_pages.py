"""Blocks of the pages for engineers, run in order in one checkout with one lab, as a reader types
them.

The README's last block takes the lab down, so that it runs last. The other page is long:
test_commands runs its commands too.
"""

import filecmp
from collections.abc import Iterator

import pytest

from tests.pages.page import CLONE, ENGINEERS_PAGES
from tests.pages.reader import Reader, arrived, own_kubeconfig, parts

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    with arrived(tmp_path_factory.mktemp("pages") / "berth") as reader:
        yield reader


@pytest.fixture(scope="module")
def readme(reader: Reader) -> str:
    """Output of the README's blocks, which bring the lab up."""
    return "".join(reader.does(parts("README.md")[0]))


def test_the_blocks_of_the_readme_run_as_shown(readme: str, reader: Reader) -> None:
    assert "berth-alice" in readme
    assert "a task has number 0" in readme, "of a real Ray"
    same = filecmp.dircmp(CLONE / "stacks", reader.folder / "stacks")
    assert [
        name for name in (*same.diff_files, *same.right_only) if name != "Pulumi.dev.yaml"
    ] == []
    assert reader.stacks() == sorted(path.name for path in (CLONE / "stacks").glob("Pulumi.*.yaml"))


@pytest.mark.long
@pytest.mark.usefixtures("readme")
@pytest.mark.parametrize("page", [page for page in ENGINEERS_PAGES if page != "README.md"])
def test_the_blocks_of_a_page_run_as_shown(page: str, reader: Reader) -> None:
    reader.does(parts(page)[0])


def test_the_readme_ends_with_the_lab_gone(reader: Reader) -> None:
    reader.does(parts("README.md")[1])
    assert not (reader.folder / ".lab").exists()
    assert own_kubeconfig() == reader.kubeconfig, "kubectl's own context stays"

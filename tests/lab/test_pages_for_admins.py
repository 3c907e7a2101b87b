"""Blocks of the pages for admins, run in order in one checkout with one lab, as a reader types
them. Long: test_prod, test_gallery and test_gpus bring such environments up.
"""

from collections.abc import Iterator

import pytest

from tests.pages.page import ADMINS_PAGES
from tests.pages.reader import Reader, arrived, parts

pytestmark = [pytest.mark.lab, pytest.mark.long]


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    with arrived(tmp_path_factory.mktemp("pages") / "berth") as reader:
        yield reader


@pytest.mark.parametrize("page", ADMINS_PAGES)
def test_the_blocks_of_a_page_run_as_shown(page: str, reader: Reader) -> None:
    reader.does(parts(page)[0])

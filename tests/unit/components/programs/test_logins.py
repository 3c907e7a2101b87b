"""Mark of an open login: which ones count, and for how long."""

from datetime import UTC, datetime

import pytest

from berth.components.programs.logins import OPEN_UNTIL, open_login
from tests.unit.cases import table

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(("text", "words"), table(__file__, "logins.yaml"))
def test_a_login_counts_while_its_mark_is_renewed(text: str, words: str) -> None:
    assert open_login({OPEN_UNTIL: text}, NOW) == words


def test_a_berth_without_a_mark_has_no_login() -> None:
    assert open_login({}, NOW) == ""

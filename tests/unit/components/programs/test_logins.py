"""Mark of an open login: which ones count, and for how long."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from berth.components.programs.logins import OPEN_UNTIL, open_login

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2026-06-01T12:04:00Z", "an open login (renewed until 12:04 UTC)"),
        ("2026-06-01T14:04:00+02:00", "an open login (renewed until 12:04 UTC)"),
        ("2026-06-01T12:00:00Z", ""),
        ("9999-12-31T00:00:00Z", ""),
        ("2026-06-01T12:04:00", ""),
        ("now", ""),
        ("", ""),
    ],
)
def test_a_login_counts_while_its_mark_is_renewed(text: str, words: str) -> None:
    assert open_login({OPEN_UNTIL: text}, NOW) == words


def test_a_berth_without_a_mark_has_no_login() -> None:
    assert open_login({}, NOW) == ""

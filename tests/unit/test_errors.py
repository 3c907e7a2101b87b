"""Reference of errors: every message in the code says what to do."""

from docs.errors import errors, problems


def test_every_error_has_a_remedy() -> None:
    assert [found.text for found in errors() if not found.remedy] == []
    assert len(errors()) > 80


def test_every_problem_of_settings_has_a_remedy() -> None:
    assert [found.text for found in problems() if not found.remedy] == []
    assert len(problems()) > 100

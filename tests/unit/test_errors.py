"""Reference of errors: every message in the code has a remedy, in its text or on the page."""

from docs.errors import REMEDIES, errors, problems


def test_every_error_has_a_remedy() -> None:
    assert [found.text for found in errors() if not found.remedy] == []
    assert len(errors()) > 80


def test_every_problem_of_settings_has_a_remedy() -> None:
    assert [found.text for found in problems() if not found.remedy] == []
    assert len(problems()) > 100


def test_no_remedy_is_of_an_error_that_is_gone() -> None:
    texts = {found.text for found in [*errors(), *problems()]}
    remedies = {found.remedy for found in errors()}
    written = {text for text, remedy in REMEDIES.items() if remedy in remedies}
    assert sorted(set(REMEDIES) - texts - written) == []

"""Effects of edits in the reference: every setting has one, and it is what the preview says."""

import pytest

from berth.cli.verbs.explain.effects import known_effects
from berth.cli.verbs.explain.settings import setting_at
from berth.stacks.load.schema import schema
from docs.edits import PHRASES, settings


def test_every_setting_has_an_effect_of_an_edit() -> None:
    known = known_effects()
    assert known["effects"] == PHRASES
    phrases = {
        path: (known["settings"].get(path) or "").split(" or ")
        for path in (found.path for found in settings())
    }
    unknown = {path: found for path, found in phrases.items() if not set(found) <= set(PHRASES)}
    if unknown:
        pytest.fail(f"run `make effects`: {unknown}", pytrace=False)


def test_no_effect_is_of_a_setting_that_is_gone() -> None:
    all_settings = schema()
    for path in known_effects()["settings"]:
        assert setting_at(all_settings, path.replace("[]", "")).path == path

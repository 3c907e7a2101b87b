"""Pictures of the pages: as berth's settings and code are now, readable, without overlaps."""

from itertools import combinations

import pytest

from berth.components.lifecycle import LifecycleShape
from docs.pictures import PICTURES
from docs.pictures.svg import WIDTH, Area


@pytest.mark.parametrize("name", PICTURES)
def test_texts_are_inside_and_apart(name: str) -> None:
    picture = PICTURES[name]()
    whole = Area(0, 0, picture.width, picture.height)
    assert picture.width == WIDTH
    assert [text.what for text in picture.texts if not whole.holds(text)] == []
    assert [
        (one.what, other.what) for one, other in combinations(picture.texts, 2) if one.meets(other)
    ] == []
    assert [text.what for text in picture.texts for line in picture.lines if text.meets(line)] == []


def test_the_life_of_a_berth_names_every_setting_of_its_lifecycle() -> None:
    shown = " ".join(text.what for text in PICTURES["life"]().texts)
    fields = {field.alias or name for name, field in LifecycleShape.model_fields.items()} - {"zone"}
    assert {name for name in fields if f"({name})" not in shown} == set()

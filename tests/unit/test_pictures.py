"""Pictures of the pages: as berth's settings and code are now, readable, without overlaps."""

from dataclasses import fields
from itertools import combinations

import pytest
from pydantic.alias_generators import to_camel

from berth.components.lifecycle import LifecycleShape
from berth.components.ray.fleet import Fleet, Pool, Ray
from berth.components.ray.nodes import Node
from berth.stacks.load.stack import load_stack
from docs.pictures import PICTURES, fleet
from docs.pictures.svg import WIDTH, Area


@pytest.mark.parametrize("name", PICTURES)
def test_texts_are_inside_and_apart(name: str) -> None:
    picture = PICTURES[name]()
    whole = Area(0, 0, picture.width, picture.height)
    assert picture.width == WIDTH
    assert [text.what for text in picture.texts if not whole.holds(text)] == []
    assert [(one.what, other.what) for one, other in combinations(picture.texts, 2) if one.meets(other)] == []
    assert [text.what for text in picture.texts for line in picture.lines if text.meets(line)] == []


def test_the_life_of_a_berth_names_every_setting_of_its_lifecycle() -> None:
    shown = " ".join(text.what for text in PICTURES["life"]().texts)
    fields = {field.alias or name for name, field in LifecycleShape.model_fields.items()} - {"zone"}
    assert {name for name in fields if f"({name})" not in shown} == set()


def test_the_recorded_fleet_is_as_berth_status_prints_it_for_the_settings_of_the_lab() -> None:
    found = fleet.recorded()
    keys = {to_camel(field.name) for field in fields(Fleet)}
    assert set(found) == keys, "record it again from a lab: make picture"
    for kind, type_ in (("pools", Pool), ("nodes", Node), ("berths", Ray)):
        assert set(found[kind][0]) == {to_camel(field.name) for field in fields(type_)}
    pools = load_stack("lab").settings.pools  # type: ignore[union-attr]
    assert {pool["name"]: (pool["machineType"], pool["nodes"]) for pool in found["pools"]} == {
        name: (pool.machine_type, pool.nodes) for name, pool in pools.items()
    }

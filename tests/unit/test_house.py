"""Diagram of the house: arrows that a longer way implies are left out."""

import pytest

from docs.house import diagram, imports_of_rooms, without_detours


def test_an_import_that_a_longer_way_implies_is_left_out() -> None:
    imports = {
        "top": frozenset({"middle", "ground"}),
        "middle": frozenset({"ground"}),
        "ground": frozenset[str](),
    }
    assert without_detours(imports) == imports | {"top": frozenset({"middle"})}


def test_a_circle_of_rooms_is_an_error() -> None:
    imports = {"one": frozenset({"other"}), "other": frozenset({"one"})}
    with pytest.raises(ValueError, match="one, other"):
        without_detours(imports)


def test_the_diagram_has_every_room_and_an_arrow_between_two() -> None:
    lines = diagram(without_detours(imports_of_rooms())).splitlines()
    assert "    stacks --> berth" in lines
    assert any(line.startswith('    core["<b>core</b><br/>') for line in lines)

from __future__ import annotations

import pytest

from berth.lab.devices.advertised import GPU, managed, status_change


@pytest.mark.parametrize(
    ("resource", "ours"),
    [
        (GPU, True),
        (f"{GPU}.shared", True),
        ("nvidia.com/mig-1g.23gb", True),
        ("nvidia.com/mig-1g.5gb+me.shared", True),
        ("nvidia.com/gpu-other", False),
        ("example.com/gpu", False),
        ("cpu", False),
    ],
)
def test_gpus_are_told_from_other_resources(resource: str, *, ours: bool) -> None:
    assert managed(resource) is ours


def test_only_what_differs_is_changed() -> None:
    assert status_change({GPU: 8}, {"cpu": "4"}, {"cpu": "4"}) == {"capacity": {GPU: "8"}, "allocatable": {GPU: "8"}}
    assert status_change({GPU: 8}, {GPU: "8"}, {GPU: "0"}) == {"allocatable": {GPU: "8"}}
    assert status_change({GPU: 8}, {GPU: "8"}, {GPU: "8"}) == {}


def test_what_is_no_longer_advertised_is_shown_as_none_and_then_goes() -> None:
    there = {GPU: "8", "example.com/other": "1"}
    renamed = {f"{GPU}.shared": 16}
    assert status_change(renamed, there, there)["capacity"] == {f"{GPU}.shared": "16", GPU: "0"}
    after = {GPU: "0", f"{GPU}.shared": "16", "example.com/other": "1"}
    assert status_change(renamed, after, after) == {"capacity": {GPU: None}, "allocatable": {GPU: None}}
    assert status_change({}, {"example.com/other": "1"}, {}) == {}

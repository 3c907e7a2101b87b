"""Settings, and the lines of berth about them, word for word: the cases are files in cases/.

A file has a `base`. Each case lays `given` over it, in which null takes a key out. `refused` and
`warned` are everything that is said, in order.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.components.hardware.facts import Machine
from berth.components.hardware.machines import MACHINES
from berth.stacks.load.stack import SettingsError, load
from berth.stacks.settings.environment import EnvironmentSettings
from berth.stacks.settings.resolve import resolve_environment

FILES = {
    path.stem: yaml.safe_load(path.read_text(encoding="utf-8"))
    for path in sorted((Path(__file__).parent / "cases").glob("*.yaml"))
}
CASES = [(file, case) for file, cases in FILES.items() for case in cases if case != "base"]
FEWEST_CASES = 290
BASE: dict[str, Any] = FILES["refused"]["base"]
FLEX_START = {"machineType": "g2-standard-8", "nodes": {"min": 0, "max": 4}, "capacity": "flex-start"}
RDMA_POOL = {"machineType": "a4-highgpu-8g", "nodes": 2, "capacity": "spot", "rdma": "networks"}


def over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """`above` laid over `below`; null takes a key out."""
    merged = dict(below)
    for key, value in above.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = over(merged[key], value)
        else:
            merged[key] = value
    return merged


def lines_of(stack: str, values: dict[str, Any]) -> dict[str, list[str]]:
    """Lines of berth about an environment, under `refused` or `warned`."""
    try:
        settings = load(stack, {"environment": values}, None).settings
    except SettingsError as error:
        return {"refused": error.lines}
    assert isinstance(settings, EnvironmentSettings)
    return {"warned": [f"{warning.where}: {warning.message}" for warning in resolve_environment(settings).warnings]}


@pytest.mark.parametrize(("file", "case"), CASES)
def test_what_berth_says_word_for_word(file: str, case: str) -> None:
    given = FILES[file][case]
    expected = {key: given[key] for key in ("refused", "warned") if key in given}
    assert lines_of(given.get("stack", "test"), over(FILES[file]["base"], given["given"])) == expected


def test_no_case_was_lost() -> None:
    assert len(CASES) >= FEWEST_CASES


def accepted(given: dict[str, Any]) -> EnvironmentSettings:
    settings = load("test", {"environment": over(BASE, given)}, None).settings
    assert isinstance(settings, EnvironmentSettings)
    return settings


@pytest.mark.parametrize("machine", MACHINES.values(), ids=lambda machine: machine.name)
def test_a_pool_of_each_machine_type_is_accepted_by_each_way_it_is_sold(machine: Machine) -> None:
    for kind in machine.series.sold:
        nodes: Any = {"min": 0, "max": 1} if kind == "flex-start" else 1
        capacity = {"kind": kind} | ({"reservation": "mine"} if kind == "reservation" else {})
        pool = {"machineType": machine.name, "nodes": nodes, "capacity": capacity}
        assert lines_of("test", over(BASE, {"pools": {"more": pool}})) == {"warned": []}


@pytest.mark.parametrize("machine", MACHINES.values(), ids=lambda machine: machine.name)
def test_local_ssds_and_disks_of_each_machine_type_are_accepted(machine: Machine) -> None:
    capacity = machine.series.sold[-1]
    for disk in machine.series.boot_disks:
        for count in (machine.local_ssds, *machine.local_ssd_choices):
            pool = {"machineType": machine.name, "nodes": 1, "capacity": capacity, "diskType": disk}
            settings = accepted({"pools": {"more": pool | ({"localSsds": {"count": count}} if count else {})}})
            assert (settings.pools["more"].boot_disk, settings.pools["more"].local_ssd_count) == (disk, count)


@pytest.mark.parametrize(
    "broken",
    [
        {"zone": None, "region": "us"},
        {"pools": {"train": RDMA_POOL | {"capacity": {"kind": "reserved", "reservation": "a4"}}}},
        {"network": {"cidr": "10.0.0.0", "podRange": "10.4.0.0/14", "rdmaRange": "10.0.0.0/18"}},
        {"network": {"rdmaRange": "192.168.0.0/20"}, "pools": {"train": RDMA_POOL | {"rdma": "network"}}},
        {"currency": "USD", "pools": {"cpu": {"hourlyRate": "much"}}},
        {"project": None, "zone": None, "cluster": {"existing": {"kubeconfig": 5}}},
        {"cluster": {"managedPrometheus": False, "managedDcgm": "no thanks"}},
        {"pools": {"dev": {"machineType": "a3-highgpu-1g", "nodes": 1, "capacity": "spto"}}},
        {"pools": {"cpu": {"nodes": "one"}, "dev": FLEX_START}},
    ],
)
def test_nothing_is_concluded_from_what_is_wrong_by_itself(broken: dict[str, Any]) -> None:
    with pytest.raises(SettingsError) as caught:
        load("test", {"environment": over(BASE, broken)}, None)
    assert len(caught.value.lines) == 1, caught.value.lines

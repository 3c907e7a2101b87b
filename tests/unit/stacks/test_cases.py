"""Settings, and the lines of berth about them, word for word: the cases are files in cases/.

A file has a `base`. Each case lays `given` over it, in which null takes a key out; `engineer` is an
engineer's own stack on that environment. `refused` and `warned` are everything that is said, in
order, in which `…` stands for anything.
"""

from pathlib import Path
from typing import Any

import pytest

from berth.cli.repository.check import check_stack
from berth.components.core import fast_yaml
from berth.components.hardware.machines import MACHINES, Machine
from berth.lab.home import CLONE
from berth.stacks.load.stack import SettingsError
from berth.stacks.settings.resolve import resolve_environment
from tests.unit.cases import over, says
from tests.unit.loaded import engineer_of, environment_of

FILES = {
    path.stem: fast_yaml.load_file(path)
    for path in sorted((Path(__file__).parent / "cases").glob("*.yaml"))
}
CASES = [(file, case) for file, cases in FILES.items() for case in cases if case != "base"]
BASE: dict[str, Any] = FILES["refused"]["base"]


def lines_of(
    stack: str, values: dict[str, Any], engineer: dict[str, Any] | None = None
) -> dict[str, list[str]]:
    """Lines of berth about an environment, or about an engineer's own stack on it, under `refused`
    or `warned`.
    """
    try:
        loaded = environment_of(stack, values)
        if engineer is not None:
            found = engineer_of("alice", **engineer).on(loaded.contract()).warnings
        else:
            found = resolve_environment(loaded.settings).warnings
    except SettingsError as error:
        return {"refused": error.lines}
    return {"warned": [f"{warning.where}: {warning.message}" for warning in found]}


@pytest.mark.parametrize(("file", "case"), CASES)
def test_what_berth_says_word_for_word(file: str, case: str) -> None:
    given = FILES[file][case]
    found = lines_of(
        given.get("stack", "test"), over(FILES[file]["base"], given["given"]), given.get("engineer")
    )
    expected = {key: given[key] for key in ("refused", "warned") if key in given}
    assert found.keys() == expected.keys(), found
    for key, lines in expected.items():
        assert len(found[key]) == len(lines), found
        assert all(map(says, found[key], lines)), found


# `make lab-real` writes one more, whose GPUs and NICs are those of the lab's real node.
SHIPPED = sorted(
    path for path in (CLONE / "stacks").rglob("Pulumi.*.yaml") if path.name != "Pulumi.real.yaml"
)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_shipped_stacks_are_accepted_without_a_warning(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=schema.json\n")
    checked = check_stack(path.name.split(".")[1], text)
    assert checked.lines == []
    assert [line for line in checked.warnings if ".nestedContainers: " not in line] == [], (
        "of podman all are told"
    )


@pytest.mark.parametrize("machine", MACHINES.values(), ids=lambda machine: machine.name)
def test_a_pool_of_each_machine_type_is_accepted_by_each_way_it_is_sold(machine: Machine) -> None:
    # One of them works below a version only.
    cluster = {
        "version": "1.33",
        "maintenance": {"exclusions": {"held": {"start": "2026-01-01T00:00:00Z"}}},
    }
    held = {"cluster": cluster} if machine.name == "a3-highgpu-8g" else {}
    gpus = {"gpus": {"type": "nvidia-tesla-t4", "count": 4}} if machine.series.attaches else {}
    pools = {
        kind: {"machineType": machine.name, **sold_as(kind), **gpus} for kind in machine.series.sold
    }
    assert lines_of("test", over(BASE, {"pools": pools, **held})) == {"warned": []}


def sold_as(kind: str) -> dict[str, Any]:
    """Capacity of a pool by one of the ways in which machines are sold, and a number of nodes."""
    capacity = {"kind": kind} | ({"reservation": "mine"} if kind == "reservation" else {})
    return {"capacity": capacity, "nodes": {"min": 0, "max": 1} if kind == "flex-start" else 1}


@pytest.mark.parametrize("machine", MACHINES.values(), ids=lambda machine: machine.name)
def test_local_ssds_and_disks_of_each_machine_type_are_accepted(machine: Machine) -> None:
    of_any = {"machineType": machine.name, **sold_as(machine.series.sold[-1])}
    counts = (machine.local_ssds, *machine.local_ssd_choices)
    wanted = {
        f"{disk}-{count}": (disk, count) for disk in machine.series.boot_disks for count in counts
    }
    pools = {
        name: of_any | {"diskType": disk} | ({"localSsds": {"count": count}} if count else {})
        for name, (disk, count) in wanted.items()
    }
    settings = environment_of("test", over(BASE, {"pools": pools})).settings
    found = {
        name: (settings.pools[name].boot_disk, settings.pools[name].local_ssd_count)
        for name in wanted
    }
    assert found == wanted

"""Registrations of an environment and a berth for the keeper, whose program needs nothing
but Python.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from berth.components.lifecycle import keeper_access, keeper_peers, manifests
from berth.components.programs.lifetimes import settled
from berth.stacks.load.stack import Environment
from berth.stacks.program.environment import register_environment
from berth.stacks.settings.environment import EnvironmentSettings
from berth.stacks.settings.resolve import resolve_environment
from tests.unit.loaded import environment_of, environment_values
from tests.unit.recording import Recorder, run

BASE: dict[str, Any] = environment_values(
    dev={"machineType": "a4-highgpu-8g", "nodes": 2, "capacity": "spot"}
)
LIFECYCLE = {
    "expires": "2026-12-31",
    "hours": {"from": "08:00", "to": "20:00"},
    "idle": "2h",
    "zone": "Europe/Berlin",
    "grace": "4h",
    "deleteAfter": "30d",
}
TRAIN = {"worker": {"pool": "dev"}}


def loaded(**given: Any) -> Environment:
    return environment_of("lab", BASE | given)


def settings(**given: Any) -> EnvironmentSettings:
    return loaded(**given).settings


def registered(**given: Any) -> Recorder:
    async def program() -> None:
        await register_environment(loaded(**given))

    return run(program, "lab")


def lifecycles(**given: Any) -> dict[str, dict[str, str]]:
    """Annotations of each namespace that say the lifecycle of its berth."""
    recorder = registered(**given)
    berths = {item.name for item in recorder.of_type("kubernetes:ray.io/v1:RayCluster")}
    return {
        item.name: settled(item.inputs["metadata"]["annotations"], {})
        for item in recorder.of_type("kubernetes:core/v1:Namespace")
        if item.name in berths
    }


def plain(value: Any) -> Any:
    """Return manifests as the API server gets them: without shared objects."""
    return json.loads(json.dumps(value))


def test_what_the_keeper_is(golden: Callable[[str, Any], None]) -> None:
    created = manifests.keeper_manifests(
        "lab", "an/image:1", "*/5 * * * *", settings().pools, {"a": "b"}
    )
    namespace, program, *others = created
    golden(
        "lifecycle/keeper", plain([namespace, program | {"data": sorted(program["data"])}, *others])
    )


def test_nothing_is_an_empty_list_which_the_api_server_would_not_keep() -> None:
    pools = {"cpu": settings().pools["cpu"]}
    created = manifests.keeper_manifests("lab", "an/image:1", "*/5 * * * *", pools, {"a": "b"})
    assert "[]" not in json.dumps(
        [item for item in created if item["kind"] in {"CronJob", "NetworkPolicy", "ClusterRole"}]
    )


def test_what_a_berth_has_for_it(golden: Callable[[str, Any], None]) -> None:
    (own,) = resolve_environment(settings(engineers={"x": {"lifecycle": LIFECYCLE}})).berths
    metadata = {"name": "x", "namespace": "berth-x", "labels": {"a": "b"}}
    ray = {"kind": "RayCluster", "metadata": metadata, "spec": {"authOptions": {"mode": "token"}}}
    created = keeper_access(ray, own.lifecycle)
    golden(
        "lifecycle/berth",
        plain([own.lifecycle.annotations(), *created, *keeper_peers(own.lifecycle)]),
    )


def test_nothing_said_nothing_made() -> None:
    recorder = registered(engineers={"x": {}}, clusters={"train": TRAIN})
    assert not [
        registration
        for registration in recorder.registrations
        if "keeper" in registration.name.lower() or "Keeper" in registration.type
    ]
    assert lifecycles(engineers={"x": {}}) == {"x": {}}


def test_berths_take_the_defaults_and_named_clusters_do_not() -> None:
    given = {
        "defaults": {"lifecycle": {"idle": "2h", "expires": "14d", "grace": "1h"}},
        "engineers": {
            "x": {},
            "y": {"lifecycle": {"idle": "never"}},
            "z": {"lifecycle": {"idle": "never", "expires": "never"}},
        },
        "clusters": {"train": TRAIN},
    }
    shared = {"berth/expires": "14d", "berth/zone": "UTC", "berth/grace": "1h"}
    assert lifecycles(**given) == {
        "x": shared | {"berth/idle": "2h"},
        "y": shared,
        "z": {},
        "train": {},
    }
    asking = {"clusters": {"train": TRAIN | {"lifecycle": {"idle": "1d"}}}}
    assert lifecycles(**asking) == {"train": {"berth/idle": "1d"}}


@pytest.mark.parametrize(
    "given",
    [
        {"engineers": {"x": {"lifecycle": {"idle": "2h"}}}},
        {"clusters": {"train": TRAIN | {"lifecycle": {"idle": "2h"}}}},
        {"defaults": {"lifecycle": {"idle": "2h"}}},
        {"keeper": {"every": "10m"}},
    ],
)
def test_there_is_a_keeper_where_it_has_something_to_do(given: dict[str, Any]) -> None:
    recorder = registered(**given)
    (created,) = recorder.of_type("kubernetes:batch/v1:CronJob")
    minutes = "10" if "keeper" in given else "5"
    assert created.inputs["spec"]["schedule"] == f"*/{minutes} * * * *"
    kinds = [
        registration.type.rpartition(":")[2]
        for registration in recorder.registrations
        if registration.name in {"keeper", "berth-keeper"}
    ]
    assert kinds[:2] == ["Keeper", "Namespace"]
    assert kinds[-1] == "CronJob"


def test_the_program_needs_nothing_but_python(tmp_path: Path) -> None:
    pools = {"cpu": settings().pools["cpu"]}
    created = manifests.keeper_manifests("lab", "an/image:1", "*/5 * * * *", pools, {})
    pod = created[-1]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    for item in pod["volumes"][0]["configMap"]["items"]:
        path = tmp_path / item["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(created[1]["data"][item["key"]], encoding="utf-8")
    _, *command = pod["containers"][0]["command"]
    done = subprocess.run(
        [sys.executable, "-E", "-S", *command, "--help"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, b"suspend and wake berths" in done.stdout.lower()) == (0, True), (
        done.stderr
    )
    assert sum(len(text) for text in created[1]["data"].values()) < 2**20

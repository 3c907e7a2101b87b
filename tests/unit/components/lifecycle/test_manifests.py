"""Registrations of an environment and a berth for the keeper, whose program needs nothing
but Python.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from berth.components.lifecycle import keeper_access, keeper_peers, manifests, with_lifecycle
from berth.stacks.load.stack import Environment, SettingsError, load
from berth.stacks.program.environment import environment
from berth.stacks.settings.contract import contract_of
from berth.stacks.settings.engineer import EngineerSettings
from berth.stacks.settings.environment import EnvironmentSettings
from berth.stacks.settings.resolve import resolve_engineer, resolve_environment
from tests.unit.loaded import environment_of, environment_values
from tests.unit.recording import Recorder, run

BASE: dict[str, Any] = environment_values(dev={"machineType": "a4-highgpu-8g", "nodes": 2, "capacity": "spot"})
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
        await environment(loaded(**given))

    return run(program, "lab")


def lifecycles(**given: Any) -> dict[str, dict[str, str]]:
    """Annotations of each RayCluster that say its lifecycle."""
    found = registered(**given).of_type("kubernetes:ray.io/v1:RayCluster")
    return {
        item.name: {
            key: text for key, text in item.inputs["metadata"]["annotations"].items() if key.startswith("berth/")
        }
        for item in found
    }


def plain(value: Any) -> Any:
    """Return manifests as the API server gets them: without shared objects."""
    return json.loads(json.dumps(value))


def test_what_the_keeper_is(golden: Callable[[str, Any], None]) -> None:
    created = manifests.keeper("lab", "an/image:1", "*/5 * * * *", settings().pools, {"a": "b"})
    program = created[0]["data"]
    shown = [created[0] | {"data": sorted(program)}, *created[1:]]
    golden("lifecycle/keeper", plain([manifests.namespace({"a": "b"}), *shown]))


def test_nothing_is_an_empty_list_which_the_api_server_would_not_keep() -> None:
    pools = {"cpu": settings().pools["cpu"]}
    created = manifests.keeper("lab", "an/image:1", "*/5 * * * *", pools, {"a": "b"})
    assert "[]" not in json.dumps(
        [item for item in created if item["kind"] in {"CronJob", "NetworkPolicy", "ClusterRole"}]
    )


def test_what_a_berth_has_for_it(golden: Callable[[str, Any], None]) -> None:
    (own,) = resolve_environment(settings(engineers={"x": {"lifecycle": LIFECYCLE}})).berths
    metadata = {"name": "x", "namespace": "berth-x", "labels": {"a": "b"}}
    ray = {"kind": "RayCluster", "metadata": metadata, "spec": {"authOptions": {"mode": "token"}}}
    created = keeper_access(ray, own.lifecycle)
    cluster = with_lifecycle({"kind": "RayCluster", "metadata": {"name": "x"}}, own.lifecycle)
    golden("lifecycle/berth", plain([cluster, *created, *keeper_peers(own.lifecycle)]))


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
    assert lifecycles(**given) == {"x": shared | {"berth/idle": "2h"}, "y": shared, "z": {}, "train": {}}
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


def test_an_engineers_stack_needs_an_environment_with_a_keeper() -> None:
    own = load("alice", {"engineer": {"environment": "lab", "lifecycle": {"idle": "2h"}}}, None).settings
    assert isinstance(own, EngineerSettings)
    report = {}
    environments: dict[str, dict[str, Any]] = {"without": {}, "with": {"keeper": {}}}
    for name, given in environments.items():
        there = settings(**given)
        contract = contract_of(there, "lab", resolve_environment(there))
        report[name] = [problem.message for problem in resolve_engineer(own, "alice", contract).problems]
    assert report == {
        "without": [
            (
                "environment 'lab' has no keeper, so nothing would suspend or wake the berth; give "
                "it one there (`keeper: {}`; then"
                " pulumi up -s lab), or take this out"
            )
        ],
        "with": [],
    }


@pytest.mark.parametrize(
    ("lifecycle", "refused"),
    [
        (
            {"expires": "2026-13-31", "idle": "2 h", "grace": "y", "deleteAfter": "x"},
            [
                (
                    "expires: '2026-13-31' is neither a day nor a duration; write the last day, "
                    "2026-12-31, or the lifetime, 14d"
                ),
                "idle: '2 h' is not a duration; write for example 90s, 10m, 2h or 7d, or never",
                "grace: 'y' is not a duration; write for example 90s, 10m, 2h or 7d, or unlimited",
                "deleteAfter: 'x' is not a duration; write for example 90s, 10m, 2h or 7d, or never",
            ],
        ),
        (
            {"hours": {"from": "8", "to": "25:00", "days": "mon-fre"}, "zone": "Europe/Berln"},
            [
                "hours.days: 'mon-fre' is not a list of days of the week; write for example mon-fri, or mon,wed,fri",
                "hours.from: '8' is not a time of day; write for example 08:00 or 20:00",
                "hours.to: '25:00' is not a time of day; write for example 08:00 or 20:00",
                "zone: there is no time zone 'Europe/Berln'; write for example Europe/Berlin, America/New_York or UTC",
            ],
        ),
        (
            {"hours": {"from": "08:00", "to": "08:00"}},
            [
                (
                    "hours: begin and end at 08:00, which leaves no time outside of them; give another "
                    "time, or `hours: always`"
                ),
            ],
        ),
        ({"hours": "nine to five"}, ["hours: 'nine to five' is not one of 'always'"]),
        (
            {"expires": "9999-12-31", "idle": "99999999999999d"},
            [
                "expires: '9999-12-31' is after 2199-12-31, the last day that a berth can have",
                "idle: '99999999999999d' is longer than 100 years; the longest duration is 36500d, or never",
            ],
        ),
        ({"idel": "2h"}, ["idel: unknown key 'idel'; did you mean 'idle'?"]),
        (
            {"idle": "2h", "deleteAfter": "3d", "grace": "1h"},
            [
                (
                    "deleteAfter: counts from the expiry of the berth, which never expires; add "
                    "`expires`, for example 30d, or take"
                    " deleteAfter out"
                ),
                (
                    "grace: is for `expires` and `hours`, and the berth has neither: `idle` suspends "
                    "only berths that run nothing;"
                    " take grace out"
                ),
            ],
        ),
    ],
)
def test_refused_word_for_word(lifecycle: dict[str, Any], refused: list[str]) -> None:
    with pytest.raises(SettingsError) as caught:
        settings(engineers={"x": {"lifecycle": lifecycle}})
    assert caught.value.lines == [f"environment.engineers.x.lifecycle.{item}" for item in refused]


@pytest.mark.parametrize("every", ["7m", "90s", "1h"])
def test_a_schedule_that_a_cron_job_can_not_write_is_refused(every: str) -> None:
    with pytest.raises(SettingsError, match="whole minutes that divides an hour"):
        settings(keeper={"every": every})


def test_nobody_takes_the_keepers_namespace() -> None:
    with pytest.raises(SettingsError, match="'keeper' is reserved"):
        settings(engineers={"keeper": {}})


def test_the_program_needs_nothing_but_python(tmp_path: Path) -> None:
    pools = {"cpu": settings().pools["cpu"]}
    created = manifests.keeper("lab", "an/image:1", "*/5 * * * *", pools, {})
    pod = created[-1]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    for item in pod["volumes"][0]["configMap"]["items"]:
        path = tmp_path / item["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(created[0]["data"][item["key"]], encoding="utf-8")
    _, *command = pod["containers"][0]["command"]
    done = subprocess.run(
        [sys.executable, "-E", "-S", *command, "--help"], cwd=tmp_path, capture_output=True, check=False
    )
    assert (done.returncode, b"suspend and wake berths" in done.stdout.lower()) == (0, True), done.stderr
    assert sum(len(text) for text in created[0]["data"].values()) < 2**20

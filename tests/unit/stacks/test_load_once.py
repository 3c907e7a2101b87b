"""One load: what a stack's settings come to is derived once, for the program as for `berth
check`.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import yaml

from berth.cli.repository.check import check_all
from berth.components.berth import berth_manifests
from berth.components.gke import cluster_arguments
from berth.components.isolation import isolate
from berth.components.ray.manifest import dashboard_service, ray_cluster
from berth.components.ray.workloads import ray_job, ray_service
from berth.stacks.load.service_code import read_all
from berth.stacks.policies.settings import judge_engineer, judge_environment
from berth.stacks.program.environment import environment
from berth.stacks.settings.resolve import resolve_engineer, resolve_environment
from tests.unit.loaded import environment_of
from tests.unit.recording import run

# Functions that derive something from settings; those of the second line once for each RayCluster,
# job or service.
DERIVING = (resolve_environment, resolve_engineer, judge_environment, judge_engineer, cluster_arguments, read_all)
BUILDING = (berth_manifests, isolate, ray_cluster, dashboard_service, ray_job, ray_service)

ENVIRONMENT: dict[str, Any] = {
    "project": "berth-lab",
    "zone": "us-central1-b",
    "pools": {
        "cpu": {"machineType": "n2-standard-16", "nodes": 2},
        "dev": {"machineType": "a4-highgpu-8g", "nodes": 4},
    },
    "engineers": {"bob": {"dashboard": "internal"}, "carol": {}},
    "clusters": {"big": {}},
    "jobs": {"nightly": {"entrypoint": "python -m nightly"}, "look": {"entrypoint": "python", "cluster": "bob"}},
    "services": {"chat": {"serveConfig": {"applications": [{"import_path": "app:app"}]}}},
}


@contextlib.contextmanager
def counting() -> Iterator[Counter[str]]:
    """Number of calls by function, and by the name of what is built."""
    calls: Counter[str] = Counter()
    codes = {function.__code__: function for function in (*DERIVING, *BUILDING)}

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code in codes:
            function = codes[frame.f_code]
            given = next(iter(frame.f_locals.values()))
            given = getattr(given, "settings", given) if function == berth_manifests else given
            name = f" {getattr(given, 'name', '')}" if function in BUILDING else ""
            calls[f"{function.__name__}{name}".strip()] += 1

    sys.setprofile(profile)
    threading.setprofile(profile)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def test_a_program_derives_everything_once() -> None:
    with counting() as calls:
        loaded = environment_of("env", ENVIRONMENT)
        recorder = run(lambda: environment(loaded), "env")
    assert len(recorder.of_type("kubernetes:ray.io/v1:RayCluster")) == 3
    owners = ("bob", "carol", "big", "nightly", "chat")
    assert calls.pop("isolate") == len(owners)
    expected = {"resolve_environment", "judge_environment", "cluster_arguments", "read_all"}
    expected |= {f"berth_manifests {name}" for name in owners} | {f"ray_cluster {name}" for name in owners}
    expected |= {f"dashboard_service {name}" for name in owners}
    expected |= {"ray_job nightly", "ray_job look", "ray_service chat"}
    assert calls == Counter(dict.fromkeys(expected, 1))


def test_a_check_of_all_stacks_derives_everything_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: berth\n")
    (tmp_path / "stacks").mkdir()
    monkeypatch.chdir(tmp_path)
    stacks = {"env": {"berth:environment": ENVIRONMENT}, "alice": {"berth:engineer": {"environment": "env"}}}
    for stack, config in stacks.items():
        (tmp_path / "stacks" / f"Pulumi.{stack}.yaml").write_text(yaml.safe_dump({"config": config}))
    with counting() as calls:
        assert [checked.lines for checked in check_all(stacks)] == [[], []]
    assert calls.pop("isolate") == 6
    assert set(calls.values()) == {1}
    assert {"resolve_environment", "resolve_engineer", "ray_cluster alice", "ray_cluster bob"} <= calls.keys()

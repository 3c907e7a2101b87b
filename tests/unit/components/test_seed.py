"""The DraNet documentation's RayCluster on A4, out of ten lines of settings, and what berth adds to
it. That nothing is left out, tests/unit/moving shows.
"""

import re
from typing import Any

import pytest
import yaml

from berth.components.berth import Berth, BerthInputs
from berth.components.fabric import dranet_class
from berth.components.ray import cluster_workload
from tests.unit.cases import table
from tests.unit.components.fabric import BY_NETWORKS, complete
from tests.unit.moving.test_moving import brought, facts
from tests.unit.recording import run

NAME = "a4-ray-cluster"
SETTINGS = """
workers: {min: 0, max: 4, start: 2}
worker:
  cpu: 120
  cpuLimit: 200
  memory: 1600Gi
nccl: {profile: a4}
"""

ADDITIONS: dict[str, dict[str, str]] = table(__file__, "seed_additions.yaml")
THEIRS = {
    re.sub(r"^(\w+)\[.*?]\.", r"\1.", path): value for path, value in brought("dranet.yaml").items()
}
_WORKER = "RayCluster.spec.workerGroupSpecs[0].template"


@pytest.fixture(scope="module")
def ours() -> dict[str, Any]:
    """Fields of what is registered for the settings, by kind and path."""
    cluster, pools = complete(
        BY_NETWORKS | {"nodes": 4}, "clusters", yaml.safe_load(SETTINGS), NAME
    )

    async def program() -> None:
        Berth(
            NAME, BerthInputs(cluster_workload(cluster, "cluster"), pools, "lab", "lab", "v1beta1")
        )

    inputs = [registration.inputs for registration in run(program, "lab").registrations]
    found = {
        str(manifest["kind"]): manifest
        for manifest in (dranet_class("v1beta1"), *inputs)
        if "kind" in manifest
    }
    return {
        path: value
        for kind in ADDITIONS
        for path, value in facts(dict(found[kind], kind=None), kind).items()
    }


def below(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith((f"{prefix}.", f"{prefix}["))


def test_ten_lines_of_settings_are_enough() -> None:
    written = {"environment": {"clusters": {NAME: yaml.safe_load(SETTINGS)}}}
    assert len(yaml.safe_dump(written, default_flow_style=None).splitlines()) <= 10
    assert len(SETTINGS.strip().splitlines()) + len(("clusters:", f"{NAME}:")) <= 10


def test_what_berth_adds_has_a_reason(ours: dict[str, Any]) -> None:
    listed = [f"{kind}.{path}" for kind, paths in ADDITIONS.items() for path in paths]
    added = [path for path in ours if path not in THEIRS and not path.endswith(".kind")]
    assert [path for path in added if not any(below(path, prefix) for prefix in listed)] == []
    assert [prefix for prefix in listed if not any(below(path, prefix) for path in added)] == []


@pytest.mark.parametrize("part", ["env", "volumes", "volumeMounts"])
def test_variables_and_volumes_are_in_the_documents_order(ours: dict[str, Any], part: str) -> None:
    entry = re.compile(rf"^{re.escape(_WORKER)}.*\.{part}\[([^]]+)\]")
    here, there = (
        list(dict.fromkeys(found[1] for path in fields if (found := entry.match(path))))
        for fields in (ours, THEIRS)
    )
    assert here == there
    assert len(here) > 1

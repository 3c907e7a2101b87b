"""The DraNet documentation's RayCluster on A4, out of ten lines of settings: the same, but for
what seed_differences.yaml lists with its reason.
"""

import re
from typing import Any

import pytest
import yaml

from berth.components.berth import Berth, BerthInputs
from berth.components.fabric import dranet_class
from berth.components.hardware.names import ResourceApi
from berth.components.ray import cluster_workload
from tests.unit.cases import table
from tests.unit.components.fabric import BY_NETWORKS, complete
from tests.unit.recording import run

NAME = "a4-ray-cluster"
SETTINGS = """
workers: {min: 0, max: 4, start: 2}
worker:
  cpu: 120
  cpuLimit: 200
  memory: 1600Gi
"""

FACTS: dict[str, dict[str, Any]] = table(__file__, "seed_a4.yaml")
DIFFERENCES = table(__file__, "seed_differences.yaml")
_WORKER = "spec.workerGroupSpecs[0].template"


def facts(value: Any, path: str = "") -> dict[str, Any]:
    """Return fields with their values, by path. Entries of lists go by their name or key, if they
    have one, else by their place.
    """
    found: dict[str, Any] = {}
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            found |= facts(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        for place, inner in enumerate(value):
            named = isinstance(inner, dict) and next((key for key in ("name", "key") if key in inner), None)
            if isinstance(inner, dict) and named:
                rest = {key: item for key, item in inner.items() if key != named}
                # An entry that is nothing but its name is there all the same.
                found |= facts(rest, f"{path}[{inner[named]}]") if rest else {f"{path}[{inner[named]}]": {}}
            else:
                found |= facts(inner, f"{path}[{place}]")
    else:
        found[path] = value
    return found


def registered(api: ResourceApi = "v1") -> dict[str, dict[str, Any]]:
    """Return the registrations for the settings, by kind."""
    cluster, pools = complete(BY_NETWORKS | {"nodes": 4}, "clusters", yaml.safe_load(SETTINGS), NAME)

    async def program() -> None:
        inputs = BerthInputs(cluster_workload(cluster, "cluster"), pools, "lab", "lab", api)
        Berth(NAME, inputs)

    manifests = [dranet_class(api), *(registration.inputs for registration in run(program, "lab").registrations)]
    found = {str(manifest.get("kind")): manifest for manifest in manifests}
    return {kind: facts({key: found[kind][key] for key in found[kind] if key != "kind"}) for kind in FACTS}


def below(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith((f"{prefix}.", f"{prefix}["))


def differences(kind: str, theirs: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    """Return differences that are not listed, and those that are listed without
    differing.
    """
    changed, added = DIFFERENCES["changed"][kind], DIFFERENCES["added"][kind]
    differing = {path for path in theirs if path in ours and ours[path] != theirs[path]}
    more = {path for path in ours if path not in theirs}
    return [
        *(f"lacks {path}: {theirs[path]!r}" for path in sorted(theirs.keys() - ours.keys())),
        *(f"has {path}: {ours[path]!r} instead of {theirs[path]!r}" for path in sorted(differing - changed.keys())),
        *(f"adds {path}: {ours[path]!r}" for path in sorted(more) if not any(below(path, item) for item in added)),
        *(f"is said to change {path}, and does not" for path in sorted(changed.keys() - differing)),
        *(f"is said to add {item}, and does not" for item in added if not any(below(path, item) for path in more)),
    ]


def in_v1(theirs: dict[str, Any]) -> dict[str, Any]:
    """Facts of the document's template as v1 has them: requests are one level deeper there."""
    return {re.sub(r"(\.requests\[\w+\])\.", r"\1.exactly.", path): value for path, value in theirs.items()}


def test_ten_lines_of_settings_are_enough() -> None:
    written = {"environment": {"clusters": {NAME: yaml.safe_load(SETTINGS)}}}
    assert len(yaml.safe_dump(written, default_flow_style=None).splitlines()) <= 10
    assert len(SETTINGS.strip().splitlines()) + len(("clusters:", f"{NAME}:")) <= 10


@pytest.mark.parametrize("kind", FACTS)
def test_it_is_the_documents_but_for_what_is_listed(kind: str) -> None:
    assert differences(kind, in_v1(FACTS[kind]), registered()[kind]) == []


def test_in_the_documents_version_class_and_template_are_the_documents() -> None:
    ours = registered("v1beta1")
    for kind in ("DeviceClass", "ResourceClaimTemplate"):
        as_theirs = FACTS[kind].keys() - (DIFFERENCES["changed"][kind].keys() - {"apiVersion"})
        assert {path: ours[kind].get(path) for path in as_theirs} == {path: FACTS[kind][path] for path in as_theirs}


def test_variables_and_volumes_are_in_the_documents_order() -> None:
    for part in ("env", "volumes", "volumeMounts"):
        entry = re.compile(rf"^{re.escape(_WORKER)}.*\.{part}\[([^]]+)\]")
        ours, theirs = (
            list(dict.fromkeys(found[1] for path in item if (found := entry.match(path))))
            for item in (registered()["RayCluster"], FACTS["RayCluster"])
        )
        assert ours == theirs
        assert len(ours) > 1

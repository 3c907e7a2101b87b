"""The DraNet documentation's RayCluster on A4, out of ten lines of settings: the same, but for
what is listed here with its reason.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.components.berth import Berth, BerthInputs
from berth.components.fabric import dranet_class
from berth.components.hardware.names import ResourceApi
from berth.components.ray import cluster_workload
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

FACTS: dict[str, dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "seed_a4.yaml").read_text(encoding="utf-8"))

_HEAD = "spec.headGroupSpec.template"
_HEAD_CONTAINER = f"{_HEAD}.spec.containers[ray-head]"
_WORKERS = "spec.workerGroupSpecs[0]"
_WORKER = f"{_WORKERS}.template"
_WORKER_CONTAINER = f"{_WORKER}.spec.containers[ray-worker]"

CHANGED: dict[str, dict[str, str]] = {
    "DeviceClass": {
        "apiVersion": "the newest that is served: v1 by default from Kubernetes 1.34 on (v1beta1 is written below)",
    },
    "ResourceClaimTemplate": {
        "apiVersion": "the newest that is served: v1 by default from Kubernetes 1.34 on (v1beta1 is written below)",
        "metadata.name": (
            "templates cannot be changed, so that other content needs another name: a hash of it is behind it"
        ),
    },
    "RayCluster": {
        f"{_WORKER}.spec.resourceClaims[nics].resourceClaimTemplateName": "the template's name",
        f"{_HEAD_CONTAINER}.image": (
            "one person's build of Ray 2.44.1, which has no token authentication; images/ray-a4 replaces it"
        ),
        f"{_WORKER_CONTAINER}.image": "the same",
        f"{_WORKERS}.groupName": "every RayCluster of berth has one group of workers, and it is called so",
    },
}
"""Fields of both with other values, and why."""

ADDED: dict[str, dict[str, str]] = {
    "DeviceClass": {"metadata.labels": "what berth makes is marked as such"},
    "ResourceClaimTemplate": {
        "metadata.annotations": "Pulumi's own: in whose name it sets fields",
        "metadata.labels": "whose it is",
        "metadata.namespace": "each RayCluster has a namespace of its own",
    },
    "RayCluster": {
        "metadata.annotations": "Pulumi's own: in whose name it sets fields",
        "metadata.labels": "whose it is",
        "metadata.namespace": "each RayCluster has a namespace of its own",
        f"{_HEAD}.metadata": "whose the pods are",
        f"{_WORKER}.metadata": "the same",
        "spec.rayVersion": "KubeRay needs it for token authentication and for the autoscaler's version",
        "spec.authOptions": "without a token, whoever reaches the head runs code",
        "spec.upgradeStrategy": "an edit is to reach the running pods",
        "spec.enableInTreeAutoscaling": "without an autoscaler, minReplicas and maxReplicas mean nothing",
        "spec.autoscalerOptions": "the autoscaler that Ray 2.60 has by default, whatever the operator's default is",
        f"{_HEAD}.spec.nodeSelector": "the head has its pool: it is not to take the place of a worker on an A4",
        f"{_HEAD}.spec.tolerations": "an empty list: the head's pool has no taints",
        f"{_HEAD_CONTAINER}.resources": "a head without requests is the first to be evicted, and all its jobs with it",
        f"{_HEAD_CONTAINER}.env": "NVIDIA_VISIBLE_DEVICES=void: a head on a node with GPUs would see all of them",
        f"{_HEAD}.spec.securityContext": "pods meet all of `restricted` but the folders of their node",
        f"{_HEAD_CONTAINER}.securityContext": "the same",
        f"{_WORKER}.spec.securityContext": "the same",
        f"{_WORKER_CONTAINER}.securityContext.allowPrivilegeEscalation": "the same",
        f"{_WORKER_CONTAINER}.securityContext.capabilities": "the same",
        f"{_WORKER_CONTAINER}.volumeMounts[library-dir-host].readOnly": "the node's next tenant loads what is in there",
        f"{_WORKER_CONTAINER}.volumeMounts[gib].readOnly": "the same",
        f"{_HEAD}.spec.priorityClassName": "production goes before engineers' berths where nodes are short",
        f"{_WORKER}.spec.priorityClassName": "the same",
        f"{_WORKER}.spec.automountServiceAccountToken": "workers ask the API server for nothing",
        f"{_WORKER}.spec.nodeSelector": "the workers have their pool, by name",
        f"{_WORKER_CONTAINER}.resources.claims": "only containers that name a claim get its devices",
    },
}
"""Fields, or all below them, that only berth's has, and why. Nothing of the document's is left
out."""


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
    changed, added = CHANGED[kind], ADDED[kind]
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
        same = {path: ours[kind].get(path) for path in FACTS[kind] if path != "metadata.name"}
        assert same == {path: value for path, value in FACTS[kind].items() if path != "metadata.name"}


def test_variables_and_volumes_are_in_the_documents_order() -> None:
    for part in ("env", "volumes", "volumeMounts"):
        entry = re.compile(rf"^{re.escape(_WORKER)}.*\.{part}\[([^]]+)\]")
        ours, theirs = (
            list(dict.fromkeys(found[1] for path in item if (found := entry.match(path))))
            for item in (registered()["RayCluster"], FACTS["RayCluster"])
        )
        assert ours == theirs
        assert len(ours) > 1

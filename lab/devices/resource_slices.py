"""A driver's ResourceSlice of one node, and what it takes to bring the API server to it: pure.

One pool a node with one slice in it, as both drivers publish them. Every change of its devices is a new generation of the pool.

Answers to (read): kubernetes v1.36.3, staging/src/k8s.io/dynamic-resource-allocation/resourceslice (one pool a node,
    a generation for each change):
    https://github.com/kubernetes/kubernetes/blob/v1.36.3/staging/src/k8s.io/dynamic-resource-allocation/resourceslice/resourceslicecontroller.go
Answers to (read): Google's tutorial "Device alignment of GPU, NIC, and CPU with DRA", whose slices are one a node and
    driver: https://gke-ai-labs.dev
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Object = dict[str, Any]

API_VERSION = "resource.k8s.io/v1"
PATH = f"/apis/{API_VERSION}/resourceslices"

SIMULATED = ("berth-lab", "simulated")
"""Label of the slices that the lab makes; those of a real driver are left alone."""


def resource_slice(node: Mapping[str, Any], driver: str, devices: list[Object]) -> Object:
    """The first slice of a driver on a node.

    Args:
        node: the node; with it goes the slice.
        driver: the driver's name.
        devices: the node's devices.
    """
    metadata = node["metadata"]
    key, value = SIMULATED
    return {
        "apiVersion": API_VERSION,
        "kind": "ResourceSlice",
        "metadata": {
            "name": f"{metadata['name']}-{driver}",
            "labels": {key: value},
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "name": metadata["name"],
                    "uid": metadata["uid"],
                    "controller": True,
                }
            ],
        },
        "spec": {
            "driver": driver,
            "nodeName": metadata["name"],
            "pool": {"name": metadata["name"], "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


def changes(wanted: Iterable[Object], there: Iterable[Object]) -> tuple[list[Object], list[Object], list[str]]:
    """What brings the slices that are there to those that are wanted.

    Args:
        wanted: slices, each in its first generation.
        there: all slices of the cluster; real drivers' are passed over.

    Returns:
        Slices to make, slices to put in the place of their former generation, and names of those to delete.
    """
    key, value = SIMULATED
    ours = {
        each["metadata"]["name"]: each for each in there if (each["metadata"].get("labels") or {}).get(key) == value
    }
    new, changed, kept = [], [], set()
    for each in wanted:
        name = each["metadata"]["name"]
        now = ours.get(name)
        owner = each["metadata"]["ownerReferences"][0]["uid"]
        if now is None:
            new.append(each)
        elif owner not in [reference["uid"] for reference in now["metadata"].get("ownerReferences") or []]:
            continue  # of a node that had this name: it goes first, and the next look makes the new one
        elif now["spec"].get("devices") != each["spec"]["devices"]:
            generation = now["spec"]["pool"]["generation"] + 1
            pool = each["spec"]["pool"] | {"generation": generation}
            version = {"resourceVersion": now["metadata"]["resourceVersion"]}
            changed.append(each | {"metadata": each["metadata"] | version, "spec": each["spec"] | {"pool": pool}})
        kept.add(name)
    return new, changed, [name for name in ours if name not in kept]

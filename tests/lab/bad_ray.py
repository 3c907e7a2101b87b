"""RayClusters, RayJobs and RayServices that an engineer must not write, as changes of good ones."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from tests.lab.bad_pods import over

Object = dict[str, Any]

POOL = "cloud.google.com/gke-nodepool"
OTHER_POOL = "gold"
"""A pool that the berth's settings do not use."""

_OPEN = {"externalIPs": ["203.0.113.7"], "ports": [{"name": "x", "port": 80}]}


def _head(**spec: Any) -> Object:
    return {"headGroupSpec": {"template": {"spec": spec}}}


def _worker(**spec: Any) -> Object:
    return {"workerGroupSpecs": [{"template": {"spec": spec}}]}


def _volume(**source: Any) -> Object:
    return _worker(volumes=[{"name": "v", **source}])


BAD_CLUSTERS: dict[str, tuple[str, Object]] = {
    "workers on another pool": ("use other pools", _worker(nodeSelector={POOL: OTHER_POOL})),
    "head on another pool": ("use other pools", _head(nodeSelector={POOL: OTHER_POOL})),
    "workers on any pool": ("use other pools", _worker(nodeSelector={POOL: None, "kubernetes.io/os": "linux"})),
    "a node by its name": ("use other pools", _worker(nodeName="gke-gold-1")),
    "one more group on another pool": (
        "use other pools",
        {"workerGroupSpecs": [{}, {"groupName": "gold", "template": {"spec": {"nodeSelector": {POOL: OTHER_POOL}}}}]},
    ),
    "no token": ("change Ray's tokens", {"authOptions": {"mode": "disabled"}}),
    "a token of their own": ("change Ray's tokens", {"authOptions": {"secretName": "mine"}}),
    "tokens of Kubernetes": ("change Ray's tokens", {"authOptions": {"enableK8sTokenAuth": True}}),
    "no token by a variable": (
        "change Ray's tokens",
        _head(containers=[{"env": [{"name": "RAY_AUTH_MODE", "value": "disabled"}]}]),
    ),
    "no token by a reference": (
        "change Ray's tokens",
        _worker(containers=[{"env": [{"name": "RAY_AUTH_MODE", "valueFrom": {"fieldRef": {"fieldPath": "spec"}}}]}]),
    ),
    "a load balancer": ("open Services", {"headGroupSpec": {"serviceType": "LoadBalancer"}}),
    "a port of every node": ("open Services", {"headGroupSpec": {"serviceType": "NodePort"}}),
    "a Service by another name": ("open Services", {"headGroupSpec": {"serviceType": "ExternalName"}}),
    "an address of its own": ("open Services", {"headGroupSpec": {"headService": {"spec": _OPEN}}}),
    "a load balancer of its own": (
        "open Services",
        {"headGroupSpec": {"headService": {"spec": {"type": "LoadBalancer", "ports": _OPEN["ports"]}}}},
    ),
    "annotations of its Service": ("open Services", {"headServiceAnnotations": {"cloud.google.com/neg": "{}"}}),
    "an Ingress": ("open Ingresses", {"headGroupSpec": {"enableIngress": True}}),
    "a folder of the node": ("mount folders", _volume(hostPath={"path": "/"})),
    "a file server by its address": ("mount folders", _volume(nfs={"server": "10.0.0.2", "path": "/"})),
    "disks over the network": (
        "mount folders",
        _volume(iscsi={"targetPortal": "10.0.0.2", "iqn": "iqn.2001-04.com.example:x", "lun": 0}),
    ),
    "pods in another's name": (
        "give pods labels of another",
        {"workerGroupSpecs": [{"template": {"metadata": {"labels": {"berth/engineer": "another"}}}}]},
    ),
    "pods in another's name by Ray's labels": (
        "give pods labels of another",
        {"workerGroupSpecs": [{"labels": {"berth/engineer": "another"}}]},
    ),
    "a head in another's name by Ray's labels": (
        "give pods labels of another",
        {"headGroupSpec": {"labels": {"berth/stack": "another"}}},
    ),
}
"""Words of the refusal and change of a RayCluster's spec, by what it would be."""

GOOD_CLUSTERS: dict[str, Object] = {
    "as it is": {},
    "fewer workers": {"workerGroupSpecs": [{"replicas": 0}]},
    "another image": _worker(containers=[{"image": "example.invalid/another"}]),
    "volumes of the berth": _volume(ephemeral={"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}),
    "Ray's labels": {"workerGroupSpecs": [{"labels": {"tier": "large"}}]},
    "a Service inside": {"headGroupSpec": {"serviceType": "ClusterIP"}},
}


def ray_objects(cluster: Object, name: str, change: Mapping[str, Any]) -> dict[str, Object]:
    """A RayJob, a RayService and a RayCronJob with a changed spec of a RayCluster, by kind."""
    spec = complete(over(copy.deepcopy(cluster["spec"]), change))
    job = {"entrypoint": "true", "submissionMode": "HTTPMode", "rayClusterSpec": spec}
    specs: dict[str, Object] = {
        "RayJob": job,
        "RayService": {"serveConfigV2": "applications: []", "rayClusterConfig": spec},
        "RayCronJob": {"schedule": "0 * * * *", "jobTemplate": job},
    }
    return {
        kind: {"apiVersion": "ray.io/v1", "kind": kind, "metadata": {"name": f"{name}-{kind.lower()}"}, "spec": of_kind}
        for kind, of_kind in specs.items()
    }


def complete(spec: Object) -> Object:
    """A spec whose further groups have what the API requires of the first one."""
    first, *further = spec["workerGroupSpecs"]
    return {**spec, "workerGroupSpecs": [first, *(over(copy.deepcopy(first), group) for group in further)]}

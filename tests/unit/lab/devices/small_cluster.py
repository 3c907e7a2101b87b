"""A cluster in memory: a small API, the DaemonSet controller and KWOK's kubelet."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

from berth.components.cluster.api import ClusterApi, NotFoundError
from berth.components.cluster.scheduling import selected, untolerated
from berth.lab.devices.api import Api
from berth.lab.devices.gpu_nodes import GpuNodes
from berth.lab.devices.node_features import MASTER, WORKER

Object = dict[str, Any]

NAMESPACE = "gpu-operator"
TOLERATED = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
PLURALS = ("nodes", "pods", "deployments", "daemonsets", "clusterpolicies", "runtimeclasses", "configmaps", "events")


class SmallCluster(ClusterApi):
    """Objects by their plural, and the requests that the lab's controller makes."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Object]] = {plural: {} for plural in PLURALS}
        self._numbers = 0

    def add(self, plural: str, name: str, **parts: Any) -> Object:
        """Add an object; `labels`, `annotations` and `namespace` go into its metadata."""
        self._numbers += 1
        metadata = {"name": name, "uid": f"u{self._numbers}", "generation": 1}
        metadata["creationTimestamp"] = f"{self._numbers:04}"
        metadata |= {key: parts.pop(key) for key in ("labels", "annotations", "namespace") if key in parts}
        self.objects[plural][name] = {"apiVersion": "v1", "kind": plural, "metadata": metadata, **parts}
        return self.objects[plural][name]

    def add_node(self, name: str, *taints: Object, **labels: str) -> None:
        annotations = {"kwok.x-k8s.io/node": "fake"}
        self.add("nodes", name, labels=labels, annotations=annotations, spec={"taints": list(taints)}, status={})

    def install(self, spec: Object, config: dict[str, str], *, tolerations: list[Object] | None = None) -> None:
        """Install the objects of the GPU Operator's chart, and a ConfigMap."""
        for name, labels in (("gpu-operator", {}), ("nfd-master", MASTER)):
            self.add("deployments", name, labels=labels, namespace=NAMESPACE, status={"availableReplicas": 1})
        template = {"metadata": {"labels": WORKER}, "spec": {"tolerations": tolerations or TOLERATED, "containers": []}}
        self.add("daemonsets", "nfd-worker", labels=WORKER, namespace=NAMESPACE, spec={"template": template})
        self.add("configmaps", "configs", data=config)
        self.add("clusterpolicies", "cluster-policy", spec=spec)

    def content(self) -> str:
        """Return the objects except events, to see whether something has changed."""
        return json.dumps({key: value for key, value in self.objects.items() if key != "events"}, sort_keys=True)

    def run(self, waiting: Mapping[str, list[str]] | None = None) -> None:
        """Reconcile pods and statuses of DaemonSets, as a control plane and kubelets do.

        Args:
            waiting: nodes with a pod that is not ready, by DaemonSet, beside pods that the lab
                holds.
        """
        pods, target = self.objects["pods"], {}
        for name, daemonset in self.objects["daemonsets"].items():
            spec = daemonset["spec"]["template"]["spec"]
            for node, found in self.objects["nodes"].items():
                barred = untolerated(found["spec"]["taints"], spec.get("tolerations") or [])
                if selected(spec, found["metadata"]["labels"]) and not barred:
                    target[f"{name}@{node}"] = (daemonset, node)
        for name in list(pods):
            if name not in target or pods[name]["template"] != target[name][0]["spec"]["template"]["spec"]:
                del pods[name]
        for name, (daemonset, node) in target.items():
            if name not in pods:
                template = copy.deepcopy(daemonset["spec"]["template"])
                spec = template["spec"] | {"nodeName": node}
                labels = template["metadata"]["labels"]
                status: Object = {}
                more = {"spec": spec, "status": status, "template": template["spec"]}
                self.add("pods", name, labels=labels, namespace=NAMESPACE, **more)
            if not pods[name]["status"].get("podIP"):
                condition = {"type": "Ready", "status": "True"}
                pods[name]["status"] = {"podIP": "10.0.0.1", "phase": "Running", "conditions": [condition]}
        for name, daemonset in self.objects["daemonsets"].items():
            own = [pods[key] for key, (owner, _) in target.items() if owner["metadata"]["name"] == name]
            ready = [pod for pod in own if pod["status"]["conditions"][0]["status"] == "True"]
            count = sum(pod["spec"]["nodeName"] not in (waiting or {}).get(name, []) for pod in ready)
            daemonset["status"] = {"desiredNumberScheduled": len(own), "updatedNumberScheduled": len(own)}
            daemonset["status"] |= {"numberAvailable": count, "numberUnavailable": len(own) - count}
            daemonset["status"]["observedGeneration"] = 1

    def request(
        self, method: str, path: str, body: Any = None, query: dict[str, str] | None = None, content_type: str = ""
    ) -> Object:
        """Answer one request."""
        assert content_type or method != "PATCH"
        steps = path.strip("/").split("/")
        plural = next(step for step in reversed(steps) if step in PLURALS)
        rest = steps[len(steps) - steps[::-1].index(plural) :]
        found = self.objects[plural]
        if method == "GET" and not rest:
            return {"items": copy.deepcopy([thing for thing in found.values() if matches(thing, query or {})])}
        if method == "POST":
            body = copy.deepcopy(body)
            thing = self.add(plural, body["metadata"]["name"], **{key: body[key] for key in body.keys() & {"spec"}})
            thing["metadata"] = {**thing["metadata"], **body["metadata"]}
            return thing
        if rest[0] not in found:
            raise NotFoundError(404, {"reason": "NotFound", "message": path})
        if method == "DELETE":
            return found.pop(rest[0])
        if method == "PUT":
            found[rest[0]]["spec"] = copy.deepcopy(body["spec"])
            found[rest[0]]["metadata"] |= copy.deepcopy(body["metadata"])
        elif method == "PATCH":
            found[rest[0]] = merged(found[rest[0]], body)
        return copy.deepcopy(found[rest[0]])


def matches(thing: Object, query: dict[str, str]) -> bool:
    labels = thing["metadata"].get("labels") or {}
    name = query.get("fieldSelector", "").removeprefix("metadata.name=")
    selector = query.get("labelSelector", "")
    if selector.startswith("app in "):
        return labels.get("app") in selector.removeprefix("app in (").removesuffix(")").split(",")
    pairs = [pair.split("=") for pair in selector.split(",") if pair]
    return name in {"", thing["metadata"]["name"]} and all(labels.get(key) == value for key, value in pairs)


def merged(thing: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(thing) if isinstance(thing, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


class World:
    """A cluster with the lab's GPU programs in it."""

    def __init__(self) -> None:
        self.cluster = SmallCluster()
        self._programs = GpuNodes(Api(self.cluster))

    def settle(self) -> None:
        for _ in range(20):
            before = self.cluster.content()
            self._programs.step()
            self.cluster.run()
            if self.cluster.content() == before:
                return
        raise AssertionError("the lab's GPU programs do not come to rest")

    def devices(self, name: str) -> dict[str, str]:
        found = self.cluster.objects["nodes"][name]["status"].get("allocatable") or {}
        return {resource: count for resource, count in found.items() if count != "0"}

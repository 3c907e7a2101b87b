"""A cluster in memory for the lab's GPU programs: an API as small as they need, the DaemonSet controller, and KWOK's kubelet."""

from __future__ import annotations

import copy
import json
from typing import Any

from berth.components.cluster.api import NotFoundError
from berth.lab.devices.autoscaler import selected, tolerated

Object = dict[str, Any]

NAMESPACE = "gpu-operator"
WORKER = {"app.kubernetes.io/name": "node-feature-discovery", "role": "worker"}
MASTER = WORKER | {"role": "master"}
TOLERATED = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
PLURALS = ("nodes", "pods", "deployments", "daemonsets", "clusterpolicies", "runtimeclasses", "configmaps", "events")


class SmallCluster:
    """Objects by their plural, and the requests that the lab's controller makes of them."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Object]] = {plural: {} for plural in PLURALS}
        self._numbers = 0

    def add(self, plural: str, name: str, **parts: Any) -> Object:
        """Add an object; `labels`, `annotations` and `namespace` go into its metadata."""
        self._numbers += 1
        metadata = {
            "name": name,
            "uid": f"u{self._numbers}",
            "creationTimestamp": f"{self._numbers:04}",
            "generation": 1,
        }
        metadata |= {key: parts.pop(key) for key in ("labels", "annotations", "namespace") if key in parts}
        made = {"apiVersion": "v1", "kind": plural, "metadata": metadata, **parts}
        self.objects[plural][name] = made
        return made

    def add_node(self, name: str, *taints: Object, **labels: str) -> None:
        annotations = {"kwok.x-k8s.io/node": "fake"}
        labels = {key.replace("__", "/"): value for key, value in labels.items()}
        self.add("nodes", name, labels=labels, annotations=annotations, spec={"taints": list(taints)}, status={})

    def install(self, spec: Object, config: dict[str, str], *, tolerations: list[Object] | None = None) -> None:
        """Install the objects of the chart: the operator, node feature discovery, a ConfigMap and the ClusterPolicy."""
        for name, labels in (("gpu-operator", {}), ("nfd-master", MASTER)):
            self.add("deployments", name, labels=labels, namespace=NAMESPACE, status={"availableReplicas": 1})
        template = {"metadata": {"labels": WORKER}, "spec": {"tolerations": tolerations or TOLERATED, "containers": []}}
        self.add("daemonsets", "nfd-worker", labels=WORKER, namespace=NAMESPACE, spec={"template": template})
        self.add("configmaps", "configs", data=config)
        self.add("clusterpolicies", "cluster-policy", spec=spec)

    def run(self) -> None:
        """Reconcile the DaemonSets' pods and statuses, as a control plane and its kubelets do automatically."""
        pods = self.objects["pods"]
        wanted = {}
        for name, daemonset in self.objects["daemonsets"].items():
            template = daemonset["spec"]["template"]
            for node, found in self.objects["nodes"].items():
                taints = found["spec"]["taints"]
                if selected(template["spec"], found["metadata"]["labels"]) and tolerated(taints, template["spec"]):
                    wanted[f"{name}-{node}"] = (daemonset, node)
        for name in [name for name in pods if name not in wanted or not self._same(pods[name], wanted[name][0])]:
            del pods[name]
        for name, (daemonset, node) in wanted.items():
            if name not in pods:
                template = copy.deepcopy(daemonset["spec"]["template"])
                spec = template["spec"] | {"nodeName": node}
                self.add("pods", name, labels=template["metadata"]["labels"], namespace=NAMESPACE, spec=spec, status={})
        for pod in pods.values():
            if not pod["status"].get("podIP"):
                condition = {"type": "Ready", "status": "True"}
                pod["status"] = {"podIP": "10.0.0.1", "phase": "Running", "conditions": [condition]}
        for name, daemonset in self.objects["daemonsets"].items():
            own = [pods[key] for key, (owner, _) in wanted.items() if owner["metadata"]["name"] == name]
            ready = [pod for pod in own if pod["status"]["conditions"][0]["status"] == "True"]
            counts = {"desiredNumberScheduled": len(own), "updatedNumberScheduled": len(own)}
            counts |= {
                "numberAvailable": len(ready),
                "numberUnavailable": len(own) - len(ready),
                "observedGeneration": 1,
            }
            daemonset["status"] = counts

    @staticmethod
    def _same(pod: Object, daemonset: Object) -> bool:
        spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
        return bool(spec == daemonset["spec"]["template"]["spec"])

    def request(
        self, method: str, path: str, body: Any = None, query: dict[str, str] | None = None, content_type: str = ""
    ) -> Object:
        """One request, as the real client makes it."""
        assert content_type or method != "PATCH"
        steps = path.strip("/").split("/")
        plural = next(step for step in reversed(steps) if step in PLURALS)
        rest = steps[len(steps) - steps[::-1].index(plural) :]
        found = self.objects[plural]
        if method == "GET" and not rest:
            return {"items": copy.deepcopy([each for each in found.values() if matches(each, query or {})])}
        if method == "POST":
            name = body["metadata"].get("name") or f"event-{self._numbers}"
            body = copy.deepcopy(body)
            made = self.add(plural, name, **{key: body[key] for key in body.keys() & {"spec", "message", "reason"}})
            made["metadata"] = {**body["metadata"], "name": name, "uid": made["metadata"]["uid"], "generation": 1}
            return made
        if rest[0] not in found:
            raise NotFoundError(404, {"reason": "NotFound", "message": path})
        if method == "DELETE":
            return found.pop(rest[0])
        if method == "PUT":
            found[rest[0]] |= copy.deepcopy({"spec": body["spec"]})
            found[rest[0]]["metadata"]["annotations"] = body["metadata"]["annotations"]
        elif method == "PATCH":
            found[rest[0]] = merged(found[rest[0]], body)
        return copy.deepcopy(found[rest[0]])

    def list(self, path: str, **query: str) -> tuple[list[Object], str]:
        return self.request("GET", path, query=query)["items"], ""

    def get(self, path: str) -> Object | None:
        try:
            return self.request("GET", path)
        except NotFoundError:
            return None

    def text(self) -> str:
        """Everything, to see whether something changed."""
        return json.dumps({key: value for key, value in self.objects.items() if key != "events"}, sort_keys=True)


def matches(thing: Object, query: dict[str, str]) -> bool:
    labels = thing["metadata"].get("labels") or {}
    name = query.get("fieldSelector", "").removeprefix("metadata.name=")
    selector = query.get("labelSelector", "")
    if selector.startswith("app in "):
        return labels.get("app") in selector.removeprefix("app in (").removesuffix(")").split(",")
    pairs = [each.split("=") for each in selector.split(",") if each]
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

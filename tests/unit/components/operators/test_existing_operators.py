"""Operators that an existing cluster has already: cases of existing_operators.yaml."""

from typing import Any

import pytest

from berth.components.operators.existing_gpu_operator import CLUSTER_POLICIES
from berth.components.operators.existing_operators import problems_of_existing_operators
from tests.unit.cases import over, says, table
from tests.unit.loaded import environment_of
from tests.unit.recorded_cluster import RecordedCluster

BASE: dict[str, Any] = {
    "cluster": {"existing": {"kubeconfig": "~/.kube/config"}},
    "sharing": {"any": {"kind": "time-slicing", "replicas": 4}},
    "pools": {
        "cpu": {"machineType": "n2-standard-16", "nodes": 1},
        "dev": {"machineType": "g2-standard-24", "nodes": 2, "sharing": "any"},
    },
}


def helm(release: str, namespace: str) -> dict[str, str]:
    return (
        {"meta.helm.sh/release-name": release, "meta.helm.sh/release-namespace": namespace}
        if release
        else {}
    )


def cluster(case: dict[str, Any]) -> RecordedCluster:
    objects: dict[str, list[dict[str, Any]]] = {}
    for given in case.get("workloads", []):
        metadata: dict[str, Any] = {key: given[key] for key in ("name", "namespace")}
        metadata["annotations"] = helm(given.get("release", ""), given["namespace"])
        metadata["labels"] = {"app.kubernetes.io/managed-by": "berth"} if given.get("berth") else {}
        metadata["managedFields"] = [{"manager": given["manager"]}] if "manager" in given else []
        metadata["ownerReferences"] = [{"kind": given["owner"]}] if "owner" in given else []
        spec = {"template": {"spec": {"containers": [{"image": given["image"]}]}}}
        path = f"/apis/apps/v1/{given['kind'].lower()}s"
        objects.setdefault(path, []).append({"metadata": metadata, "spec": spec})
    for left in case.get("left", []):
        kind, _, name = left.partition("/")
        metadata = {"name": name, "annotations": helm("nvidia-gpu-operator", "gpu-operator")}
        objects[f"/apis/rbac.authorization.k8s.io/v1/{kind}"] = [{"metadata": metadata}]
    if "policy" in case:
        metadata = {
            "name": "cluster-policy",
            "annotations": helm("nvidia-gpu-operator", "gpu-operator"),
        }
        status = {"namespace": "gpu-operator"}
        objects[CLUSTER_POLICIES] = [
            {"metadata": metadata, "spec": case["policy"], "status": status}
        ]
    if "config" in case:
        metadata = {"name": "mine", "namespace": "gpu-operator"}
        objects["/api/v1/configmaps"] = [{"metadata": metadata, "data": case["config"]}]
    return RecordedCluster(objects)


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=case["name"]) for case in table(__file__, "existing_operators.yaml")],
)
def test_found(case: dict[str, Any]) -> None:
    settings = environment_of("dev", over(BASE, case.get("settings", {}))).settings
    texts = [
        f"{problem.where}: {problem.message}"
        for problem in problems_of_existing_operators(cluster(case), settings)
    ]
    assert len(texts) == len(case["found"]), texts
    assert [
        words for words in case["found"] if not any(says(text, words) for text in texts)
    ] == [], texts

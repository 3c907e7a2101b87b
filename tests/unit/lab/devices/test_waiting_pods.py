"""Pods that name Secrets, and the pod of the chart's Job, on a server that is busy at first."""

from typing import Any

import pytest

from berth.components.cluster.api import ClusterApi, ConflictError
from berth.lab.api import Api
from berth.lab.devices.waiting_pods import WaitingPods

POD = "/api/v1/namespaces/gpu-operator/pods/upgrade"
DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clusterpolicies.nvidia.com"
PLACE = "/api/v1/namespaces/n/secrets/hf"


class Server(ClusterApi):
    """Server of some objects by path; it refuses its first writes."""

    def __init__(self, objects: dict[str, dict[str, Any]], *failures: Exception) -> None:
        self.objects = objects
        self._failures = list(failures)
        self.written: list[tuple[str, Any]] = []

    def get(self, path: str) -> dict[str, Any] | None:
        return self.objects.get(path)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: dict[str, str] | None = None,
        content_type: str = "",
    ) -> dict[str, Any]:
        assert (method, bool(content_type or query)) == ("PATCH", True)
        if self._failures:
            raise self._failures.pop(0)
        self.written.append((path, body))
        return {}


def test_definitions_are_applied_though_a_write_failed_at_first() -> None:
    metadata: dict[str, Any] = {"name": "upgrade", "namespace": "gpu-operator", "uid": "1"}
    metadata |= {"ownerReferences": [{"kind": "Job", "name": "upgrade-crd"}]}
    pod = {"metadata": metadata, "spec": {"schedulingGates": [{"name": "lab.berth/upgrade-crd"}]}}
    config_map = "/api/v1/namespaces/gpu-operator/configmaps/upgrade-crd"
    text = "metadata: {name: clusterpolicies.nvidia.com}"
    server = Server({POD: pod, config_map: {"data": {"a.yaml": text}}}, ConflictError(409, {}))
    waiting = WaitingPods(Api(server))
    waiting.see(pod, gone=False)
    assert server.written == []
    waiting.step()
    waiting.step()
    assert [path for path, _ in server.written] == [DEFINITION, POD]
    assert server.written[1][1] == [{"op": "remove", "path": "/spec/schedulingGates"}]


@pytest.mark.parametrize(
    ("secret", "message"),
    [
        (None, 'secret "hf" not found'),
        ({"data": {"other": ""}}, "couldn't find key token in Secret n/hf"),
    ],
)
def test_a_pod_waits_for_the_secret_that_it_names(
    secret: dict[str, Any] | None, message: str
) -> None:
    variables = [
        {"name": "LOG", "value": "1"},
        {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}},
        {
            "name": "MAYBE",
            "valueFrom": {"secretKeyRef": {"name": "none", "key": "none", "optional": True}},
        },
    ]
    pod: dict[str, Any] = {
        "metadata": {"name": "p", "namespace": "n", "uid": "1"},
        "spec": {"containers": [{"name": "main", "image": "i", "env": variables}]},
        "status": {"podIP": "10.0.0.1"},
    }
    server = Server({"/api/v1/namespaces/n/pods/p": pod} | ({PLACE: secret} if secret else {}))
    waiting = WaitingPods(Api(server))
    waiting.see(pod, gone=False)
    (status, _event) = (body for _, body in server.written)
    assert status["status"]["phase"] == "Pending"
    (container,) = status["status"]["containerStatuses"]
    assert container["state"] == {
        "waiting": {"reason": "CreateContainerConfigError", "message": message}
    }
    pod["status"] |= status["status"]
    waiting.step()
    assert len(server.written) == 2, "nothing has changed"
    server.objects[PLACE] = {"data": {"token": ""}}
    waiting.step()
    assert server.written[2:] == [
        ("/api/v1/namespaces/n/pods/p/status", {"status": {"podIP": None, "podIPs": None}})
    ]

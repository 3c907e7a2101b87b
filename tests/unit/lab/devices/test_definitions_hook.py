"""Job of the GPU Operator's chart that upgrades definitions, on a server that is busy at first."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from berth.components.cluster.api import ClusterApi, ClusterError, ConflictError
from berth.lab.devices import definitions_hook, handlers
from berth.lab.devices.api import Api

POD = "/api/v1/namespaces/gpu-operator/pods/upgrade"
DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clusterpolicies.nvidia.com"


class Busy(ClusterApi):
    """Server that fails its first writes, and holds one pod behind the hook's gate."""

    def __init__(self, *failures: Exception) -> None:
        self._failures = list(failures)
        self.written: list[str] = []
        self.pod: dict[str, Any] = {
            "metadata": {
                "name": "upgrade",
                "namespace": "gpu-operator",
                "ownerReferences": [{"kind": "Job", "name": "upgrade-crd"}],
            },
            "spec": {"schedulingGates": [{"name": "lab.berth/upgrade-crd"}]},
        }

    def get(self, path: str) -> dict[str, Any]:
        if path == POD:
            return self.pod
        return {"data": {"a.yaml": "metadata: {name: clusterpolicies.nvidia.com}"}}

    def request(
        self, method: str, path: str, body: Any = None, query: dict[str, str] | None = None, content_type: str = ""
    ) -> dict[str, Any]:
        assert content_type or query
        if self._failures:
            raise self._failures.pop(0)
        self.written.append(f"{method} {path}")
        if path == POD:
            assert body[0]["path"] == "/spec/schedulingGates"
            self.pod = {**self.pod, "spec": {}}
        return {}


@pytest.mark.parametrize("failure", [ClusterError("the server is busy"), ConflictError(409, {})])
def test_definitions_are_applied_though_a_write_failed_at_first(
    failure: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handlers, "_RETRY_SECONDS", 0.0)
    server = Busy(failure)
    asyncio.run(
        handlers._insist("pod", partial(asyncio.to_thread, definitions_hook.play, Api(server), server.pod))  # noqa: SLF001
    )
    assert server.written == [f"PATCH {DEFINITION}", f"PATCH {POD}"]
    assert not definitions_hook.is_waiting(server.pod)

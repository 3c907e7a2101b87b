"""A simulated cloud of its own for each test, with a fleet that remembers nodes instead of
having an API server.
"""

from __future__ import annotations

import copy
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from berth.components.hardware.names import POOL_LABEL
from berth.lab.plugins.gcp.fleet import Fleet
from berth.lab.plugins.gcp.nodes import expected, manifest
from berth.lab.plugins.gcp.provider import SimulatedGoogleCloud
from berth.lab.plugins.gcp.store import Store
from berth.lab.plugins.provider import (
    CheckRequest,
    CreateRequest,
    DeleteRequest,
    DiffRequest,
    ReadRequest,
    UpdateRequest,
)

if TYPE_CHECKING:
    from pathlib import Path

    from berth.lab.plugins.gcp.store import Record
    from berth.lab.plugins.provider import DiffResult, ReadResult

PROJECT, REGION, ZONE = "berth-lab", "us-central1", "us-central1-b"

Inputs = dict[str, Any]


class RememberedFleet(Fleet):
    """Nodes as manifests in a dict, by name."""

    def __init__(self) -> None:
        self.there: dict[str, Any] = {}
        self.defined = 0
        self.classes_defined = 0
        self.cleared = 0

    def endpoint(self) -> tuple[str, str]:
        return "127.0.0.1:6443", "Y2VydGlmaWNhdGU="

    def version(self) -> str:
        return "v1.36.3"

    def define_ray(self) -> None:
        self.defined += 1

    def define_storage(self, inputs: dict[str, Any]) -> None:
        pass

    def define_network_classes(self) -> None:
        self.classes_defined += 1

    def clear(self) -> list[str]:
        self.cleared += 1
        return []

    def nodes(self, pool: str) -> dict[str, Any]:
        return {name: node for name, node in self.there.items() if node["metadata"]["labels"][POOL_LABEL] == pool}

    def reconcile(self, pool: Record) -> None:
        self.remove(list(self.nodes(pool.name)))
        for name, (zone, number) in expected(pool).items():
            self.there[name] = manifest(pool, zone, number, self.version())

    def remove(self, names: list[str]) -> None:
        for name in names:
            del self.there[name]


class Listener:
    def __init__(self) -> None:
        self.warnings: list[str] = []

    def status(self, urn: str, message: str) -> None:
        pass

    def info(self, urn: str, message: str) -> None:
        pass

    def warn(self, urn: str, message: str) -> None:
        del urn
        self.warnings.append(message)


class Patient(threading.Event):
    """A provider's `canceled` event that waits for nothing, and notes the seconds that each
    wait was to take.
    """

    def __init__(self) -> None:
        super().__init__()
        self.waited: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waited.append(timeout or 0.0)
        return False


@dataclass
class Simulated:
    """The provider as the engine would use it, with the inputs of a fleet to start from."""

    provider: SimulatedGoogleCloud
    store: Store
    fleet: RememberedFleet
    warnings: list[str]
    states: dict[str, tuple[Inputs, Inputs]] = field(default_factory=dict)

    def check(self, token: str, **inputs: Any) -> tuple[Inputs, list[tuple[str, str]]]:
        result = self.provider.check(CheckRequest(_urn(token), {}, inputs, b"\x01\x02\x03\x04"))
        return result.inputs, result.failures

    def create(self, token: str, **inputs: Any) -> str:
        checked, failures = self.check(token, **inputs)
        assert not failures
        resource, outputs = self.provider.create(CreateRequest(_urn(token), checked, 0, preview=False))
        self.states[resource] = (checked, outputs)
        return resource

    def diff(self, token: str, resource: str, **inputs: Any) -> DiffResult:
        checked, _ = self.check(token, **inputs)
        olds, outputs = self.states[resource]
        return self.provider.diff(DiffRequest(_urn(token), resource, outputs, olds, checked, []))

    def update(self, token: str, resource: str, **inputs: Any) -> Inputs:
        checked, failures = self.check(token, **inputs)
        assert not failures
        olds, outputs = self.states[resource]
        new = self.provider.update(UpdateRequest(_urn(token), resource, outputs, olds, checked, 0, [], preview=False))
        self.states[resource] = (checked, new)
        return new

    def read(self, token: str, resource: str) -> ReadResult:
        olds, outputs = self.states.get(resource, ({}, {}))
        return self.provider.read(ReadRequest(_urn(token), resource, outputs, olds))

    def delete(self, token: str, resource: str) -> None:
        olds, outputs = self.states[resource]
        self.provider.delete(DeleteRequest(_urn(token), resource, outputs, olds, 0))

    def network(self, name: str = "gpu", **more: Any) -> str:
        return self.create(NETWORK, name=name, autoCreateSubnetworks=False, **more)

    def subnetwork(self, network: str, name: str = "gpu", cidr: str = "10.0.0.0/20", **more: Any) -> str:
        return self.create(
            SUBNETWORK, **{"name": name, "network": network, "ipCidrRange": cidr, "region": REGION} | more
        )

    def cluster(self, **more: Any) -> str:
        network = self.network()
        return self.create(CLUSTER, **(cluster_inputs(network, self.subnetwork(network)) | more))


NETWORK = "gcp:compute/network:Network"
SUBNETWORK = "gcp:compute/subnetwork:Subnetwork"
FIREWALL = "gcp:compute/firewall:Firewall"
CLUSTER = "gcp:container/cluster:Cluster"
POOL = "gcp:container/nodePool:NodePool"

A4: Inputs = {
    "machineType": "a4-highgpu-8g",
    "guestAccelerators": [
        {"type": "nvidia-b200", "count": 8, "gpuDriverInstallationConfig": {"gpuDriverVersion": "LATEST"}}
    ],
    "ephemeralStorageLocalSsdConfig": {"localSsdCount": 32},
    "labels": {"berth.dev/pool": "whole"},
}


def cluster_inputs(network: str, subnetwork: str, **more: Any) -> Inputs:
    return {
        "name": "fleet",
        "location": ZONE,
        "network": network,
        "subnetwork": subnetwork,
        "removeDefaultNodePool": True,
        "initialNodeCount": 1,
        "deletionProtection": False,
        "datapathProvider": "ADVANCED_DATAPATH",
        "enableMultiNetworking": True,
    } | more


def pool_inputs(cluster: str, config: Inputs | None = None, **more: Any) -> Inputs:
    return {"name": "a4", "cluster": cluster, "nodeCount": 1, "nodeConfig": copy.deepcopy(A4) | (config or {})} | more


def _urn(token: str) -> str:
    return f"urn:pulumi:stack::project::{token}::name"


@pytest.fixture
def simulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Simulated:
    monkeypatch.delenv("BERTH_LAB_GKE_LATENCY", raising=False)
    store, fleet = Store(tmp_path / "cloud"), RememberedFleet()
    provider = SimulatedGoogleCloud(store, fleet)
    listener = Listener()
    provider.engine = listener
    provider.configure({"project": PROJECT, "zone": ZONE, "region": REGION})
    return Simulated(provider, store, fleet, listener.warnings)

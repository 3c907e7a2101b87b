"""A simulated cloud of its own for each test, with a fleet that remembers nodes instead of
having an API server.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2

from berth.components.hardware.names import POOL_LABEL
from berth.lab.plugins.gcp.engine import Engine
from berth.lab.plugins.gcp.errors import ProviderError
from berth.lab.plugins.gcp.fleet import SimulatedFleet
from berth.lab.plugins.gcp.kinds import Kind
from berth.lab.plugins.gcp.nodes import expected, manifest
from berth.lab.plugins.gcp.protocol import message_properties, plain_properties
from berth.lab.plugins.gcp.provider import SimulatedGoogleCloud
from berth.lab.plugins.gcp.retries import Clock
from berth.lab.plugins.gcp.store import Store, StoredRecord

PROJECT = "berth-lab"
REGION = "us-central1"
ZONE = "us-central1-b"

Inputs = dict[str, Any]


class RememberedFleet(SimulatedFleet):
    """Nodes as manifests in a dict, by name."""

    def __init__(self) -> None:
        self.there: dict[str, Any] = {}
        self.defined = 0
        self.cleared = 0

    def endpoint(self) -> tuple[str, str]:
        return "127.0.0.1:6443", "Y2VydGlmaWNhdGU="

    def version(self) -> str:
        return "v1.36.3"

    def define_ray(self) -> None:
        self.defined += 1

    def create(self, manifests: list[dict[str, Any]]) -> None:
        pass

    def clear(self) -> list[str]:
        self.cleared += 1
        return []

    def nodes(self, pool: str) -> dict[str, Any]:
        return {
            name: node
            for name, node in self.there.items()
            if node["metadata"]["labels"][POOL_LABEL] == pool
        }

    def reconcile(self, pool: StoredRecord) -> None:
        self.remove(list(self.nodes(pool.name)))
        for name, (zone, number) in expected(pool).items():
            self.there[name] = manifest(pool, zone, number, self.version())

    def remove(self, names: list[str]) -> None:
        for name in names:
            del self.there[name]


class Listener(Engine):
    def __init__(self) -> None:
        self.warnings: list[str] = []

    def status(self, urn: str, message: str) -> None:
        pass

    def warn(self, urn: str, message: str) -> None:
        del urn
        self.warnings.append(message)


class Hurried(Clock):
    """Time that passes at once; `pauses` has what was waited."""

    def __init__(self) -> None:
        self.pauses: list[float] = []
        self.meanwhile: Callable[[float], None] = lambda _now: None

    def now(self) -> float:
        return sum(self.pauses)

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.meanwhile(self.now())


class Context:
    """A call's context; a call that is aborted raises the text."""

    def set_trailing_metadata(self, metadata: Any) -> None:
        pass

    def abort(self, code: grpc.StatusCode, text: str) -> None:
        del code
        raise ProviderError(text)


@dataclass
class Simulated:
    """The provider as the engine would use it, with the inputs of a fleet to start from."""

    provider: SimulatedGoogleCloud
    store: Store
    fleet: RememberedFleet
    warnings: list[str]
    clock: Hurried
    states: dict[str, tuple[Inputs, Inputs]] = field(default_factory=dict)

    def check(self, token: str, **inputs: Any) -> tuple[Inputs, list[tuple[str, str]]]:
        seed = b"\x01\x02\x03\x04"
        request = provider_pb2.CheckRequest(
            urn=urn_of(token), news=message_properties(inputs), randomSeed=seed
        )
        result = self.provider.Check(request, Context())
        return plain_properties(result.inputs), [
            (failure.property, failure.reason) for failure in result.failures
        ]

    def create(self, token: str, timeout: float = 0, **inputs: Any) -> str:
        checked, failures = self.check(token, **inputs)
        assert not failures
        request = provider_pb2.CreateRequest(
            urn=urn_of(token), properties=message_properties(checked), timeout=timeout
        )
        result = self.provider.Create(request, Context())
        self.states[result.id] = (checked, plain_properties(result.properties))
        return str(result.id)

    def diff(self, token: str, resource: str, **inputs: Any) -> dict[str, Kind]:
        checked, _ = self.check(token, **inputs)
        olds, outputs = map(message_properties, self.states[resource])
        request = provider_pb2.DiffRequest(
            urn=urn_of(token),
            id=resource,
            olds=outputs,
            old_inputs=olds,
            news=message_properties(checked),
        )
        result = self.provider.Diff(request, Context())
        return {path: Kind(found.kind) for path, found in result.detailedDiff.items()}

    def update(self, token: str, resource: str, timeout: float = 0, **inputs: Any) -> Inputs:
        checked, failures = self.check(token, **inputs)
        assert not failures
        olds, outputs = map(message_properties, self.states[resource])
        request = provider_pb2.UpdateRequest(
            urn=urn_of(token),
            id=resource,
            olds=outputs,
            old_inputs=olds,
            news=message_properties(checked),
            timeout=timeout,
        )
        new = plain_properties(self.provider.Update(request, Context()).properties)
        self.states[resource] = (checked, new)
        return new

    def read(self, token: str, resource: str) -> tuple[str, Inputs, Inputs]:
        """Id, outputs and inputs of a resource; empty if it is gone."""
        olds, outputs = map(message_properties, self.states.get(resource, ({}, {})))
        request = provider_pb2.ReadRequest(
            urn=urn_of(token), id=resource, properties=outputs, inputs=olds
        )
        result = self.provider.Read(request, Context())
        return result.id, plain_properties(result.properties), plain_properties(result.inputs)

    def delete(self, token: str, resource: str) -> None:
        olds, outputs = map(message_properties, self.states[resource])
        request = provider_pb2.DeleteRequest(
            urn=urn_of(token), id=resource, properties=outputs, old_inputs=olds
        )
        self.provider.Delete(request, Context())

    def network(self, name: str = "gpu", **more: Any) -> str:
        return self.create(NETWORK, name=name, autoCreateSubnetworks=False, **more)

    def subnetwork(
        self, network: str, name: str = "gpu", cidr: str = "10.0.0.0/20", **more: Any
    ) -> str:
        return self.create(
            SUBNETWORK,
            **{"name": name, "network": network, "ipCidrRange": cidr, "region": REGION} | more,
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
        {
            "type": "nvidia-b200",
            "count": 8,
            "gpuDriverInstallationConfig": {"gpuDriverVersion": "LATEST"},
        }
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
    config = copy.deepcopy(A4) | (config or {})
    return {
        "name": "a4",
        "cluster": cluster,
        "location": ZONE,
        "nodeCount": 1,
        "nodeConfig": config,
    } | more


def urn_of(token: str) -> str:
    return f"urn:pulumi:stack::project::{token}::name"


@pytest.fixture
def simulated(tmp_path: Path) -> Simulated:
    store = Store(tmp_path / "cloud")
    fleet = RememberedFleet()
    listener = Listener()
    clock = Hurried()
    provider = SimulatedGoogleCloud(store, fleet, listener, clock)
    settings = {"project": PROJECT}
    provider.Configure(provider_pb2.ConfigureRequest(args=message_properties(settings)), Context())
    return Simulated(provider, store, fleet, listener.warnings, clock)

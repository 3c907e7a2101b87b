"""Traffic between berths, judged by cyclonus under the NetworkPolicies."""

import itertools
import json
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.unit.cases import table

Object = dict[str, Any]

RAY_PORTS = (6379, 8265, 10001)
TABLE = table(__file__, "traffic.yaml")

Verdict = tuple[bool, bool]
"""The receiver's policies let it in; the sender's let it out."""

ALLOWED: Verdict = (True, True)
DENIED: Verdict = (False, False)
VERDICTS = {"allowed": ALLOWED, "denied": DENIED, "not in": (False, True), "not out": (True, False)}


@dataclass(frozen=True)
class Peer:
    """Endpoint of traffic.

    Attributes:
        name: for people.
        address: its IPv4 address.
        namespace: name of its namespace; empty for what is no pod.
        namespace_labels: labels of its namespace.
        labels: its own.
    """

    name: str
    address: str
    namespace: str = ""
    namespace_labels: tuple[tuple[str, str], ...] = ()
    labels: tuple[tuple[str, str], ...] = ()

    @property
    def document(self) -> Object:
        """Document of the endpoint for cyclonus."""
        inside = {
            "Namespace": self.namespace,
            "NamespaceLabels": dict(self.namespace_labels),
            "PodLabels": dict(self.labels),
        }
        return {"Internal": inside if self.namespace else None, "IP": self.address}


@dataclass(frozen=True)
class Case:
    """Traffic, with the expected verdict."""

    source: Peer
    target: Peer
    port: int
    expected: Verdict
    protocol: str = "TCP"

    def __str__(self) -> str:
        return f"{self.source.name} → {self.target.name}:{self.port}/{self.protocol}"


@dataclass(frozen=True)
class BerthPods:
    """The pods of one berth."""

    owner: str
    head: Peer
    worker: Peer


def verdicts(judge: Path, policies: Iterable[Object], cases: Iterable[Case]) -> list[Verdict]:
    """Verdicts of cyclonus."""
    traffic = [
        {
            "Source": case.source.document,
            "Destination": case.target.document,
            "ResolvedPort": case.port,
            "Protocol": case.protocol,
        }
        for case in cases
    ]
    question = json.dumps({"policies": list(policies), "traffic": traffic})
    done = subprocess.run(
        [judge], input=question, capture_output=True, text=True, check=True, timeout=60
    )
    return [(line["Ingress"], line["Egress"]) for line in json.loads(done.stdout)]


def wrong(judge: Path, policies: Iterable[Object], cases: Iterable[Case]) -> list[str]:
    """Cases whose verdict is not the expected one."""
    given = list(cases)
    return [
        f"{case}: {found}, not {case.expected}"
        for case, found in zip(given, verdicts(judge, policies, given), strict=True)
        if found != case.expected
    ]


def between(berths: Iterable[BerthPods]) -> Iterator[Case]:
    """Cases between all pods of every ordered pair of berths, on every port of Ray's: denied by
    both sides.
    """
    given = list(berths)
    for one in given:
        for other in given:
            if one is other:
                continue
            for source in (one.head, one.worker):
                for target in (other.head, other.worker):
                    yield from (Case(source, target, port, DENIED) for port in RAY_PORTS)


def within(berth: BerthPods, operator: Peer, stranger: Peer, kube_system: Object) -> Iterator[Case]:
    """Cases of a berth's own pods, and of traffic to them from elsewhere: traffic.yaml.

    Args:
        berth: the berth; its head has Ray's autoscaler beside it.
        operator: the KubeRay operator's pod.
        stranger: a pod of a namespace that is no berth's and has no policies.
        kube_system: labels of namespace kube-system.
    """
    labels = {
        "kube-system": tuple(kube_system.items()),
        "default": stranger.namespace_labels,
        "gmp-system": (("kubernetes.io/metadata.name", "gmp-system"),),
    }
    peers = {"head": berth.head, "worker": berth.worker, "operator": operator, "stranger": stranger}
    for name, peer in TABLE["peers"].items():
        namespace = peer.get("namespace", "")
        own = tuple(peer.get("labels", {}).items())
        peers[name] = Peer(name, peer["address"], namespace, labels.get(namespace, ()), own)
    for sources, targets, ports, verdict, *protocols in TABLE["cases"]:
        for source, target, port, protocol in itertools.product(
            sources, targets, ports, protocols or ["TCP"]
        ):
            yield Case(peers[source], peers[target], port, VERDICTS[verdict], protocol)

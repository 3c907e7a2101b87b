"""Traffic between berths, judged by cyclonus under the NetworkPolicies."""

import json
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Object = dict[str, Any]

RAY_PORTS = (6379, 8265, 10001)
_HEAD = ("ray.io/node-type", "head")

Verdict = tuple[bool, bool]
"""The receiver's policies let it in; the sender's let it out."""

ALLOWED: Verdict = (True, True)
DENIED: Verdict = (False, False)
NOT_IN: Verdict = (False, True)
NOT_OUT: Verdict = (True, False)


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
    done = subprocess.run([judge], input=question, capture_output=True, text=True, check=True, timeout=60)
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
    """Cases of a berth's own pods, and of traffic to them from elsewhere.

    Args:
        berth: the berth; its head has Ray's autoscaler beside it.
        operator: the KubeRay operator's pod.
        stranger: a pod of a namespace that is no berth's and has no policies.
        kube_system: labels of namespace kube-system.
    """
    head, worker = berth.head, berth.worker

    def system(name: str, app: str) -> Peer:
        return Peer(name, "10.4.9.9", "kube-system", tuple(kube_system.items()), (("k8s-app", app),))

    # Workers choose their ports among 10002 to 19999
    # (https://docs.ray.io/en/latest/ray-core/configure.html#ports-configurations).
    for port in (*RAY_PORTS, 10245, 52365):
        yield Case(worker, head, port, ALLOWED)
        yield Case(head, worker, port, ALLOWED)
    for protocol in ("UDP", "TCP"):
        yield Case(worker, system("kube-dns", "kube-dns"), 53, ALLOWED, protocol)
        yield Case(head, system("NodeLocal DNSCache", "node-local-dns"), 53, ALLOWED, protocol)
        yield Case(worker, Peer("NodeLocal DNSCache's address", "169.254.20.10"), 53, ALLOWED, protocol)
        yield Case(worker, Peer("Cloud DNS", "169.254.169.254"), 53, ALLOWED, protocol)
    yield Case(worker, system("kube-dns", "kube-dns"), 9153, NOT_OUT)
    yield Case(worker, Peer("NodeLocal DNSCache's address", "169.254.20.10"), 9253, NOT_OUT)
    yield Case(worker, system("something else of the cluster", "metrics-server"), 443, NOT_OUT)
    for port, verdict in ((8265, ALLOWED), (8000, ALLOWED), (6379, DENIED), (10001, DENIED)):
        yield Case(operator, head, port, verdict)
    yield from _where_a_head_redirects(operator, berth, stranger, system("kube-dns", "kube-dns"))
    for port in RAY_PORTS:
        yield Case(stranger, head, port, NOT_IN)
        yield Case(stranger, worker, port, NOT_IN)
        yield Case(Peer("the internet", "203.0.113.9"), head, port, NOT_IN)
        yield Case(worker, stranger, port, NOT_OUT)
    yield Case(worker, Peer("a package index", "151.101.0.223"), 443, ALLOWED)
    for address in ("10.128.0.5", "172.16.0.2", "192.168.1.1", "100.64.0.1", "198.18.0.1", "240.0.0.1"):
        yield Case(worker, Peer("a host of the VPC", address), 443, NOT_OUT)
        yield Case(head, Peer("a host of the VPC", address), 22, NOT_OUT)
    yield Case(worker, Peer("something link-local", "169.254.1.1"), 80, NOT_OUT)
    yield from _with_the_clusters_servers(berth, stranger)


def _where_a_head_redirects(operator: Peer, berth: BerthPods, stranger: Peer, kube_dns: Peer) -> Iterator[Case]:
    """Cases of the KubeRay operator, which follows redirects of a tenant's head."""
    for port in (8265, 8000):
        yield Case(operator, berth.worker, port, NOT_OUT)
        yield Case(operator, stranger, port, NOT_OUT)
        for address in ("10.128.0.5", "172.16.0.2", "203.0.113.9", "169.254.169.254"):
            yield Case(operator, Peer("a host that a head names", address), port, NOT_OUT)
    a_head = Peer("a head outside of berths", "10.4.22.2", "default", stranger.namespace_labels, (_HEAD,))
    yield Case(operator, a_head, 8265, NOT_OUT)
    for address in ("10.128.0.5", "203.0.113.9", "169.254.169.254"):
        yield Case(operator, Peer("a web server", address), 80, NOT_OUT)
    yield Case(operator, Peer("the metadata server over TLS", "169.254.169.254"), 443, NOT_OUT)
    yield Case(operator, Peer("the API server", "172.16.0.2"), 443, ALLOWED)
    yield Case(operator, kube_dns, 53, ALLOWED, "UDP")


def _with_the_clusters_servers(berth: BerthPods, stranger: Peer) -> Iterator[Case]:
    """Cases of the API server, the metadata server, the collector of metrics, and imitations."""
    head, worker = berth.head, berth.worker
    for port in (443, 6443):
        yield Case(head, Peer("the API server", "172.16.0.2"), port, ALLOWED)
    metadata, without_dataplane = (
        Peer("the metadata server", "169.254.169.254"),
        Peer("the metadata server without Dataplane V2", "169.254.169.252"),
    )
    for port in (80, 8080):
        yield Case(worker, metadata, port, ALLOWED)
    for port in (987, 988):
        yield Case(worker, without_dataplane, port, ALLOWED)
    for server in (metadata, without_dataplane):
        yield Case(worker, server, 22, NOT_OUT)
        yield Case(head, server, 443, NOT_OUT)
    collector = Peer(
        "the collector of metrics", "10.4.9.8", "gmp-system", (("kubernetes.io/metadata.name", "gmp-system"),)
    )
    for pod in (head, worker):
        yield Case(collector, pod, 8080, ALLOWED)
        yield Case(collector, pod, 8265, NOT_IN)
        yield Case(stranger, pod, 8080, NOT_IN)
    for app in ("kube-dns", "node-local-dns"):
        other = Peer(f"{app} of another namespace", "10.4.9.7", "dns", (), (("k8s-app", app),))
        yield Case(worker, other, 53, NOT_OUT)

"""Likely causes of a failed fabric proof, each with a command that shows whether it is so. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from berth.components.fabric import HOST_LIBRARIES
from berth.components.proof.checks import Check
from berth.components.proof.fabric.claims import Expected
from berth.components.proof.fabric.evidence import Evidence
from berth.components.proof.fabric.verdicts import Findings


@dataclass(frozen=True)
class Cause:
    """Likely cause.

    Attributes:
        text: the cause and its remedy.
        look: a command that shows whether it is so.
    """

    text: str
    look: str


def causes_of(
    checks: Sequence[Check],
    expected: Expected,
    namespace: str,
    evidence: Evidence | None,
    findings: Findings | None,
) -> list[Cause]:
    """Return the likely causes of failed checks, the likeliest first.

    Earlier causes explain later ones: a cluster without claims cannot use gIB, and one on TCP is slow.

    Args:
        checks: all checks of the run.
        expected: the RayCluster as its settings describe it.
        namespace: its namespace.
        evidence: evidence of the program.
        findings: verdicts on the evidence.
    """
    where = _Where(expected, namespace)
    wrong = {check.name for check in checks if check.verdict == "fail"}
    found: list[Cause] = []
    if "claims" in wrong:
        found += _claims(where)
    found += [cause for name, cause in _simple(where).items() if name in wrong]
    if "all-reduce" in wrong:
        found += _program(evidence, where)
    if "transport" in wrong and "claims" not in wrong:
        found += _transport(findings, where)
    if "NICs used" in wrong and "claims" not in wrong:
        found += _few_nics(evidence, where)
    if findings and (problem := next((text for log in findings.logs for text in log.tuner_problems), "")):
        text = f"gIB's tuner has no good configuration ({problem}): nccl.profile must be the machine type's"
        found.append(Cause(text, where.in_worker("sh -c 'env | grep NCCL_; ls /usr/local/gib/configs'")))
    if "bandwidth" in wrong and not wrong & {"claims", "transport", "NICs used"}:
        found += _slow(where)
    return found


@dataclass(frozen=True)
class _Where:
    """RayCluster in commands."""

    expected: Expected
    namespace: str

    @property
    def workers(self) -> str:
        """Options by which kubectl finds the workers."""
        return f"-n {self.namespace} -l ray.io/cluster={self.expected.cluster},ray.io/node-type=worker"

    @property
    def environment(self) -> str:
        """Command that shows NCCL's variables."""
        return f"kubectl get pods {self.workers} -o yaml | grep -A1 NCCL_"

    def in_worker(self, command: str) -> str:
        """Return a command that runs another one in the first worker."""
        return f"kubectl exec -n {self.namespace} $(kubectl get pods {self.workers} -o name | head -1) -- {command}"

    def in_head(self, command: str) -> str:
        """Return a command that runs another one in the head."""
        head = f"-n {self.namespace} -l ray.io/cluster={self.expected.cluster},ray.io/node-type=head"
        return f"kubectl exec -n {self.namespace} $(kubectl get pods {head} -o name) -- {command}"


def _simple(where: _Where) -> dict[str, Cause]:
    """Return the cause of each check that has only one likely cause, in the order of the report."""
    return {
        "pairs": Cause(
            "claims were written without a PCIe root to match, or the drivers publish none",
            "kubectl get resourceslices -o yaml | grep -B2 -A2 pcieRoot",
        ),
        "scheduling": Cause(
            "a worker waits for a node, a GPU or a NIC that another pod holds", f"kubectl describe pods {where.workers}"
        ),
        "locked memory": Cause(
            "containers inherit their limit of locked memory from their node's containerd, and Kubernetes has no setting"
            " for it: raise containerd's, then restart the RayCluster's pods (docs/fabric.md, locked memory)",
            where.in_worker("sh -c 'ulimit -l'"),
        ),
        "NCCL versions": Cause(
            f"the node's NCCL in {HOST_LIBRARIES}, which older installers of gIB put there, stands before the image's:"
            " recreate the nodes or remove it (docs/fabric.md), or name the image's folder in nccl.libraryPath",
            where.in_worker(f"ls -l {HOST_LIBRARIES} /usr/local/gib/lib64"),
        ),
        "sums": Cause(
            "a GPU or a NIC computes or carries wrongly: cordon the node, and have it repaired",
            "kubectl get events -A --field-selector involvedObject.kind=Node",
        ),
    }


def _claims(where: _Where) -> Iterator[Cause]:
    expected = where.expected
    if not expected.nics:
        text = f"its settings ask for no NICs ({expected.why_no_nics}): docs/fabric.md says how a worker gets them"
        yield Cause(text, "berth check")
        return
    yield Cause(
        "the RayCluster is older than its settings: bring its stack up again (pulumi up)",
        f"kubectl get raycluster {expected.cluster} -n {where.namespace} -o yaml | grep -A3 resourceClaims",
    )
    yield Cause(
        "no NIC is free, or none is published: another pod holds them, or their driver does not run on the node",
        f"kubectl get resourceclaims -A; kubectl get resourceslices; kubectl describe pods {where.workers}",
    )


def _program(evidence: Evidence | None, where: _Where) -> Iterator[Cause]:
    problem = evidence.problem if evidence else None
    match problem.kind if problem else "":
        case "busy":
            yield Cause(
                "other jobs hold GPUs of this RayCluster: wait for them, or end them", where.in_head("ray status -v")
            )
        case "missing":
            text = "Ray does not know all workers, or counts other GPUs than they have"
            yield Cause(text, where.in_head("ray list nodes --detail"))
        case "no-torch":
            text = "the image has no torch: take one that has (settings `image`); images/ has the Dockerfile of one"
            yield Cause(text, where.in_worker("python -c 'import torch'"))
        case "died":
            yield Cause(
                "a worker ended meanwhile: out of memory, evicted, or its node is gone",
                f"kubectl describe pods {where.workers}; kubectl get events -n {where.namespace}",
            )
        case "timeout":
            yield Cause(
                "the pods do not reach each other: a network policy, a firewall, or NICs of different networks under one"
                " number",
                where.in_worker("cat /proc/net/fib_trie"),
            )
            yield Cause(
                "there was too little time", f"berth verify fabric … --cluster {where.expected.cluster} --timeout 20m"
            )
        case "error":
            text = "NCCL, gloo or the GPU fails; the text above is its own, and evidence.json has NCCL's whole log"
            yield Cause(text, f"kubectl logs {where.workers} --tail=100")
        case _:
            yield Cause(
                "the job did not run to its end: the submitter has no node, its image no `ray`, or the head does not"
                " answer",
                f"kubectl get rayjobs,jobs,pods -n {where.namespace}; {where.in_head('ray job list')}",
            )


def _transport(findings: Findings | None, where: _Where) -> Iterator[Cause]:
    match findings.transport.way if findings and findings.transport else "gloo":
        case "tcp" | "other plugin":
            reason = next((text for log in findings.logs for text in log.no_plugin), "") if findings else ""
            yield Cause(
                f"gIB was not found or could not start{f' ({reason})' if reason else ''}: its installer must have run on"
                f" the node, and {HOST_LIBRARIES} be in LD_LIBRARY_PATH",
                "kubectl get pods -n kube-system -o wide | grep nccl-rdma-installer",
            )
            yield Cause("NCCL_NET is not gIB: nccl.profile or nccl.env says otherwise", where.environment)
            text = "the pods have no RDMA devices, though they have claims"
            yield Cause(text, where.in_worker("ls /dev/infiniband /sys/class/infiniband"))
        case "staged":
            text = "a NIC is not on its GPU's PCIe root: NCCL_NET_GDR_LEVEL (PIX) then forbids GPUDirect RDMA"
            yield Cause(text, where.environment)
            text = "the GPU's driver shares no memory with NICs: NCCL's log then has `GPU Direct RDMA Disabled for HCA`"
            yield Cause(text, "kubectl get nodes -L cloud.google.com/gke-gpu-driver-version")
        case "gloo":
            text = "the NICs have no address, so that gloo took the pods' own network"
            yield Cause(text, where.in_worker("cat /proc/net/fib_trie"))
        case _:
            text = "NCCL ended early, or writes its log elsewhere (NCCL_DEBUG_FILE in the image's /etc/nccl.conf)"
            yield Cause(text, where.in_worker("cat /etc/nccl.conf"))


def _few_nics(evidence: Evidence | None, where: _Where) -> Iterator[Cause]:
    if evidence and evidence.backend == "gloo":
        text = "several NICs are in one subnet, so that the first carries what is for all"
        yield Cause(text, where.in_worker("cat /proc/net/route"))
        return
    text = "a NIC is down, or its RDMA device is not in the pod"
    yield Cause(text, where.in_worker("sh -c 'cat /sys/class/net/*/operstate; ls /sys/class/infiniband'"))
    yield Cause("NCCL_IB_HCA or NCCL_NETDEVS_POLICY leaves some out", where.environment)
    yield Cause("NICs are not beside the GPUs", "kubectl get resourceslices -o yaml | grep -A1 pcieRoot")


def _slow(where: _Where) -> Iterator[Cause]:
    text = "nodes are far apart: give the pool `compactPlacement`, or one block of a reservation"
    yield Cause(text, f"kubectl get nodes -L {_BLOCK}")
    text = "something else uses the NICs or the GPUs"
    yield Cause(text, f"kubectl get pods -A -o wide; kubectl describe pods {where.workers}")
    yield Cause("NCCL is tuned for another machine type: nccl.profile must be the pool's", where.environment)
    text = "one node is slow: verify smaller clusters on some of the nodes, and cordon the one that all slow ones have"
    yield Cause(text, f"kubectl get pods {where.workers} -o wide")


_BLOCK = "cloud.google.com/gce-topology-block,cloud.google.com/gce-topology-subblock"

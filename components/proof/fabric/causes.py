"""Likely causes of a failed fabric proof, with their remedies. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from berth.components.fabric import HOST_LIBRARIES
from berth.components.proof.checks import Check
from berth.components.proof.fabric.claims import Expected
from berth.components.proof.fabric.evidence import FabricEvidence
from berth.components.proof.fabric.nccl_log import ProcessLog, Way
from berth.components.proof.fabric.verdicts import Findings


@dataclass(frozen=True)
class Cause:
    """Likely cause with its remedy, and a command that shows whether it is so."""

    text: str
    look: str


@dataclass(frozen=True)
class FailedProof:
    """A failed proof, as its causes depend on it.

    Attributes:
        failed: names of the checks that failed.
        expected: the RayCluster by its settings.
        namespace: namespace of the RayCluster.
        evidence: evidence of the program; None where it left none.
        findings: verdicts on the evidence; None without evidence.
    """

    failed: frozenset[str]
    expected: Expected
    namespace: str
    evidence: FabricEvidence | None
    findings: Findings | None

    @property
    def workers(self) -> str:
        """Arguments of kubectl for the worker pods."""
        return f"-n {self.namespace} -l ray.io/cluster={self._cluster},ray.io/node-type=worker"

    @property
    def nccl_variables(self) -> str:
        """Command that shows NCCL's variables of the workers."""
        return f"kubectl get pods {self.workers} -o yaml | grep -A1 NCCL_"

    def in_worker(self, command: str) -> str:
        """Return a command that runs in a worker."""
        pod = f"$(kubectl get pods {self.workers} -o name | head -1)"
        return f"kubectl exec -n {self.namespace} {pod} -- {command}"

    def in_head(self, command: str) -> str:
        """Return a command that runs in the head."""
        head = f"-n {self.namespace} -l ray.io/cluster={self._cluster},ray.io/node-type=head"
        pod = f"$(kubectl get pods {head} -o name)"
        return f"kubectl exec -n {self.namespace} {pod} -- {command}"

    @property
    def by_gloo(self) -> bool:
        """Whether gloo summed, without GPUs."""
        return self.evidence is not None and self.evidence.backend == "gloo"

    @property
    def way(self) -> Way | None:
        """Way of the tensors; None where NCCL did not carry them."""
        if self.findings is None or self.findings.transport is None:
            return None
        return self.findings.transport.way

    @property
    def missing_plugin(self) -> str:
        """First line of NCCL's logs about a plugin that was not found; empty without one."""
        for log in self._logs:
            if log.no_plugin:
                return log.no_plugin[0]
        return ""

    @property
    def tuner_problem(self) -> str:
        """First line of NCCL's logs about a failure of the tuner; empty without one."""
        for log in self._logs:
            if log.tuner_problems:
                return log.tuner_problems[0]
        return ""

    @property
    def _logs(self) -> tuple[ProcessLog, ...]:
        return self.findings.logs if self.findings else ()

    @property
    def _cluster(self) -> str:
        return self.expected.cluster


def causes_of(
    checks: Sequence[Check],
    expected: Expected,
    namespace: str,
    evidence: FabricEvidence | None,
    findings: Findings | None,
) -> list[Cause]:
    """Return the likely causes of failed checks, the likeliest first.

    Earlier causes explain later ones: a cluster without claims cannot use gIB, and one on TCP is
    slow.
    """
    failed = frozenset(check.name for check in checks if check.verdict == "fail")
    proof = FailedProof(failed, expected, namespace, evidence, findings)
    causes: list[Cause] = []
    for causes_of_check in _CAUSES:
        causes += causes_of_check(proof)
    return causes


def _of_claims(proof: FailedProof) -> Iterator[Cause]:
    if "claims" not in proof.failed:
        return
    if not proof.expected.nics:
        yield Cause(
            f"its settings ask for no NICs ({proof.expected.why_no_nics}): `berth docs"
            " fabric#two-ways-to-the-nics` says how a worker gets them",
            "berth check",
        )
        return
    yield Cause(
        "the RayCluster is older than its settings: bring its stack up again (berth up)",
        f"kubectl get raycluster {proof.expected.cluster} -n {proof.namespace} -o yaml | grep -A3"
        " resourceClaims",
    )
    yield Cause(
        "no NIC is free, or none is published: another pod holds them, or their driver does not run"
        " on the node",
        "kubectl get resourceclaims -A; kubectl get resourceslices; kubectl describe pods"
        f" {proof.workers}",
    )


def _of_pairs(proof: FailedProof) -> Iterator[Cause]:
    if "pairs" in proof.failed:
        yield Cause(
            "claims were written without a PCIe root to match, or the drivers publish none",
            "kubectl get resourceslices -o yaml | grep -B2 -A2 pcieRoot",
        )


def _of_scheduling(proof: FailedProof) -> Iterator[Cause]:
    if "scheduling" in proof.failed:
        yield Cause(
            "a worker waits for a node, a GPU or a NIC that another pod holds",
            f"kubectl describe pods {proof.workers}",
        )


def _of_environment(proof: FailedProof) -> Iterator[Cause]:
    if "environment" not in proof.failed:
        return
    yield Cause(
        "gIB's config checker ends jobs with other values than its own: take the variable out of"
        " nccl.env and env, or write `nccl.profile: gib`; only as a last resort set"
        " NCCL_SHIMNET_SHIM_LAYERS to UNUSED in nccl.env, which turns it off",
        proof.nccl_variables,
    )
    yield Cause(
        "the RayCluster is older than its settings: bring its stack up again (berth up)",
        f"kubectl get pods {proof.workers} -o yaml | grep set_nccl_env",
    )


def _of_locked_memory(proof: FailedProof) -> Iterator[Cause]:
    if "locked memory" in proof.failed:
        yield Cause(
            "containers inherit their limit of locked memory from their node's containerd, and"
            " Kubernetes has no setting for it: raise containerd's, then restart the RayCluster's"
            " pods (`berth docs fabric#locked-memory`)",
            proof.in_worker("sh -c 'ulimit -l'"),
        )


def _of_nccl_versions(proof: FailedProof) -> Iterator[Cause]:
    if "NCCL versions" in proof.failed:
        yield Cause(
            f"the node's NCCL in {HOST_LIBRARIES} or gIB's own folder, where older installers of"
            " gIB put it, stands before the image's: recreate the nodes or remove it"
            " (`berth docs fabric#nccl`), or name the image's folder in nccl.libraryPath",
            proof.in_worker(f"ls -l {HOST_LIBRARIES} /usr/local/gib/lib64"),
        )


def _of_sums(proof: FailedProof) -> Iterator[Cause]:
    if "sums" in proof.failed:
        yield Cause(
            "a GPU or a NIC computes or carries wrongly: cordon the node, and have it repaired",
            "kubectl get events -A --field-selector involvedObject.kind=Node",
        )


def _of_rays_collective(proof: FailedProof) -> Iterator[Cause]:
    if "Ray's collective" in proof.failed:
        yield Cause(
            "the image has no CuPy, by which Ray's collective library calls NCCL, or CuPy finds no"
            " NCCL: nccl.libraryPath",
            proof.in_worker(
                "python -c 'import torch; from cupy.cuda import nccl; print(nccl.get_version())'"
            ),
        )


def _of_the_program(proof: FailedProof) -> Iterator[Cause]:
    # What gIB's config checker ends, it explains.
    if "all-reduce" not in proof.failed or "environment" in proof.failed:
        return
    problem = proof.evidence.problem if proof.evidence else None
    match problem.kind if problem else "":
        case "busy":
            yield Cause(
                "other jobs hold GPUs of this RayCluster: wait for them, or end them",
                proof.in_head("ray status -v"),
            )
        case "missing":
            yield Cause(
                "Ray does not know all workers, or counts other GPUs than they have",
                proof.in_head("ray list nodes --detail"),
            )
        case "no-torch":
            yield Cause(
                "the image has no torch: take one that has (settings `image`); `berth docs"
                " images` has one",
                proof.in_worker("python -c 'import torch'"),
            )
        case "died":
            yield Cause(
                "a worker ended meanwhile: out of memory, evicted, or its node is gone",
                f"kubectl describe pods {proof.workers}; kubectl get events -n {proof.namespace}",
            )
        case "timeout":
            yield Cause(
                "the pods do not reach each other: a network policy, a firewall, or NICs of"
                " different networks under one number",
                proof.in_worker("cat /proc/net/fib_trie"),
            )
            yield Cause(
                "there was too little time",
                f"berth verify fabric … --cluster {proof.expected.cluster} --timeout 20m",
            )
        case "error":
            yield Cause(
                "NCCL, gloo or the GPU fails; the text above is its own, and evidence.json has"
                " NCCL's whole log",
                f"kubectl logs {proof.workers} --tail=100",
            )
        case _:
            yield Cause(
                "the job did not run to its end: the submitter has no node, its image no `ray`, or"
                " the head does not answer",
                f"kubectl get rayjobs,jobs,pods -n {proof.namespace};"
                f" {proof.in_head('ray job list')}",
            )


def _of_transport(proof: FailedProof) -> Iterator[Cause]:
    if "transport" not in proof.failed or "claims" in proof.failed:
        return
    match proof.way:
        case None:
            yield Cause(
                "the NICs have no address, so that gloo took the pods' own network",
                proof.in_worker("cat /proc/net/fib_trie"),
            )
        case "tcp" | "other plugin":
            yield from _of_a_missing_gib(proof)
        case "staged":
            yield Cause(
                "a NIC is not on its GPU's PCIe root: NCCL_NET_GDR_LEVEL (PIX) then forbids"
                " GPUDirect RDMA",
                proof.nccl_variables,
            )
            yield Cause(
                "the GPU's driver shares no memory with NICs: NCCL's log then has `GPU Direct RDMA"
                " Disabled for HCA`",
                "kubectl get nodes -L cloud.google.com/gke-gpu-driver-version",
            )
        case _:
            yield Cause(
                "NCCL ended early, or writes its log elsewhere (NCCL_DEBUG_FILE in the image's"
                " /etc/nccl.conf)",
                proof.in_worker("cat /etc/nccl.conf"),
            )


def _of_a_missing_gib(proof: FailedProof) -> Iterator[Cause]:
    reason = f" ({proof.missing_plugin})" if proof.missing_plugin else ""
    yield Cause(
        f"gIB was not found or could not start{reason}: its installer must have run on the node,"
        f" and {HOST_LIBRARIES} be in LD_LIBRARY_PATH",
        "kubectl get pods -n kube-system -o wide | grep nccl-rdma-installer",
    )
    yield Cause(
        "NCCL_NET is not gIB: nccl.profile or nccl.env says otherwise", proof.nccl_variables
    )
    yield Cause(
        "the pods have no RDMA devices, though they have claims",
        proof.in_worker("ls /dev/infiniband /sys/class/infiniband"),
    )


def _of_unused_nics(proof: FailedProof) -> Iterator[Cause]:
    if "NICs used" not in proof.failed or "claims" in proof.failed:
        return
    if proof.by_gloo:
        yield Cause(
            "several NICs are in one subnet, so that the first carries what is for all",
            proof.in_worker("cat /proc/net/route"),
        )
        return
    yield Cause(
        "a NIC is down, or its RDMA device is not in the pod",
        proof.in_worker("sh -c 'cat /sys/class/net/*/operstate; ls /sys/class/infiniband'"),
    )
    yield Cause("NCCL_IB_HCA or NCCL_NETDEVS_POLICY leaves some out", proof.nccl_variables)
    yield Cause(
        "NICs are not beside the GPUs", "kubectl get resourceslices -o yaml | grep -A1 pcieRoot"
    )


def _of_the_tuner(proof: FailedProof) -> Iterator[Cause]:
    if proof.tuner_problem:
        yield Cause(
            f"gIB's tuner has no good configuration ({proof.tuner_problem}): nccl.profile must be"
            " the machine type's",
            proof.in_worker("sh -c 'env | grep NCCL_; ls /usr/local/gib/configs'"),
        )


def _of_bandwidth(proof: FailedProof) -> Iterator[Cause]:
    if "bandwidth" not in proof.failed or proof.failed & {"claims", "transport", "NICs used"}:
        return
    yield Cause(
        "nodes are far apart: give the pool `compactPlacement`, or one block of a reservation",
        "kubectl get nodes -L"
        " cloud.google.com/gce-topology-block,cloud.google.com/gce-topology-subblock",
    )
    yield Cause(
        "something else uses the NICs or the GPUs",
        f"kubectl get pods -A -o wide; kubectl describe pods {proof.workers}",
    )
    yield Cause(
        "NCCL is tuned for another machine type: nccl.profile must be the pool's",
        proof.nccl_variables,
    )
    yield Cause(
        "one node is slow: verify smaller clusters on some of the nodes, and cordon the one that"
        " all slow ones have",
        f"kubectl get pods {proof.workers} -o wide",
    )


_CAUSES = (
    _of_claims,
    _of_pairs,
    _of_scheduling,
    _of_environment,
    _of_locked_memory,
    _of_nccl_versions,
    _of_sums,
    _of_rays_collective,
    _of_the_program,
    _of_transport,
    _of_unused_nics,
    _of_the_tuner,
    _of_bandwidth,
)
"""Causes in the order of the report."""

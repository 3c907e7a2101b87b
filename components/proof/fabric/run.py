"""Run of the fabric proof: its RayJob is created, waited for, judged and removed."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from berth.components.cluster.api import (
    EVENTS,
    NODES,
    PODS,
    RAY_CLUSTERS,
    RAY_JOBS,
    ClusterError,
    Object,
    in_namespace,
)
from berth.components.cluster.inventory import Claim, Inventory, inventory_of_objects
from berth.components.cluster.nodes import is_simulated
from berth.components.cluster.pods import why_not_ready
from berth.components.cluster.ray_manifest import replicas_of
from berth.components.hardware.names import ResourceApi
from berth.components.proof.checks import SIMULATED, Check
from berth.components.proof.fabric.causes import Cause, causes_of
from berth.components.proof.fabric.claims import Expected, WorkerPod, judge_claims, judge_scheduling
from berth.components.proof.fabric.evidence import (
    FabricEvidence,
    NoEvidenceError,
    progress_in,
    raw_from_log,
)
from berth.components.proof.fabric.job import job_manifest, job_name
from berth.components.proof.fabric.threshold import Threshold
from berth.components.proof.fabric.verdicts import Findings, judge_evidence, without_evidence
from berth.components.proof.proof_run import Run, until_gone
from berth.components.ray import SUBMITTER
from berth.components.ray.live import condition_of

_ENDED = ("Succeeded", "Failed")
_TAIL = "20"


@dataclass(frozen=True)
class FabricResult:
    """Result of a run; `evidence` and `raw` are None where the program did not run or left none."""

    checks: list[Check]
    causes: list[Cause] = field(default_factory=list)
    evidence: FabricEvidence | None = None
    raw: Object | None = None
    findings: Findings | None = None


@dataclass(frozen=True)
class _JobState:
    """RayJob and submitter pod as last seen."""

    job: Object | None
    pod: Object | None

    @property
    def status(self) -> Object:
        """Status of the RayJob."""
        return (self.job or {}).get("status") or {}

    @property
    def phase(self) -> str:
        """Phase of the submitter."""
        return str(((self.pod or {}).get("status") or {}).get("phase") or "")

    @property
    def outcome(self) -> str:
        """How the job ended, by KubeRay."""
        reasons = [self.status[key] for key in ("reason", "message") if self.status.get(key)]
        if reasons:
            return ": ".join(reasons)
        state = self.status.get("jobStatus") or self.status.get("jobDeploymentStatus")
        return f"the job is {state or 'not begun'}"

    @property
    def ended(self) -> bool:
        """Whether the submitter, and the log that it relays, has ended, or will never begin."""
        if self.pod is not None:
            return self.phase in _ENDED
        return self.status.get("jobDeploymentStatus") in ("Complete", "Failed", "ValidationFailed")


@dataclass(kw_only=True)
class FabricRun(Run):
    """Run on one RayCluster."""

    namespace: str
    expected: Expected
    threshold: Threshold
    resource_api: ResourceApi
    """Version of resource.k8s.io of the RayCluster's claims."""
    max_bytes: int
    """Size of the largest tensor; 0 for the program's own choice."""
    collective: bool = False
    """Whether Ray's own collective library sums, too."""

    def prove(self) -> FabricResult:
        """Look, run the job and judge it.

        Raises:
            ClusterError: the cluster does not answer, or refuses.
        """
        path = f"{in_namespace(self.namespace, RAY_CLUSTERS)}/{self.expected.cluster}"
        cluster = self.api.get(path)
        if cluster is None:
            reason = f"there is no RayCluster {self.expected.cluster} in namespace {self.namespace}"
            missing = Check("scheduling", "fail", reason)
            return self._result([missing, *without_evidence("skipped", reason)])
        inventory = self._inventory()
        workers = self._workers(inventory)
        expected = replace(self.expected, workers=max(self._desired(cluster), len(workers)))
        scheduling = self._scheduling(cluster, workers, expected)
        before = [*judge_claims(workers, inventory.devices, expected), scheduling]
        if scheduling.verdict == "fail":
            return self._result(
                [*before, *without_evidence("skipped", "not all workers are ready")]
            )
        if any(worker.node is not None and is_simulated(worker.node) for worker in workers):
            return self._result([*before, *without_evidence("simulated", SIMULATED)])
        return self._run_program(cluster, workers, expected, before)

    def _is_one_group(self, cluster: Object) -> bool:
        """Return whether the run is on one of several groups of workers."""
        return bool(self.expected.group) and len(cluster["spec"]["workerGroupSpecs"]) > 1

    def _desired(self, cluster: Object) -> int:
        """Return the number of workers that the RayCluster should have for the run."""
        if not self._is_one_group(cluster):
            return condition_of(cluster).workers_desired
        groups = cluster["spec"]["workerGroupSpecs"]
        return sum(
            replicas_of(group) for group in groups if group["groupName"] == self.expected.group
        )

    def _scheduling(
        self, cluster: Object, workers: Sequence[WorkerPod], expected: Expected
    ) -> Check:
        if condition_of(cluster).state == "suspended":
            return Check("scheduling", "fail", "the RayCluster is suspended")
        if not workers:
            group = f" of group {self.expected.group}" if self._is_one_group(cluster) else ""
            return Check("scheduling", "fail", f"the RayCluster has no workers{group} now")
        return judge_scheduling(workers, expected)

    def _run_program(
        self,
        cluster: Object,
        workers: Sequence[WorkerPod],
        expected: Expected,
        before: Sequence[Check],
    ) -> FabricResult:
        """Run the program on ready workers, and judge its evidence."""
        pods = [worker.name for worker in workers] if self._is_one_group(cluster) else []
        job = job_manifest(
            cluster,
            self.run,
            workers=len(workers),
            gpus=self.expected.gpus,
            max_bytes=self.max_bytes,
            seconds=self.seconds,
            pods=pods,
            collective=self.collective,
        )
        self.api.create(in_namespace(self.namespace, RAY_JOBS), job)
        last = self._wait()
        try:
            raw = raw_from_log(self._log(last))
        except NoEvidenceError as error:
            reason = self._why_none(last, str(error))
            return self._result([*before, *without_evidence("fail", reason)])
        evidence = FabricEvidence.model_validate(raw)
        findings = judge_evidence(evidence, expected, self.threshold)
        return replace(self._result([*before, *findings.checks], evidence, findings), raw=raw)

    def clean_up(self) -> str | None:
        """Remove the RayJob of this run.

        Its own finalizer stops the job in Ray; its submitter goes with it.
        """
        jobs = in_namespace(self.namespace, RAY_JOBS)
        self.remove(jobs)
        return until_gone(lambda: bool(self.objects(jobs)[0]), f"RayJob {job_name(self.run)}")

    def _result(
        self,
        checks: list[Check],
        evidence: FabricEvidence | None = None,
        findings: Findings | None = None,
    ) -> FabricResult:
        causes = causes_of(checks, self.expected, self.namespace, evidence, findings)
        return FabricResult(checks, causes, evidence, findings=findings)

    def _inventory(self) -> Inventory:
        """Return the cluster's devices, and the claims of the namespace."""
        group = f"/apis/resource.k8s.io/{self.resource_api}"
        slices, _ = self.api.list(f"{group}/resourceslices")
        claims, _ = self.api.list(in_namespace(self.namespace, f"{group}/resourceclaims"))
        return inventory_of_objects(slices, claims, (), ())

    def _workers(self, inventory: Inventory) -> list[WorkerPod]:
        selector = f"ray.io/cluster={self.expected.cluster},ray.io/node-type=worker"
        if self.expected.group:
            selector += f",ray.io/group={self.expected.group}"
        pods, _ = self.api.list(in_namespace(self.namespace, PODS), labelSelector=selector)
        nodes = {node["metadata"]["name"]: node for node in self.api.list(NODES)[0]}
        workers = []
        for pod in sorted(pods, key=lambda pod: str(pod["metadata"]["name"])):
            if "deletionTimestamp" in pod["metadata"]:
                continue
            node = nodes.get(pod["spec"].get("nodeName", ""))
            workers.append(WorkerPod(pod, node, self._claims_of(pod, inventory)))
        return workers

    def _claims_of(self, pod: Object, inventory: Inventory) -> tuple[Claim, ...]:
        claims: list[Claim] = []
        for status in pod["status"].get("resourceClaimStatuses") or []:
            name = status.get("resourceClaimName")
            claim = inventory.claim(self.namespace, name) if name else None
            if claim:
                claims.append(claim)
        return tuple(claims)

    def _wait(self) -> _JobState:
        """Return the job once its submitter has ended, or time is up."""
        last = _JobState(None, None)

        def all_ended(jobs: list[Object], pods: list[Object]) -> bool:
            nonlocal last
            last = _JobState(jobs[0] if jobs else None, pods[-1] if pods else None)
            self.report_state(self.expected.cluster, self._progress(last))
            return last.job is None or last.ended

        jobs_path = in_namespace(self.namespace, RAY_JOBS)
        pods_path = in_namespace(self.namespace, PODS)
        self.follow(jobs_path, pods_path, time.monotonic() + self.seconds, all_ended)
        return last

    def _progress(self, seen: _JobState) -> str:
        if seen.job is None:
            return "the RayJob is gone"
        if seen.pod is None:
            return "waiting for KubeRay to submit the job"
        if not _running(seen.pod) and seen.phase not in _ENDED:
            return why_not_ready(seen.pod, "submitter") or ""
        return progress_in(self._log(seen, tailLines=_TAIL)) or "the job is submitted"

    def _log(self, seen: _JobState, **query: str) -> str:
        if seen.pod is None:
            return ""
        path = f"{in_namespace(self.namespace, PODS)}/{seen.pod['metadata']['name']}/log"
        try:
            return self.api.text(path, container=SUBMITTER, **query)
        except ClusterError:
            # Its container has not begun.
            return ""

    def _why_none(self, seen: _JobState, problem: str) -> str:
        """Return why there is no evidence, by the job's last state."""
        if not seen.ended:
            reasons = [f"not ended after {self.timeout}: {self._progress(seen)}"]
        elif seen.job is None:
            reasons = ["the RayJob is gone"]
        else:
            end = progress_in(self._log(seen, tailLines=_TAIL)) or "it is empty"
            reasons = [seen.outcome, f"{problem}; its log ends: {end}"]
        if seen.pod is None:
            fields = f"involvedObject.name={job_name(self.run)},type=Warning"
            events, _ = self.api.list(in_namespace(self.namespace, EVENTS), fieldSelector=fields)
            texts = [str(event.get("message") or event.get("reason")) for event in events]
            reasons += dict.fromkeys(texts)
        return "; ".join(reasons)


def _running(pod: Object) -> bool:
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    return any("running" in (status.get("state") or {}) for status in statuses)

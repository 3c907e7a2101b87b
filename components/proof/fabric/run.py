"""Run of the fabric proof: its RayJob is created, waited for, judged and removed."""

import time
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
from berth.components.cluster.inventory import Inventory, inventory_of_objects
from berth.components.cluster.nodes import is_simulated
from berth.components.cluster.pods import why_not_ready
from berth.components.cluster.ray_manifest import replicas_of
from berth.components.hardware.names import ResourceApi
from berth.components.proof.checks import SIMULATED, Check, Run, until_gone
from berth.components.proof.fabric.causes import Cause, causes_of
from berth.components.proof.fabric.claims import Expected, Worker, judge_claims, judge_scheduling
from berth.components.proof.fabric.evidence import (
    Evidence,
    NoEvidenceError,
    progress_in,
    raw_from_log,
)
from berth.components.proof.fabric.job import job_manifest, job_name
from berth.components.proof.fabric.verdicts import Findings, Threshold, judge, without_evidence
from berth.components.ray import SUBMITTER
from berth.components.ray.live import condition_of

_ENDED = ("Succeeded", "Failed")
_TAIL = "20"


@dataclass(frozen=True)
class Found:
    """Result of a run; `evidence` and `raw` are None where the program did not run or left none."""

    checks: list[Check]
    causes: list[Cause] = field(default_factory=list)
    evidence: Evidence | None = None
    raw: Object | None = None
    findings: Findings | None = None


@dataclass(frozen=True)
class _Seen:
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

    def prove(self) -> Found:
        """Look, run the job and judge it."""
        cluster = self.api.get(
            f"{in_namespace(self.namespace, RAY_CLUSTERS)}/{self.expected.cluster}"
        )
        if cluster is None:
            reason = f"there is no RayCluster {self.expected.cluster} in namespace {self.namespace}"
            return self._found(
                [Check("scheduling", "fail", reason), *without_evidence("skipped", reason)]
            )
        seen = self._devices()
        workers = self._workers(seen)
        condition, groups = condition_of(cluster), cluster["spec"]["workerGroupSpecs"]
        several = bool(self.expected.group) and len(groups) > 1
        desired = condition.workers_desired
        if several:
            desired = sum(
                replicas_of(group) for group in groups if group["groupName"] == self.expected.group
            )
        expected = replace(self.expected, workers=max(desired, len(workers)))
        scheduling = judge_scheduling(workers, expected)
        if condition.state == "suspended":
            scheduling = Check("scheduling", "fail", "the RayCluster is suspended")
        elif not workers:
            of_group = f" of group {self.expected.group}" if several else ""
            scheduling = Check("scheduling", "fail", f"the RayCluster has no workers{of_group} now")
        before = [*judge_claims(workers, seen.devices, expected), scheduling]
        if scheduling.verdict == "fail":
            return self._found([*before, *without_evidence("skipped", "not all workers are ready")])
        if any(worker.node is not None and is_simulated(worker.node) for worker in workers):
            return self._found([*before, *without_evidence("simulated", SIMULATED)])
        job = job_manifest(
            cluster,
            self.run,
            workers=len(workers),
            gpus=self.expected.gpus,
            max_bytes=self.max_bytes,
            seconds=self.seconds,
            pods=[worker.name for worker in workers] if several else [],
            collective=self.collective,
        )
        self.api.create(in_namespace(self.namespace, RAY_JOBS), job)
        last = self._wait()
        try:
            raw = raw_from_log(self._log(last))
        except NoEvidenceError as error:
            return self._found(
                [*before, *without_evidence("fail", self._why_none(last, str(error)))]
            )
        evidence = Evidence.model_validate(raw)
        findings = judge(evidence, expected, self.threshold)
        return replace(self._found([*before, *findings.checks], evidence, findings), raw=raw)

    def clean_up(self) -> str | None:
        """Remove the RayJob of this run.

        Its own finalizer stops the job in Ray; its submitter goes with it.
        """
        jobs = in_namespace(self.namespace, RAY_JOBS)
        self.remove(jobs)
        return until_gone(lambda: bool(self.objects(jobs)[0]), f"RayJob {job_name(self.run)}")

    def _found(
        self,
        checks: list[Check],
        evidence: Evidence | None = None,
        findings: Findings | None = None,
    ) -> Found:
        causes = causes_of(checks, self.expected, self.namespace, evidence, findings)
        return Found(checks, causes, evidence, findings=findings)

    def _devices(self) -> Inventory:
        """Return the cluster's devices, and the claims of the namespace."""
        group = f"/apis/resource.k8s.io/{self.resource_api}"
        slices, _ = self.api.list(f"{group}/resourceslices")
        claims, _ = self.api.list(in_namespace(self.namespace, f"{group}/resourceclaims"))
        return inventory_of_objects(slices, claims, (), ())

    def _workers(self, seen: Inventory) -> list[Worker]:
        selector = f"ray.io/cluster={self.expected.cluster},ray.io/node-type=worker"
        if self.expected.group:
            selector += f",ray.io/group={self.expected.group}"
        pods, _ = self.api.list(in_namespace(self.namespace, PODS), labelSelector=selector)
        nodes = {node["metadata"]["name"]: node for node in self.api.list(NODES)[0]}
        workers = []
        for pod in sorted(pods, key=lambda pod: str(pod["metadata"]["name"])):
            if "deletionTimestamp" in pod["metadata"]:
                continue
            names = [
                entry.get("resourceClaimName")
                for entry in pod["status"].get("resourceClaimStatuses") or []
            ]
            mine = (seen.claim(self.namespace, name) for name in names if name)
            workers.append(
                Worker(pod, nodes.get(pod["spec"].get("nodeName", "")), tuple(filter(None, mine)))
            )
        return workers

    def _wait(self) -> _Seen:
        """Return the job once its submitter has ended, or time is up."""
        last = _Seen(None, None)

        def look(jobs: list[Object], pods: list[Object]) -> bool:
            nonlocal last
            last = _Seen(jobs[0] if jobs else None, pods[-1] if pods else None)
            self.show(self.expected.cluster, self._progress(last))
            return last.job is None or last.ended

        jobs, pods = in_namespace(self.namespace, RAY_JOBS), in_namespace(self.namespace, PODS)
        self.follow(jobs, pods, time.monotonic() + self.seconds, look)
        return last

    def _progress(self, seen: _Seen) -> str:
        if seen.job is None:
            return "the RayJob is gone"
        if seen.pod is None:
            return "waiting for KubeRay to submit the job"
        if not _running(seen.pod) and seen.phase not in _ENDED:
            return why_not_ready(seen.pod, "submitter") or ""
        return progress_in(self._log(seen, tailLines=_TAIL)) or "the job is submitted"

    def _log(self, seen: _Seen, **query: str) -> str:
        if seen.pod is None:
            return ""
        path = f"{in_namespace(self.namespace, PODS)}/{seen.pod['metadata']['name']}/log"
        try:
            return self.api.text(path, container=SUBMITTER, **query)
        except ClusterError:
            # Its container has not begun.
            return ""

    def _why_none(self, seen: _Seen, problem: str) -> str:
        """Return why there is no evidence, by the job's last state."""
        parts = []
        if not seen.ended:
            parts.append(f"not ended after {self.timeout}: {self._progress(seen)}")
        elif seen.job is None:
            parts.append("the RayJob is gone")
        else:
            reason = ": ".join(
                filter(None, [seen.status.get("reason"), seen.status.get("message")])
            )
            state = (
                seen.status.get("jobStatus")
                or seen.status.get("jobDeploymentStatus")
                or "not begun"
            )
            parts.append(reason or f"the job is {state}")
            parts.append(
                f"{problem}; its log ends:"
                f" {progress_in(self._log(seen, tailLines=_TAIL)) or 'it is empty'}"
            )
        if seen.pod is None:
            fields = f"involvedObject.name={job_name(self.run)},type=Warning"
            events, _ = self.api.list(in_namespace(self.namespace, EVENTS), fieldSelector=fields)
            parts += dict.fromkeys(
                str(event.get("message") or event.get("reason")) for event in events
            )
        return "; ".join(parts)


def _running(pod: Object) -> bool:
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    return any("running" in (status.get("state") or {}) for status in statuses)

"""One run of the fabric proof: what is there, the RayJob, what that showed, and its removal."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from berth.components.cluster.api import (
    EVENTS,
    NODES,
    PODS,
    RAY_CLUSTERS,
    RAY_JOBS,
    ClusterApi,
    ClusterError,
    Object,
    within,
)
from berth.components.cluster.pods import why_not_ready
from berth.components.hardware.names import ResourceApi
from berth.components.proof.cuda_vector_add import RUN_LABEL
from berth.components.proof.fabric.causes import Cause, causes_of
from berth.components.proof.fabric.claims import Expected, Worker, judge_claims, judge_scheduling
from berth.components.proof.fabric.evidence import Evidence, NoEvidenceError, evidence_of, progress_in, raw_from_log
from berth.components.proof.fabric.job import Work, job_manifest, job_name
from berth.components.proof.fabric.verdicts import Findings, Threshold, failed, judge, not_run
from berth.components.proof.gpu_evidence import Check, is_simulated
from berth.components.ray import SUBMITTER, condition_of

_LOOK_SECONDS = 2
_RETRY_SECONDS = 1.0
_GONE_SECONDS = 60
_POLL_SECONDS = 0.3
_ENDED = ("Succeeded", "Failed")
_TAIL = "20"


@dataclass(frozen=True)
class Found:
    """What a run found.

    Attributes:
        checks: all that was looked at.
        causes: what most likely explains what failed, the likeliest first.
        evidence: what the program found; None where it did not run or left none.
        raw: the same as it was sent.
        findings: what its evidence was read as.
    """

    checks: list[Check]
    causes: list[Cause] = field(default_factory=list)
    evidence: Evidence | None = None
    raw: Object | None = None
    findings: Findings | None = None


@dataclass(frozen=True)
class _Seen:
    """The RayJob as it was last seen."""

    job: Object | None
    pod: Object | None


@dataclass
class FabricRun:
    """One run, on one RayCluster.

    Attributes:
        api: the cluster.
        namespace: that of the RayCluster.
        expected: what the RayCluster should have.
        threshold: the bandwidth that is expected.
        resource_api: the version of resource.k8s.io in which it claims.
        run: an id that no other run has.
        timeout: for people, how long the job is waited for: `10m`.
        seconds: the same in seconds.
        max_bytes: size of the largest tensor; 0 for the program's own choice.
        report: called with what the job is at, whenever that changes.
    """

    api: ClusterApi
    namespace: str
    expected: Expected
    threshold: Threshold
    resource_api: ResourceApi
    run: str
    timeout: str
    seconds: int
    max_bytes: int
    report: Callable[[str], None]
    _said: str = ""

    def prove(self) -> Found:
        """Look, run the job, and judge it; what was made is still there afterwards.

        Raises:
            ClusterError: the API server can't be asked, or refuses to make the job.
        """
        cluster = self._cluster()
        if cluster is None:
            reason = f"there is no RayCluster {self.expected.cluster} in namespace {self.namespace}"
            return self._found([Check("scheduling", "fail", reason), *not_run(reason)])
        workers = self._workers()
        condition = condition_of(cluster)
        expected = replace(self.expected, workers=max(condition.workers_desired, len(workers)))
        slices, _ = self.api.list(f"/apis/resource.k8s.io/{self.resource_api}/resourceslices")
        scheduling = judge_scheduling(workers, expected)
        if condition.state == "suspended" or not workers:
            reason = (
                "the RayCluster is suspended" if condition.state == "suspended" else "the RayCluster has no workers now"
            )
            scheduling = Check("scheduling", "fail", reason)
        before = [*judge_claims(workers, slices, expected), scheduling]
        if scheduling.verdict == "fail":
            return self._found([*before, *not_run("not all workers are ready")])
        if any(each.node is not None and is_simulated(each.node) for each in workers):
            return self._found([*before, *not_run("", simulated=True)])
        work = Work(len(workers), self.expected.gpus, self.max_bytes, self.seconds)
        self.api.create(within(self.namespace, RAY_JOBS), job_manifest(cluster, work, self.run))
        seen = self._wait()
        try:
            raw = raw_from_log(self._log(seen))
        except NoEvidenceError as error:
            return self._found([*before, *failed(self._why_none(seen, str(error)))])
        evidence = evidence_of(raw)
        findings = judge(evidence, expected, self.threshold)
        found = self._found([*before, *findings.checks], evidence, findings)
        return replace(found, raw=raw)

    def clean_up(self) -> str | None:
        """Remove what this run made, and only that; what had to stay is returned as a sentence.

        The RayJob's own finalizer stops the job in Ray; its submitter goes with it.

        Raises:
            ClusterError: the API server can't be asked.
        """
        for job in self._jobs():
            self.api.delete(
                f"{within(self.namespace, RAY_JOBS)}/{job['metadata']['name']}", str(job["metadata"]["uid"])
            )
        deadline = time.monotonic() + _GONE_SECONDS
        while self._jobs():
            if time.monotonic() >= deadline:
                return f"RayJob {job_name(self.run)} is still being removed after {_GONE_SECONDS} s"
            time.sleep(_POLL_SECONDS)
        return None

    def _found(self, checks: list[Check], evidence: Evidence | None = None, findings: Findings | None = None) -> Found:
        causes = causes_of(checks, self.expected, self.namespace, evidence, findings)
        return Found(checks, causes, evidence, findings=findings)

    def _cluster(self) -> Object | None:
        path = within(self.namespace, RAY_CLUSTERS)
        found, _ = self.api.list(path, fieldSelector=f"metadata.name={self.expected.cluster}")
        return found[0] if found else None

    def _workers(self) -> list[Worker]:
        selector = f"ray.io/cluster={self.expected.cluster},ray.io/node-type=worker"
        pods, _ = self.api.list(within(self.namespace, PODS), labelSelector=selector)
        found, _ = self.api.list(within(self.namespace, f"/apis/resource.k8s.io/{self.resource_api}/resourceclaims"))
        claims = {claim["metadata"]["name"]: claim for claim in found}
        nodes, _ = self.api.list(NODES)
        by_name = {node["metadata"]["name"]: node for node in nodes}
        workers = []
        for pod in sorted(pods, key=lambda pod: str(pod["metadata"]["name"])):
            if "deletionTimestamp" in pod["metadata"]:
                continue
            named = [each.get("resourceClaimName") for each in pod["status"].get("resourceClaimStatuses") or []]
            mine = tuple(claims[name] for name in named if name in claims)
            workers.append(Worker(pod, by_name.get(pod["spec"].get("nodeName", "")), mine))
        return workers

    def _jobs(self) -> list[Object]:
        jobs, _ = self.api.list(within(self.namespace, RAY_JOBS), labelSelector=f"{RUN_LABEL}={self.run}")
        return jobs

    def _wait(self) -> _Seen:
        """The job when its submitter has ended, or the time is up."""
        deadline = time.monotonic() + self.seconds
        mine = f"{RUN_LABEL}={self.run}"
        while True:
            rest = deadline - time.monotonic()
            try:
                jobs, version = self.api.list(within(self.namespace, RAY_JOBS), labelSelector=mine)
                pods, _ = self.api.list(within(self.namespace, PODS), labelSelector=mine)
                seen = _Seen(jobs[0] if jobs else None, pods[-1] if pods else None)
                self._say(seen)
                if rest <= 0 or seen.job is None or _has_ended(seen):
                    return seen
                seconds = max(1, min(_LOOK_SECONDS, int(rest)))
                for _ in self.api.watch(within(self.namespace, RAY_JOBS), version, seconds, labelSelector=mine):
                    break
            except ClusterError:
                if rest <= 0:
                    raise
                time.sleep(_RETRY_SECONDS)

    def _say(self, seen: _Seen) -> None:
        text = self._progress(seen)
        if text and text != self._said:
            self._said = text
            self.report(text)

    def _progress(self, seen: _Seen) -> str:
        if seen.job is None:
            return "the RayJob is gone"
        if seen.pod is None:
            return "waiting for KubeRay to submit the job"
        if not _running(seen.pod) and (seen.pod.get("status") or {}).get("phase") not in _ENDED:
            return why_not_ready(seen.pod, "submitter") or ""
        return progress_in(self._log(seen, tailLines=_TAIL)) or "the job is submitted"

    def _log(self, seen: _Seen, **query: str) -> str:
        if seen.pod is None:
            return ""
        path = f"{within(self.namespace, PODS)}/{seen.pod['metadata']['name']}/log"
        try:
            return self.api.text(path, container=SUBMITTER, **query)
        except ClusterError:
            # Its container has not begun.
            return ""

    def _why_none(self, seen: _Seen, problem: str) -> str:
        """Why there is no evidence, by what is seen last of the job."""
        status = (seen.job or {}).get("status") or {}
        parts = []
        if not _has_ended(seen):
            parts.append(f"not ended after {self.timeout}: {self._progress(seen)}")
        elif seen.job is None:
            parts.append("the RayJob is gone")
        else:
            told = ": ".join(filter(None, [status.get("reason"), status.get("message")]))
            parts.append(
                told or f"the job is {status.get('jobStatus') or status.get('jobDeploymentStatus') or 'not begun'}"
            )
            parts.append(f"{problem}; its log ends: {progress_in(self._log(seen, tailLines=_TAIL)) or 'it is empty'}")
        if seen.pod is None:
            fields = f"involvedObject.name={job_name(self.run)},type=Warning"
            events, _ = self.api.list(within(self.namespace, EVENTS), fieldSelector=fields)
            parts += dict.fromkeys(str(event.get("message") or event.get("reason")) for event in events)
        return "; ".join(parts)


def _has_ended(seen: _Seen) -> bool:
    """The submitter has ended, and so has the log that it relays; or there will be none."""
    if seen.pod is not None and (seen.pod.get("status") or {}).get("phase") in _ENDED:
        return True
    status = (seen.job or {}).get("status") or {}
    return seen.pod is None and status.get("jobDeploymentStatus") in ("Complete", "Failed", "ValidationFailed")


def _running(pod: Object) -> bool:
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    return any("running" in (each.get("state") or {}) for each in statuses)

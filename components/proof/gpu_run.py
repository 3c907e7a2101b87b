"""One run of the GPU proof: Jobs made, waited for and judged with the nodes they ran on, and all of it removed again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from berth.components.cluster.api import (
    EVENTS,
    JOBS,
    NAMESPACES,
    NODES,
    PODS,
    ClusterApi,
    ClusterError,
    ConflictError,
    Object,
    within,
)
from berth.components.hardware.names import POOL_LABEL
from berth.components.proof.cuda_vector_add import (
    CONTAINER,
    NAMESPACE,
    RUN_LABEL,
    job_manifest,
    job_name,
    namespace_manifest,
)
from berth.components.proof.gpu_evidence import (
    Check,
    Run,
    ending,
    is_simulated,
    judge_nodes,
    judge_run,
    not_run,
    progress,
    why_no_job,
)
from berth.components.sharing import Pool

# Events of a Job's own tell when to look again; what its pod waits for is only seen by looking.
_LOOK_SECONDS = 2
_RETRY_SECONDS = 1.0
_GONE_SECONDS = 60
_POLL_SECONDS = 0.3

_JOBS, _PODS, _EVENTS = (within(NAMESPACE, path) for path in (JOBS, PODS, EVENTS))

Nodes = Mapping[str, list[Object]]
"""The nodes that are there, by pool."""


@dataclass(frozen=True)
class PoolProof:
    """What was found of one pool.

    Attributes:
        pool: its name.
        resource: the resource that it should offer.
        checks: all that was looked at.
    """

    pool: str
    resource: str
    checks: list[Check]


@dataclass
class GpuRun:
    """One run, for some pools of one cluster.

    Attributes:
        api: the cluster.
        pools: the pools; each must have GPUs.
        run: an id that no other run has.
        timeout: for people, how long Jobs are waited for: `5m`.
        seconds: the same in seconds.
        keep: what the run made is to stay.
        report: called with a pool's name and what its Job is at, whenever that changes.
    """

    api: ClusterApi
    pools: Sequence[Pool]
    run: str
    timeout: str
    seconds: int
    keep: bool
    report: Callable[[str, str], None]
    _said: dict[str, str] = field(default_factory=dict)

    def prove(self) -> list[PoolProof]:
        """Run everything, and judge it; what was made is still there afterwards.

        Raises:
            ClusterError: the API server can't be asked, or refuses to make the Jobs.
        """
        before = self._nodes()
        pods, _ = self.api.list(PODS)
        reasons = {pool.name: why_no_job(pool, before[pool.name], pods) for pool in self.pools}
        deadline = time.monotonic() + self.seconds
        runs: dict[str, Run] = {}
        wanted = [pool for pool in self.pools if reasons[pool.name] is None]
        if wanted:
            self._make_namespace()
            for pool in wanted:
                manifest = job_manifest(pool, _resource(pool), self.run, self.seconds, keep=self.keep)
                self.api.create(_JOBS, manifest)
            runs = self._wait(wanted, deadline)
        nodes = self._settled(before, deadline)
        by_name = {node["metadata"]["name"]: node for each in nodes.values() for node in each}
        proofs = []
        for pool in self.pools:
            if pool.name in runs:
                ran = judge_run(self._complete(runs[pool.name], by_name), _resource(pool))
            else:
                ran = not_run(reasons[pool.name] or "")
            proofs.append(PoolProof(pool.name, _resource(pool), [*judge_nodes(pool, nodes[pool.name]), *ran]))
        return proofs

    def clean_up(self) -> str | None:
        """Remove what this run made, and only that; what had to stay is returned as a sentence.

        Raises:
            ClusterError: the API server can't be asked.
        """
        jobs, _ = self.api.list(_JOBS)
        mine = [job for job in jobs if _is_of(job, self.run)]
        for job in mine:
            self.api.delete(f"{_JOBS}/{job['metadata']['name']}", _uid(job))
        namespace = self._namespace()
        if namespace is None or not _is_of(namespace, self.run):
            return None
        if len(jobs) > len(mine):
            return f"namespace {NAMESPACE} stays, since Jobs of another run are in it"
        self.api.delete(f"{NAMESPACES}/{NAMESPACE}", _uid(namespace))
        if self._gone(_uid(namespace)):
            return None
        return f"namespace {NAMESPACE} is still being removed after {_GONE_SECONDS} s"

    def _make_namespace(self) -> None:
        """The namespace is there afterwards: made by this run, or found."""
        namespace = self._namespace()
        if namespace is not None and "deletionTimestamp" in namespace["metadata"]:
            self._gone(_uid(namespace))
            namespace = None
        if namespace is None:
            # Another run may be faster: then it is there all the same.
            try:
                self.api.create(NAMESPACES, namespace_manifest(self.run))
            except ConflictError:
                return

    def _namespace(self) -> Object | None:
        found, _ = self.api.list(NAMESPACES, fieldSelector=f"metadata.name={NAMESPACE}")
        return found[0] if found else None

    def _gone(self, uid: str) -> bool:
        """Wait until the namespace with that uid is gone; whether it is."""
        deadline = time.monotonic() + _GONE_SECONDS
        while (namespace := self._namespace()) is not None and _uid(namespace) == uid:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def _wait(self, pools: Sequence[Pool], deadline: float) -> dict[str, Run]:
        """The Jobs when all have ended, or the time is up."""
        mine = f"{RUN_LABEL}={self.run}"
        while True:
            rest = deadline - time.monotonic()
            try:
                jobs, version = self.api.list(_JOBS, labelSelector=mine)
                pods, _ = self.api.list(_PODS, labelSelector=mine)
                runs = {pool.name: _seen(job_name(pool.name, self.run), jobs, pods) for pool in pools}
                self._say(runs)
                if rest <= 0 or all(run.job is None or ending(run.job) for run in runs.values()):
                    return {name: replace(run, waited=self.timeout) for name, run in runs.items()}
                seconds = max(1, min(_LOOK_SECONDS, int(rest)))
                for _ in self.api.watch(_JOBS, version, seconds, labelSelector=mine):
                    break
            except ClusterError:
                if rest <= 0:
                    raise
                time.sleep(_RETRY_SECONDS)

    def _say(self, runs: Mapping[str, Run]) -> None:
        for name, run in runs.items():
            text = progress(run)
            if self._said.get(name) != text:
                self._said[name] = text
                self.report(name, text)

    def _complete(self, run: Run, nodes: Mapping[str, Object]) -> Run:
        """The run with its node, log and events, where there are any."""
        node_name = run.pod and run.pod["spec"].get("nodeName")
        if run.job is None or run.pod is None or not node_name:
            job = run.job["metadata"]["name"] if run.job else ""
            events, _ = self.api.list(_EVENTS, fieldSelector=f"involvedObject.name={job},type=Warning")
            return replace(run, events=events)
        # A node that is gone by now, such as a spot machine, has at least its name.
        node = nodes.get(node_name) or {"metadata": {"name": node_name}}
        if is_simulated(node):
            return replace(run, node=node)
        path = f"{_PODS}/{run.pod['metadata']['name']}/log"
        try:
            log = self.api.text(path, container=CONTAINER, tailLines="20", limitBytes="8192")
        except ClusterError as error:
            return replace(run, node=node, log_problem=str(error))
        return replace(run, node=node, log=log)

    def _settled(self, before: Nodes, deadline: float) -> Nodes:
        """The nodes now; pools that grew during this run have until the deadline to become what they should."""
        known = {_uid(node) for found in before.values() for node in found}
        while True:
            nodes = self._nodes()
            grown = [pool for pool in self.pools if any(_uid(node) not in known for node in nodes[pool.name])]
            checks = [check for pool in grown for check in judge_nodes(pool, nodes[pool.name])]
            if all(check.verdict != "fail" for check in checks) or time.monotonic() >= deadline:
                return nodes
            time.sleep(_RETRY_SECONDS)

    def _nodes(self) -> Nodes:
        found, _ = self.api.list(NODES, labelSelector=POOL_LABEL)
        return {
            pool.name: [node for node in found if node["metadata"]["labels"][POOL_LABEL] == pool.name]
            for pool in self.pools
        }


def _seen(name: str, jobs: Sequence[Object], pods: Sequence[Object]) -> Run:
    job = next((job for job in jobs if job["metadata"]["name"] == name), None)
    uid = job and _uid(job)
    owned = [pod for pod in pods if any(owner["uid"] == uid for owner in pod["metadata"].get("ownerReferences") or [])]
    return Run(job, owned[0] if owned else None)


def _is_of(thing: Object, run: str) -> bool:
    return (thing["metadata"].get("labels") or {}).get(RUN_LABEL) == run


def _uid(thing: Object) -> str:
    return str(thing["metadata"]["uid"])


def _resource(pool: Pool) -> str:
    if pool.offer is None:
        raise ValueError(f"pool {pool.name!r} offers no GPUs")
    return pool.offer.resource

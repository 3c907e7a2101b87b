"""Run of the GPU proof: Jobs are created, waited for, judged with their nodes, and removed."""

import itertools
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from berth.components.cluster.api import (
    EVENTS,
    JOBS,
    NAMESPACES,
    NODES,
    PODS,
    ClusterError,
    ConflictError,
    Object,
    in_namespace,
)
from berth.components.cluster.nodes import is_simulated
from berth.components.core.manifest import Manifest
from berth.components.hardware.names import POOL_LABEL
from berth.components.proof.checks import RUN_LABEL, Check
from berth.components.proof.cuda_vector_add import (
    CONTAINER,
    NAMESPACE,
    job_manifest,
    namespace_manifest,
)
from berth.components.proof.isolation_pods import (
    LOOKS,
    Look,
    judge_look,
    judge_operands,
    look_job,
)
from berth.components.proof.job_verdicts import (
    Ran,
    checks_without_job,
    ending_of,
    job_progress,
    judge_job,
)
from berth.components.proof.node_verdicts import judge_nodes, offer_of, why_no_job
from berth.components.proof.proof_run import Run, uid_of, until_gone
from berth.components.sharing import Pool

_RETRY_SECONDS = 1.0

_JOBS = in_namespace(NAMESPACE, JOBS)
_PODS = in_namespace(NAMESPACE, PODS)
_EVENTS = in_namespace(NAMESPACE, EVENTS)
_RUNTIME_CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"

Nodes = Mapping[str, list[Object]]
"""Existing nodes by pool."""


@dataclass(frozen=True)
class PoolProof:
    """Checks of one pool, which should offer the resource."""

    pool: str
    resource: str
    checks: list[Check]


@dataclass(kw_only=True)
class GpuRun(Run):
    """Run for some pools of one cluster."""

    pools: Sequence[Pool]
    image: str
    keep: bool
    """Whether the objects of the run stay."""

    def prove(self) -> list[PoolProof]:
        """Run and judge everything."""
        before = self._nodes()
        pods, _ = self.api.list(PODS)
        deadline = time.monotonic() + self.seconds
        reasons: dict[str, str] = {}
        jobs: dict[str, Manifest] = {}
        for pool in self.pools:
            reason = why_no_job(pool, before[pool.name], pods)
            if reason is None:
                jobs[pool.name] = job_manifest(
                    pool,
                    self.image,
                    offer_of(pool).resource,
                    self.run,
                    self.seconds,
                    keep=self.keep,
                )
            else:
                reasons[pool.name] = reason
        runs = self._wait(jobs, deadline)
        nodes = self._settled(before, deadline)
        by_name = _by_name(nodes)
        proofs = []
        for pool in self.pools:
            resource = offer_of(pool).resource
            if pool.name in runs:
                of_job = judge_job(self._complete(runs[pool.name], by_name), resource)
            else:
                of_job = checks_without_job(reasons[pool.name])
            checks = [*judge_nodes(pool, nodes[pool.name]), *of_job]
            proofs.append(PoolProof(pool.name, resource, checks))
        return proofs

    def clean_up(self) -> str | None:
        """Remove the Jobs of this run, and their namespace if no other run has Jobs in it."""
        self.remove(_JOBS)
        namespace = self._namespace()
        if namespace is None:
            return None
        if (namespace["metadata"].get("labels") or {}).get(RUN_LABEL) != self.run:
            return None
        if self.api.list(_JOBS, labelSelector=f"{RUN_LABEL}!={self.run}")[0]:
            return f"namespace {NAMESPACE} stays, since Jobs of another run are in it"
        self.api.delete(f"{NAMESPACES}/{NAMESPACE}", uid_of(namespace))
        return self._gone(uid_of(namespace))

    def _make_namespace(self) -> None:
        namespace = self._namespace()
        if namespace is not None and "deletionTimestamp" in namespace["metadata"]:
            self._gone(uid_of(namespace))
            namespace = None
        if namespace is None:
            # Another run may create it first.
            with suppress(ConflictError):
                self.api.create(NAMESPACES, namespace_manifest(self.run))

    def _namespace(self) -> Object | None:
        return self.api.get(f"{NAMESPACES}/{NAMESPACE}")

    def _gone(self, identity: str) -> str | None:
        def there() -> bool:
            namespace = self._namespace()
            return namespace is not None and uid_of(namespace) == identity

        return until_gone(there, f"namespace {NAMESPACE}")

    def _wait(self, manifests: Mapping[str, Manifest], deadline: float) -> dict[str, Ran]:
        """Create Jobs; return them, by names for people, once all have ended or time is up."""
        runs = dict[str, Ran]()

        def all_ended(jobs: list[Object], pods: list[Object]) -> bool:
            for name, manifest in manifests.items():
                runs[name] = _seen(manifest["metadata"]["name"], jobs, pods)
                self.report_state(name, job_progress(runs[name]))
            return all(run.job is None or ending_of(run.job) for run in runs.values())

        if manifests:
            self._make_namespace()
            for manifest in manifests.values():
                self.api.create(_JOBS, manifest)
            self.follow(_JOBS, _PODS, deadline, all_ended)
        return {name: replace(run, waited=self.timeout) for name, run in runs.items()}

    def _complete(self, run: Ran, nodes: Mapping[str, Object]) -> Ran:
        """Return the run with its node, log and events."""
        node_name = run.pod and run.pod["spec"].get("nodeName")
        if run.job is None or run.pod is None or not node_name:
            job = run.job["metadata"]["name"] if run.job else ""
            events, _ = self.api.list(
                _EVENTS, fieldSelector=f"involvedObject.name={job},type=Warning"
            )
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
        """Return the nodes; those that came during the run may take until the deadline to pass."""
        earlier = {uid_of(node) for node in _by_name(before).values()}
        while True:
            nodes = self._nodes()
            checks: list[Check] = []
            for pool in self.pools:
                if any(uid_of(node) not in earlier for node in nodes[pool.name]):
                    checks += judge_nodes(pool, nodes[pool.name])
            if all(check.verdict != "fail" for check in checks) or time.monotonic() >= deadline:
                return nodes
            time.sleep(_RETRY_SECONDS)

    def _nodes(self) -> Nodes:
        nodes: dict[str, list[Object]] = {pool.name: [] for pool in self.pools}
        for node in self.api.list(NODES, labelSelector=POOL_LABEL)[0]:
            pool = node["metadata"]["labels"][POOL_LABEL]
            if pool in nodes:
                nodes[pool].append(node)
        return nodes


@dataclass(kw_only=True)
class IsolationRun(GpuRun):
    """Run of pods that look for GPUs which are not theirs, on pools of the GPU Operator."""

    def prove(self) -> list[PoolProof]:
        """Run and judge everything."""
        before = self._nodes()
        pods, _ = self.api.list(PODS)
        classes = {item["metadata"]["name"] for item in self.api.list(_RUNTIME_CLASSES)[0]}
        deadline = time.monotonic() + self.seconds
        skipped: dict[str, str] = {}
        jobs: dict[str, Manifest] = {}
        for pool, look in itertools.product(self.pools, LOOKS):
            title = _title(pool, look)
            if look.runtime_class and look.runtime_class not in classes:
                skipped[title] = f"the cluster has no RuntimeClass {look.runtime_class}"
            elif reason := why_no_job(pool, before[pool.name], pods):
                skipped[title] = reason
            else:
                jobs[title] = look_job(
                    pool, look, self.image, self.run, self.seconds, keep=self.keep
                )
        runs = self._wait(jobs, deadline)
        nodes = self._nodes()
        pods, _ = self.api.list(PODS)
        by_name = _by_name(nodes)
        proofs = []
        for pool in self.pools:
            resource = offer_of(pool).resource
            checks: list[Check] = []
            for look in LOOKS:
                title = _title(pool, look)
                if title in skipped:
                    checks.append(Check(look.name, "skipped", skipped[title]))
                else:
                    complete = self._complete(runs[title], by_name)
                    checks.append(judge_look(look, complete, resource))
            names = [node["metadata"]["name"] for node in nodes[pool.name]]
            checks.append(judge_operands(pods, names))
            proofs.append(PoolProof(pool.name, resource, checks))
        return proofs


def _title(pool: Pool, look: Look) -> str:
    return f"{pool.name}: {look.name}"


def _by_name(nodes: Nodes) -> dict[str, Object]:
    """Return the nodes of all pools by their names."""
    by_name: dict[str, Object] = {}
    for of_pool in nodes.values():
        by_name |= {node["metadata"]["name"]: node for node in of_pool}
    return by_name


def _seen(name: str, jobs: Sequence[Object], pods: Sequence[Object]) -> Ran:
    """Return a Job by its name, with its first pod."""
    for job in jobs:
        if job["metadata"]["name"] == name:
            owned = (pod for pod in pods if _owns(job, pod))
            return Ran(job, next(owned, None))
    return Ran(None)


def _owns(job: Object, pod: Object) -> bool:
    owners = pod["metadata"].get("ownerReferences") or []
    return any(owner["uid"] == uid_of(job) for owner in owners)

"""`berth verify fabric`: the RayCluster, the run, and its result for people and programs."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.text import Text

from berth.cli.reach.arguments import seconds_of
from berth.cli.reach.environment import Environment, NotUpError, brought_up
from berth.cli.reach.fabric_reports import FOLDER
from berth.cli.shell.console import Table, err
from berth.cli.verbs.verify.clean_up import cleaned_up, counts_of, counts_text, verdict_text
from berth.components.cluster.api import RAY_CLUSTERS, ClusterApi, within
from berth.components.core.errors import BadInputError
from berth.components.core.nearest import did_you_mean
from berth.components.core.owner import namespace_of
from berth.components.core.types import parse_quantity
from berth.components.fabric import claim_of
from berth.components.hardware.names import DRANET, MANAGED_RDMA
from berth.components.proof import Expected, FabricRun, Found, Threshold, page, threshold_of
from berth.components.ray.settings import RayClusterSettings, WorkerGroup
from berth.components.sharing import Pool
from berth.stacks.load.stack import EngineerStack, load_stack
from berth.stacks.settings.resolved import Resolved

_SMALLEST = 1024


@dataclass(frozen=True)
class Proof:
    """Result of one run.

    Attributes:
        stack: the stack that was asked for.
        environment: the environment behind it.
        cluster: the RayCluster.
        namespace: its namespace.
        run: the run's id, in the label berth/verify-run of its objects.
        left_behind: the objects of the proof were not removed.
        threshold: the expected bandwidth.
        found: evidence and checks.
    """

    stack: str
    environment: str
    cluster: str
    namespace: str
    run: str
    left_behind: bool
    threshold: Threshold
    found: Found

    @property
    def counts(self) -> dict[str, int]:
        """Number of checks by verdict."""
        return counts_of(check.verdict for check in self.found.checks)

    def as_json(self) -> dict[str, Any]:
        """Return the proof for programs, with all evidence."""
        transport = self.found.findings.transport if self.found.findings else None
        return {
            "stack": self.stack,
            "environment": self.environment,
            "cluster": self.cluster,
            "namespace": self.namespace,
            "run": self.run,
            "kept": self.left_behind,
            "counts": self.counts,
            "checks": [asdict(check) for check in self.found.checks],
            "causes": [asdict(cause) for cause in self.found.causes],
            "threshold": asdict(self.threshold),
            "transport": asdict(transport) if transport else None,
            "evidence": self.found.raw,
        }


@dataclass(frozen=True)
class Request:
    """A fabric proof to run.

    Attributes:
        stack: an environment's stack or an engineer's.
        cluster: name of a RayCluster; None for the stack's only one.
        group: a group of its workers; None for the only one with NICs, or with GPUs.
        timeout: how long to wait for the job: `10m`.
        max_size: size of the largest tensor: `1Gi`; None for the program's own choice.
        keep: leave the RayJob.
    """

    stack: str
    cluster: str | None
    group: str | None
    timeout: str
    max_size: str | None
    keep: bool


def verify_fabric(request: Request) -> Proof:
    """Verify the fabric of a RayCluster."""
    seconds, max_bytes = seconds_of(request.timeout), _bytes(request.max_size)
    environment = brought_up(request.stack)
    resolved = _resolved(request.stack, environment)
    settings = _choose(request, environment, resolved)
    group = _group_of(settings, request.group)
    pool = resolved.pools[group.pool]
    expected = expected_of(settings.name, group, pool)
    given, machine = group.nccl.min_bus_bandwidth, pool.settings.machine
    api = ClusterApi(environment.kubeconfig)
    clusters, _ = api.list(within(namespace_of(settings.name), RAY_CLUSTERS))
    if not clusters:
        own = request.stack if environment.stack != request.stack else environment.stack
        raise NotUpError.of_berth(settings.name, own, environment.stack)
    run = FabricRun(
        api=api,
        namespace=namespace_of(settings.name),
        expected=expected,
        threshold=threshold_of(machine, expected.nics, None if given is None else float(given)),
        resource_api=environment.contract.resource_api,
        run=secrets.token_hex(3),
        timeout=request.timeout,
        seconds=seconds,
        max_bytes=max_bytes,
        report=lambda name, text: err.print(f"{name}: {text}", markup=False),
    )
    removal = f"kubectl delete rayjobs -n {run.namespace}"
    with cleaned_up(run, run.namespace, "rayjobs", removal, keep=request.keep):
        found = run.prove()
    return Proof(
        request.stack, environment.stack, settings.name, run.namespace, run.run, request.keep, run.threshold, found
    )


def expected_of(cluster: str, group: WorkerGroup, pool: Pool) -> Expected:
    """Return the evidence that a group of workers of a RayCluster should give."""
    if pool.shared:
        raise BadInputError(
            f"pool {pool.name!r} shares its GPUs, and NCCL cannot have two processes on one GPU: there is no"
            f" fabric to verify for {cluster!r}"
        )
    why = ""
    if not pool.settings.nics:
        why = f"pool {pool.name!r} has `rdma: none`"
    elif not group.nics:
        partly = group.gpus < pool.per_node and not pool.settings.by_dra
        why = "worker.nics is 0" + (", the default for workers that count some of a node's GPUs" if partly else "")
    claim = claim_of(group, pool)
    return Expected(
        cluster=cluster,
        workers=group.at_start,
        gpus=group.gpus,
        nics=group.nics,
        claimed_gpus=claim is not None and claim.gpus > 0,
        device_class=MANAGED_RDMA if pool.settings.rdma == "managed" else DRANET,
        why_no_nics=why,
        group=group.name,
    )


def _group_of(settings: RayClusterSettings, name: str | None) -> WorkerGroup:
    """Return the named group of workers; else the only one with NICs, with GPUs, or at all."""
    groups = {group.name: group for group in settings.groups}
    if name is not None:
        if name in groups:
            return groups[name]
        raise BadInputError(
            f"{settings.name} has no group of workers {name!r}{did_you_mean(name, groups)}",
            f"name one of its groups: {', '.join(groups)}",
        )
    with_nics = [group for group in settings.groups if group.nics]
    with_gpus = [group for group in settings.groups if group.gpus]
    candidates = with_nics or with_gpus or settings.groups
    if len(candidates) > 1:
        names = ", ".join(group.name for group in candidates)
        raise BadInputError(f"{settings.name} has several groups of workers to verify; name one with --group: {names}")
    return candidates[0]


def table(proof: Proof) -> Group:
    """Return a proof for people."""
    grid = Table("check", "verdict", "evidence", title=f"{proof.cluster} ({proof.namespace})")
    for check in proof.found.checks:
        grid.add_row(check.name, verdict_text(check.verdict), check.evidence)
    parts: list[Table | Text] = [grid]
    if proof.found.causes:
        parts.append(Text("likely causes, the likeliest first", style="bold"))
    for number, cause in enumerate(proof.found.causes, start=1):
        parts.append(Text(f"{number}. {cause.text}\n   look: {cause.look}"))
    return Group(*parts, counts_text(proof.counts))


def save(proof: Proof, folder: Path | None) -> list[Path]:
    """Write evidence and report (default: build/fabric-proof/CLUSTER-RUN); return the paths."""
    where = folder or FOLDER / f"{proof.cluster}-{proof.run}"
    evidence, report = where / "evidence.json", where / "report.html"
    try:
        where.mkdir(parents=True, exist_ok=True)
        evidence.write_text(json.dumps(proof.as_json(), indent=2) + "\n", encoding="utf-8")
        title = f"Fabric proof of {proof.cluster} ({proof.environment})"
        report.write_text(page(title, proof.run, proof.found, proof.threshold), encoding="utf-8")
    except OSError as error:
        raise BadInputError(f"--output: {error}") from None
    return [evidence, report]


def _bytes(max_size: str | None) -> int:
    if max_size is None:
        return 0
    try:
        size = int(parse_quantity(max_size))
    except ValueError as error:
        raise BadInputError(f"--max-size: {error}") from None
    if size < _SMALLEST:
        raise BadInputError(f"--max-size: the smallest tensor has 1Ki, so {max_size} is too little")
    return size


def _resolved(stack: str, environment: Environment) -> Resolved:
    loaded = load_stack(stack)
    return (loaded.on(environment.contract) if isinstance(loaded, EngineerStack) else loaded).resolved


def _choose(request: Request, environment: Environment, resolved: Resolved) -> RayClusterSettings:
    by_name = {cluster.name: cluster for cluster in (*resolved.clusters, *resolved.berths)}
    names = ", ".join(sorted(by_name))
    own = environment.stack != request.stack
    if request.cluster is not None:
        if request.cluster in by_name:
            return by_name[request.cluster]
        if own:
            raise BadInputError(
                f"stack {request.stack} is an engineer's and has only {names}; for another RayCluster of environment"
                f" {environment.stack}: berth verify fabric -s {environment.stack} --cluster {request.cluster}"
            )
        guess = did_you_mean(request.cluster, by_name) or f"; there are {names}"
        raise BadInputError(f"environment {environment.stack} has no RayCluster {request.cluster!r}{guess}")
    choice = resolved.berths if own else resolved.clusters or resolved.berths
    if len(choice) == 1:
        return choice[0]
    if not by_name:
        raise BadInputError(f"environment {environment.stack} has no RayCluster of its own: name an engineer's stack")
    raise BadInputError(f"environment {environment.stack} has several RayClusters; name one with --cluster: {names}")

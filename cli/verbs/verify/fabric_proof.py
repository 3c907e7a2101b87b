"""`berth verify fabric`: the RayCluster, the run, and its result for people and programs."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.text import Text

from berth.cli.reach.arguments import seconds_of
from berth.cli.reach.environment import LiveEnvironment, NotUpError, brought_up
from berth.cli.reach.fabric_reports import FOLDER
from berth.cli.reach.pods import require_group
from berth.cli.shell.console import Table, err
from berth.cli.verbs.verify.clean_up import cleaned_up, counts_of, print_proof, verdict_text
from berth.components.cluster.api import RAY_CLUSTERS, ClusterApi, in_namespace
from berth.components.core.errors import BadInputError
from berth.components.core.nearest import did_you_mean
from berth.components.core.owner import namespace_of
from berth.components.core.types import parse_quantity
from berth.components.fabric import claim_of
from berth.components.hardware.machines import GIB
from berth.components.hardware.names import DRANET, MANAGED_RDMA
from berth.components.proof import Expected, FabricResult, FabricRun, report_page, threshold_of
from berth.components.ray.complete_settings import RayClusterSettings, WorkerGroup
from berth.components.sharing import Pool
from berth.stacks.load.stack import EngineerStack, load_stack
from berth.stacks.settings.resolved import Resolved

_SMALLEST = 1024


def verify_fabric(  # noqa: PLR0913 - each is an option
    stack: str,
    cluster: str | None,
    group_name: str | None,
    timeout: str,
    max_size: str | None,
    output: Path | None,
    *,
    collective: bool,
    keep: bool,
    as_json: bool,
) -> int:
    """Verify the fabric of a RayCluster, write evidence and report; return the exit code."""
    seconds, max_bytes = seconds_of(timeout), _bytes(max_size)
    environment = brought_up(stack)
    loaded = load_stack(stack)
    resolved = (
        loaded.on(environment.contract) if isinstance(loaded, EngineerStack) else loaded
    ).resolved
    settings = _choose(stack, cluster, environment, resolved)
    group = _group_of(settings, group_name)
    pool = resolved.pools[group.pool]
    expected = expected_of(settings.name, group, pool)
    given, machine = group.nccl.min_bus_bandwidth, pool.settings.machine
    api = ClusterApi(environment.kubeconfig)
    clusters, _ = api.list(in_namespace(namespace_of(settings.name), RAY_CLUSTERS))
    if not clusters:
        raise NotUpError.of_berth(settings.name, stack, environment.stack)
    run = FabricRun(
        api=api,
        namespace=namespace_of(settings.name),
        expected=expected,
        threshold=threshold_of(machine, expected.nics, None if given is None else float(given)),
        resource_api=environment.contract.resource_api,
        timeout=timeout,
        seconds=seconds,
        max_bytes=max_bytes,
        collective=collective,
        report=lambda name, text: err.print(f"{name}: {text}"),
    )
    removal = f"kubectl delete rayjobs -n {run.namespace}"
    with cleaned_up(run, run.namespace, "rayjobs", removal, keep=keep):
        found = run.prove()
    content = {
        "stack": stack,
        "environment": environment.stack,
        "cluster": settings.name,
        "namespace": run.namespace,
        "run": run.run,
        "kept": keep,
        "checks": [asdict(check) for check in found.checks],
        "causes": [asdict(cause) for cause in found.causes],
        "threshold": asdict(run.threshold),
        "transport": (
            asdict(found.findings.transport)
            if found.findings and found.findings.transport
            else None
        ),
        "evidence": found.raw,
        "counts": counts_of(found.checks),
    }
    report = report_page(
        f"Fabric proof of {settings.name} ({environment.stack})", run.run, found, run.threshold
    )
    _save(content, report, output or FOLDER / f"{settings.name}-{run.run}")
    return print_proof(
        content, _shown(found, f"{settings.name} ({run.namespace})"), as_json=as_json
    )


def expected_of(cluster: str, group: WorkerGroup, pool: Pool) -> Expected:
    """Return the evidence that a group of workers of a RayCluster should give."""
    if pool.shared:
        raise BadInputError(
            f"pool {pool.name!r} shares its GPUs, and NCCL cannot have two processes on one GPU:"
            f" there is no fabric to verify for {cluster!r}; name a RayCluster on a pool of whole"
            " GPUs"
        )
    why = ""
    if not pool.settings.nics:
        why = f"pool {pool.name!r} has `rdma: none`"
    elif not group.nics:
        partly = group.gpus < pool.per_node and not pool.settings.by_dra
        why = "worker.nics is 0" + (
            ", the default for workers that count some of a node's GPUs" if partly else ""
        )
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
        sourced=group.nccl.profile == GIB,
    )


def _group_of(settings: RayClusterSettings, name: str | None) -> WorkerGroup:
    """Return the named group of workers; else the only one with NICs, with GPUs, or at all."""
    groups = {group.name: group for group in settings.groups}
    if name is not None:
        require_group(settings.name, name, groups)
        return groups[name]
    with_nics = [group for group in settings.groups if group.nics]
    with_gpus = [group for group in settings.groups if group.gpus]
    candidates = with_nics or with_gpus or settings.groups
    if len(candidates) > 1:
        names = ", ".join(group.name for group in candidates)
        raise BadInputError(
            f"{settings.name} has several groups of workers to verify; name one with --group:"
            f" {names}"
        )
    return candidates[0]


def _shown(found: FabricResult, title: str) -> list[Table | Text]:
    """Return the checks and their likely causes for people."""
    grid = Table("check", "verdict", "evidence", title=title)
    for check in found.checks:
        grid.add_row(check.name, verdict_text(check.verdict), check.evidence)
    heading = [Text("\nlikely causes, the likeliest first", style="bold")] if found.causes else []
    causes = [
        Text(f"{number}. {cause.text}\n   look: {cause.look}")
        for number, cause in enumerate(found.causes, 1)
    ]
    return [grid, *heading, *causes]


def _save(proof: Mapping[str, Any], report: str, folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in (
            ("evidence.json", json.dumps(proof, indent=2) + "\n"),
            ("report.html", report),
        ):
            (folder / name).write_text(text, encoding="utf-8")
            err.print(f"written: {folder / name}")
    except OSError as error:
        raise BadInputError(f"--output: {error}; name a folder that you may write to") from None


def _bytes(max_size: str | None) -> int:
    if max_size is None:
        return 0
    try:
        size = int(parse_quantity(max_size))
    except ValueError as error:
        raise BadInputError(f"--max-size: {error}; write a size such as 1Gi") from None
    if size < _SMALLEST:
        raise BadInputError(
            f"--max-size: the smallest tensor has 1Ki, so {max_size} is too little; write 1Ki or"
            " more"
        )
    return size


def _choose(
    stack: str, name: str | None, environment: LiveEnvironment, resolved: Resolved
) -> RayClusterSettings:
    by_name = {cluster.name: cluster for cluster in (*resolved.clusters, *resolved.berths)}
    names = ", ".join(sorted(by_name))
    own = environment.stack != stack
    if name is not None:
        if name in by_name:
            return by_name[name]
        if own:
            raise BadInputError(
                f"stack {stack} is an engineer's and has only {names}; for another RayCluster of"
                f" environment {environment.stack}: berth verify fabric -s {environment.stack}"
                f" --cluster {name}"
            )
        guess = did_you_mean(name, by_name) or f"; there are {names}"
        raise BadInputError(f"environment {environment.stack} has no RayCluster {name!r}{guess}")
    choice = resolved.berths if own else resolved.clusters or resolved.berths
    if len(choice) == 1:
        return choice[0]
    if not by_name:
        raise BadInputError(
            f"environment {environment.stack} has no RayCluster of its own; name an engineer's"
            " stack with -s"
        )
    raise BadInputError(
        f"environment {environment.stack} has several RayClusters; name one with --cluster: {names}"
    )

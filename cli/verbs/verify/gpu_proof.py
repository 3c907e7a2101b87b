"""`berth verify gpu`: the pools, the run, and its result for people and programs."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from berth.cli.reach.arguments import seconds_of
from berth.cli.reach.environment import LiveEnvironment, brought_up
from berth.cli.shell.console import Table, err
from berth.cli.verbs.verify.clean_up import cleaned_up, counts_of, print_proof, verdict_text
from berth.components.cluster.api import ClusterApi
from berth.components.core.errors import BadInputError
from berth.components.core.image import mirrored
from berth.components.core.nearest import did_you_mean
from berth.components.hardware.versions import CUDA_SAMPLE_IMAGE
from berth.components.proof import NAMESPACE, GpuRun, IsolationRun
from berth.components.sharing import Pool, offered_pools
from berth.stacks.load.stack import EngineerStack, load_stack


def verify_gpus(
    stack: str, pools: Sequence[str], timeout: str, *, keep: bool, isolation: bool, as_json: bool
) -> int:
    """Verify the GPUs of pools, by default of all or of the engineer's; return the exit code."""
    seconds = seconds_of(timeout)
    environment = brought_up(stack)
    chosen = _choose(stack, environment, pools)
    run = (IsolationRun if isolation else GpuRun)(
        api=ClusterApi(environment.kubeconfig),
        pools=_by_operator(chosen, pools) if isolation else chosen,
        image=mirrored(CUDA_SAMPLE_IMAGE, environment.contract.image_mirror or ""),
        timeout=timeout,
        seconds=seconds,
        keep=keep,
        report=lambda name, text: err.print(f"{name}: {text}"),
    )
    removals = (f"kubectl delete jobs -n {NAMESPACE}", "kubectl delete namespace")
    with cleaned_up(run, NAMESPACE, "jobs", *removals, keep=keep):
        proofs = run.prove()
    grid = Table("pool", "check", "verdict", "evidence")
    for pool in proofs:
        for number, check in enumerate(pool.checks):
            grid.add_row(
                "" if number else pool.pool, check.name, verdict_text(check.verdict), check.evidence
            )
        grid.add_section()
    content: dict[str, Any] = {
        "stack": stack,
        "environment": environment.stack,
        "run": run.run,
        "kept": keep,
    }
    content["pools"] = [asdict(pool) for pool in proofs]
    content["counts"] = counts_of(check for pool in proofs for check in pool.checks)
    return print_proof(content, [grid], as_json=as_json)


def _choose(stack: str, environment: LiveEnvironment, names: Sequence[str]) -> list[Pool]:
    pools = offered_pools(environment.contract.pools, environment.contract.sharing)
    own = environment.stack != stack and not names
    if own and isinstance(loaded := load_stack(stack), EngineerStack):
        settings = loaded.on(environment.contract).berth.settings
        names = [group.pool for group in settings.groups if group.gpus] or settings.pools
    for name in names:
        if name not in pools:
            raise BadInputError(
                f"environment {environment.stack} has no pool {name!r}{did_you_mean(name, pools)}"
            )
        if pools[name].offer is None:
            machine = pools[name].settings.machine_type
            others = ", ".join(sorted(pool.name for pool in pools.values() if pool.offer))
            advice = f"; pools with GPUs are {others}" if others else "; name another environment"
            raise BadInputError(f"pool {name!r} ({machine}) has no GPUs{advice}")
    chosen = [pools[name] for name in dict.fromkeys(names)] or [
        pool for pool in pools.values() if pool.offer
    ]
    if not chosen:
        raise BadInputError(
            f"no pool of environment {environment.stack} has GPUs, so there is nothing to verify;"
            " name an environment with GPUs"
        )
    return chosen


def _by_operator(pools: Sequence[Pool], named: Sequence[str]) -> list[Pool]:
    """Return the pools of NVIDIA's GPU Operator, whose RuntimeClasses could show every GPU."""
    found = [pool for pool in pools if pool.settings.by_operator]
    others = [pool.name for pool in pools if pool.name in named and pool not in found]
    if others or not found:
        names = f"pool {', '.join(map(repr, others))} is not" if others else "no pool is"
        raise BadInputError(
            f"{names} served by the GPU Operator, which brings the RuntimeClasses that --isolation"
            " tries; leave out --isolation to verify the GPUs of other pools"
        )
    return found

"""`berth verify gpu`: the pools, the run, and its result for people and programs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

from berth.cli.reach.arguments import seconds_of
from berth.cli.reach.environment import LiveEnvironment, brought_up
from berth.cli.shell.console import err
from berth.cli.shell.table import Table
from berth.cli.verbs.verify.clean_up import cleaned_up
from berth.cli.verbs.verify.proof_result import counts_of, print_proof, verdict_text
from berth.components.cluster.api import ClusterApi
from berth.components.core.errors import BadInputError
from berth.components.core.image import mirrored
from berth.components.core.nearest import did_you_mean
from berth.components.hardware.versions import CUDA_SAMPLE_IMAGE
from berth.components.proof import NAMESPACE, GpuRun, IsolationRun, PoolProof
from berth.components.sharing import Pool, offered_pools
from berth.stacks.load.stack import EngineerStack, load_stack


def verify_gpus(
    stack: str, pools: Sequence[str], timeout: str, *, keep: bool, isolation: bool, as_json: bool
) -> int:
    """Verify the GPUs of pools, by default of all or of the engineer's; return the exit code.

    Args:
        stack: stack of the environment, or an engineer's own.
        pools: names of the pools.
        timeout: duration of the wait for Jobs, such as `5m`.
        keep: whether the objects of the run stay.
        isolation: whether pods look for GPUs which are not theirs.
        as_json: whether the result is printed as JSON.

    Raises:
        BadInputError: there is nothing to verify.
    """
    seconds = seconds_of(timeout)
    environment = brought_up(stack)
    contract = environment.contract
    chosen = _chosen_pools(stack, environment, pools)
    kind: type[GpuRun] = GpuRun
    if isolation:
        chosen = _pools_of_operator(chosen, pools)
        kind = IsolationRun
    run = kind(
        api=ClusterApi(environment.kubeconfig),
        pools=chosen,
        image=mirrored(CUDA_SAMPLE_IMAGE, contract.image_mirror or ""),
        timeout=timeout,
        seconds=seconds,
        keep=keep,
        report=lambda name, text: err.print(f"{name}: {text}"),
    )
    removals = (f"kubectl delete jobs -n {NAMESPACE}", "kubectl delete namespace")
    with cleaned_up(run, NAMESPACE, "jobs", *removals, keep=keep):
        proofs = run.prove()
    document = {
        "stack": stack,
        "environment": environment.stack,
        "run": run.run,
        "kept": keep,
        "pools": [asdict(proof) for proof in proofs],
        "counts": counts_of(check for proof in proofs for check in proof.checks),
    }
    return print_proof(document, [proofs_table(proofs)], as_json=as_json)


def proofs_table(proofs: Iterable[PoolProof]) -> Table:
    """Return the checks of each pool for people."""
    table = Table("pool", "check", "verdict", "evidence")
    for proof in proofs:
        for number, check in enumerate(proof.checks):
            pool = "" if number else proof.pool
            table.add_row(pool, check.name, verdict_text(check.verdict), check.evidence)
        table.add_section()
    return table


def _chosen_pools(stack: str, environment: LiveEnvironment, names: Sequence[str]) -> list[Pool]:
    """Return the named pools; without names the engineer's own, or all with GPUs."""
    pools = offered_pools(environment.contract.pools, environment.contract.sharing)
    names = names or _pools_of_engineer(stack, environment)
    if names:
        for name in names:
            _refuse_without_gpus(name, pools, environment)
        return [pools[name] for name in dict.fromkeys(names)]
    with_gpus = [pool for pool in pools.values() if pool.offer]
    if not with_gpus:
        raise BadInputError(
            f"no pool of environment {environment.stack} has GPUs, so there is nothing to verify",
            "name an environment with GPUs",
        )
    return with_gpus


def _pools_of_engineer(stack: str, environment: LiveEnvironment) -> Sequence[str]:
    """Return the pools of an engineer's own stack, those of workers with GPUs first choice."""
    if environment.stack == stack:
        return []
    loaded = load_stack(stack)
    if not isinstance(loaded, EngineerStack):
        return []
    settings = loaded.on(environment.contract).berth.settings
    return [group.pool for group in settings.groups if group.gpus] or settings.pools


def _refuse_without_gpus(
    name: str, pools: Mapping[str, Pool], environment: LiveEnvironment
) -> None:
    """Refuse a pool that the environment does not have, or that has no GPUs."""
    if name not in pools:
        raise BadInputError(
            f"environment {environment.stack} has no pool {name!r}{did_you_mean(name, pools)}",
            f"`berth status -s {environment.stack}` lists the pools",
        )
    if pools[name].offer is None:
        machine = pools[name].settings.machine_type
        others = ", ".join(sorted(pool.name for pool in pools.values() if pool.offer))
        if others:
            raise BadInputError(
                f"pool {name!r} ({machine}) has no GPUs; pools with GPUs are {others}"
            )
        raise BadInputError(
            f"pool {name!r} ({machine}) has no GPUs", "name an environment with GPUs"
        )


def _pools_of_operator(pools: Sequence[Pool], named: Sequence[str]) -> list[Pool]:
    """Return the pools of NVIDIA's GPU Operator, whose RuntimeClasses could show every GPU."""
    of_operator = [pool for pool in pools if pool.settings.by_operator]
    others = [pool.name for pool in pools if pool.name in named and pool not in of_operator]
    if others or not of_operator:
        names = f"pool {', '.join(map(repr, others))} is not" if others else "no pool is"
        raise BadInputError(
            f"{names} served by the GPU Operator, which brings the RuntimeClasses that --isolation"
            " tries; leave out --isolation to verify the GPUs of other pools"
        )
    return of_operator

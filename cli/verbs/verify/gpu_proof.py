"""`berth verify gpu`: the pools, the run, and its result for people and programs."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Group

from berth.cli.reach.arguments import seconds_of
from berth.cli.reach.environment import Environment, brought_up
from berth.cli.shell.console import Table, err
from berth.cli.verbs.verify.clean_up import cleaned_up, counts_of, counts_text, verdict_text
from berth.components.cluster.api import ClusterApi
from berth.components.core.errors import BadInputError
from berth.components.core.image import mirrored
from berth.components.core.nearest import did_you_mean
from berth.components.hardware.versions import CUDA_SAMPLE_IMAGE
from berth.components.proof import NAMESPACE, GpuRun, PoolProof
from berth.components.sharing import Pool, offered
from berth.stacks.load.stack import EngineerStack, load_stack


@dataclass(frozen=True)
class Proof:
    """Result of one run.

    Attributes:
        stack: the stack that was asked for.
        environment: the environment behind it.
        run: the run's id, in the label berth/verify-run of its objects.
        left_behind: the objects of the proof were not removed.
        pools: results by pool.
    """

    stack: str
    environment: str
    run: str
    left_behind: bool
    pools: list[PoolProof]

    @property
    def counts(self) -> dict[str, int]:
        """Number of checks by verdict."""
        return counts_of(check.verdict for pool in self.pools for check in pool.checks)

    def as_json(self) -> dict[str, Any]:
        """Return the proof for programs; no key has more than one word."""
        fields = {"kept" if name == "left_behind" else name: value for name, value in asdict(self).items()}
        return {**fields, "counts": self.counts}


def verify_gpus(stack: str, pools: Sequence[str], timeout: str, *, keep: bool) -> Proof:
    """Verify the GPUs of pools.

    Args:
        stack: an environment's stack or an engineer's.
        pools: names of the pools; none for all with GPUs, or for the engineer's.
        timeout: how long to wait for the Jobs: `5m`.
        keep: leave the Jobs.
    """
    seconds = seconds_of(timeout)
    environment = brought_up(stack)
    run = GpuRun(
        api=ClusterApi(environment.kubeconfig),
        pools=_choose(stack, environment, pools),
        image=mirrored(CUDA_SAMPLE_IMAGE, environment.contract.image_mirror or ""),
        run=secrets.token_hex(3),
        timeout=timeout,
        seconds=seconds,
        keep=keep,
        report=lambda name, text: err.print(f"{name}: {text}", markup=False),
    )
    removals = (f"kubectl delete jobs -n {NAMESPACE}", "kubectl delete namespace")
    with cleaned_up(run, NAMESPACE, "jobs", *removals, keep=keep):
        proofs = run.prove()
    return Proof(stack, environment.stack, run.run, keep, proofs)


def table(proof: Proof) -> Group:
    """Return a proof for people."""
    grid = Table("pool", "check", "verdict", "evidence")
    for pool in proof.pools:
        for number, check in enumerate(pool.checks):
            grid.add_row("" if number else pool.pool, check.name, verdict_text(check.verdict), check.evidence)
        grid.add_section()
    return Group(grid, counts_text(proof.counts))


def _choose(stack: str, environment: Environment, names: Sequence[str]) -> list[Pool]:
    pools = offered(environment.contract.pools, environment.contract.sharing)
    if not names and environment.stack != stack:
        names = _pools_of_engineer(stack, environment)
    for name in names:
        if name not in pools:
            raise BadInputError(f"environment {environment.stack} has no pool {name!r}{did_you_mean(name, pools)}")
        if pools[name].offer is None:
            machine = pools[name].settings.machine_type
            others = ", ".join(sorted(pool.name for pool in pools.values() if pool.offer))
            advice = f"; pools with GPUs are {others}" if others else ""
            raise BadInputError(f"pool {name!r} ({machine}) has no GPUs{advice}")
    chosen = [pools[name] for name in dict.fromkeys(names)] or [pool for pool in pools.values() if pool.offer]
    if not chosen:
        raise BadInputError(f"no pool of environment {environment.stack} has GPUs, so there is nothing to verify")
    return chosen


def _pools_of_engineer(stack: str, environment: Environment) -> list[str]:
    """Return the pools of the workers with GPUs of an engineer's stack, else of all."""
    loaded = load_stack(stack)
    if not isinstance(loaded, EngineerStack):
        raise BadInputError(f"stack {stack} is not an engineer's")
    settings = loaded.on(environment.contract).berth.settings
    with_gpus = [group.pool for group in settings.groups if group.gpus]
    return list(dict.fromkeys(with_gpus)) or settings.pools

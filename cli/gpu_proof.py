"""The GPU proof of an environment: which pools, the run, its result for people and programs."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, get_args

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from berth.cli.arguments import seconds_of
from berth.cli.console import err
from berth.cli.environment import Environment, brought_up
from berth.components.cluster.api import ClusterApi, ClusterError
from berth.components.core.errors import BadInputError
from berth.components.core.nearest import did_you_mean
from berth.components.proof import NAMESPACE, RUN_LABEL, GpuRun, PoolProof, Verdict
from berth.components.sharing import Pool, offered
from berth.stacks.load import EngineerStack, load_stack

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
VERDICT_STYLES: dict[Verdict, str] = {"pass": "green", "fail": "bold red", "simulated": "cyan", "skipped": "dim"}


@dataclass(frozen=True)
class Proof:
    """One run's result.

    Attributes:
        stack: the stack that was asked for.
        environment: the environment behind it.
        run: the run's id, in the label berth/verify-run of all that it made.
        kept: what it made is still there.
        pools: what was found of each pool.
    """

    stack: str
    environment: str
    run: str
    kept: bool
    pools: list[PoolProof]

    @property
    def counts(self) -> dict[str, int]:
        """Checks by verdict."""
        counted = Counter(check.verdict for pool in self.pools for check in pool.checks)
        return {verdict: counted[verdict] for verdict in VERDICTS}

    def as_json(self) -> dict[str, Any]:
        """For programs; no key has more than one word."""
        return {**asdict(self), "counts": self.counts}


def verify_gpus(stack: str, pools: Sequence[str], timeout: str, *, keep: bool) -> Proof:
    """Verify, and clean up whatever happens.

    Args:
        stack: an environment's stack or an engineer's.
        pools: names of the pools; none for all with GPUs, or for the engineer's.
        timeout: how long to wait for the Jobs: `5m`.
        keep: what is made is to stay.
    """
    seconds = seconds_of(timeout)
    environment = brought_up(stack)
    chosen = _choose(stack, environment, pools)
    run = GpuRun(
        api=ClusterApi(environment.kubeconfig),
        pools=chosen,
        run=secrets.token_hex(3),
        timeout=timeout,
        seconds=seconds,
        keep=keep,
        report=lambda name, text: err.print(f"{name}: {text}", markup=False),
    )
    try:
        proofs = run.prove()
    finally:
        _say_kept(run) if keep else _clean_up(run)
    return Proof(stack, environment.stack, run.run, keep, proofs)


def table(proof: Proof) -> Group:
    """A run's result for people."""
    grid = Table("pool", "check", "verdict", box=box.SIMPLE_HEAD)
    grid.add_column("evidence", overflow="fold")
    for pool in proof.pools:
        for number, check in enumerate(pool.checks, start=1):
            verdict = Text(check.verdict, style=VERDICT_STYLES[check.verdict])
            first = pool.pool if number == 1 else ""
            grid.add_row(first, check.name, verdict, Text(check.evidence), end_section=number == len(pool.checks))
    return Group(grid, Text(", ".join(f"{count} {verdict}" for verdict, count in proof.counts.items())))


def _choose(stack: str, environment: Environment, names: Sequence[str]) -> list[Pool]:
    pools = offered(environment.contract.pools, environment.contract.sharing)
    if not names and environment.stack != stack:
        names = [_pool_of_engineer(stack, environment)]
    for name in names:
        if name not in pools:
            raise BadInputError(f"environment {environment.stack} has no pool {name!r}{did_you_mean(name, pools)}")
        if pools[name].offer is None:
            machine = pools[name].settings.machine_type
            raise BadInputError(f"pool {name!r} ({machine}) has no GPUs{_others(pools.values())}")
    chosen = [pools[name] for name in dict.fromkeys(names)] or [pool for pool in pools.values() if pool.offer]
    if not chosen:
        raise BadInputError(f"no pool of environment {environment.stack} has GPUs, so there is nothing to verify")
    return chosen


def _others(pools: Iterable[Pool]) -> str:
    names = ", ".join(sorted(pool.name for pool in pools if pool.offer))
    return f"; those that have are {names}" if names else ""


def _pool_of_engineer(stack: str, environment: Environment) -> str:
    """The pool of the workers of an engineer's stack."""
    loaded = load_stack(stack)
    if not isinstance(loaded, EngineerStack):
        raise BadInputError(f"stack {stack} is not an engineer's")
    return loaded.on(environment.contract).berth.settings.worker.pool


def _clean_up(run: GpuRun) -> None:
    """Remove what the run made; whatever prevents it is told with what to do, and hides no earlier error."""
    try:
        left = run.clean_up()
    except ClusterError as error:
        left = f"what run {run.run} made could not be removed: {error}\n{_remove(run.run)}"
    except (KeyboardInterrupt, SystemExit):
        err.print(f"what run {run.run} made may still be there\n{_remove(run.run)}", markup=False)
        raise
    if left:
        err.print(left, markup=False)


def _say_kept(run: GpuRun) -> None:
    look = f"kubectl get jobs,pods -n {NAMESPACE} -l {RUN_LABEL}={run.run}"
    err.print(f"kept, with label {RUN_LABEL}={run.run}\nlook: {look}\n{_remove(run.run)}", markup=False)


def _remove(run: str) -> str:
    return (
        f"remove: kubectl delete jobs -n {NAMESPACE} -l {RUN_LABEL}={run}\n"
        f"        kubectl delete namespace -l {RUN_LABEL}={run}"
    )

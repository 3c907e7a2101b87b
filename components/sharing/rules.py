"""Rules of GPU pools: driver, who advertises the GPUs, how they are shared, RDMA beside them."""

from __future__ import annotations

from collections.abc import Iterable

from berth.components.core.nearest import did_you_mean
from berth.components.core.problems import Path, Problem
from berth.components.core.table import beside, broken
from berth.components.gke import PoolSettings
from berth.components.hardware.machines import MACHINES
from berth.components.hardware.names import CONFIG_LABEL, WHOLE_KEY
from berth.components.sharing.device_plugin import label_command, serving_labels
from berth.components.sharing.modes import MODES, Profiles
from berth.components.sharing.pools import Pool, offered
from berth.components.sharing.settings import SharingSettings


def problems(settings: SharingSettings) -> Iterable[Problem]:
    """Return what is wrong with the GPUs of each pool, and of pools together."""
    yield from _contradicting_labels(settings)
    yield from _conflicting_modes(settings)
    if (whole := settings.sharing.get(WHOLE_KEY)) and whole.facts.shared:
        yield Problem(
            ("environment", "sharing", WHOLE_KEY),
            "the device plugin's entry of this name has whole GPUs, so that this one would never reach a node; give the"
            f" {whole.kind} profile another name",
        )
    drivers: dict[bool, str] = {}
    for name, pool in settings.pools.items():
        path: Path = ("environment", "pools", name)
        yield from _own_problems(pool, settings, path)
        if not pool.by_operator:
            continue
        first = drivers.setdefault(pool.driver == "operator", name)
        if drivers.keys() == {True, False} and first == name:
            yield Problem(
                (*path, "driver"),
                f"pools {' and '.join(sorted(drivers.values()))} differ in whether the GPU Operator installs the"
                " driver, which is one switch for the cluster; give both the same `driver`, or leave one to GKE"
                " (gpuManagement: gke)",
            )


def _own_problems(pool: PoolSettings, settings: SharingSettings, path: Path) -> Iterable[Problem]:
    if pool.rdma != "none" and not pool.machine.rdma:
        yield _without_rdma(pool, path)
    profile = settings.sharing.get(pool.sharing or "")
    claimable = bool(profile and profile.facts.claimable and settings.cluster.existing)
    claimed = [name for name, other in settings.pools.items() if other.by_dra]
    objects = {"pool": pool, "profile": profile, "claimable": claimable, "claimed": claimed}
    yield from broken(beside(__file__)["pools"], path, **objects)
    if pool.machine.gpus and pool.sharing is not None and (claimable or not (pool.by_dra and profile)):
        yield from _sharing_problems(pool, pool.sharing, settings.sharing, path)


def _contradicting_labels(settings: SharingSettings) -> Iterable[Problem]:
    """Return labels of a pool that contradict its settings for GPUs."""
    choosing = {CONFIG_LABEL, *(mode.label for mode in MODES)}
    for name, pool in offered(settings.pools, settings.sharing).items():
        labels = serving_labels(pool)
        for key, value in pool.settings.labels.items():
            if key in labels.keys() | choosing and labels.get(key) != value:
                state = f"is {labels[key]}" if key in labels else "is not there"
                yield Problem(
                    ("environment", "pools", name, "labels", key),
                    f"by the pool's settings {key} {state}, and a node with {value} would not offer what berth counts"
                    " on; take this line out, and use `sharing`, `gpuManagement` or `gpuAllocation`",
                )


def _conflicting_modes(settings: SharingSettings) -> Iterable[Problem]:
    """Return the sharing modes that one GPU Operator cannot serve together."""
    pools = offered(settings.pools, settings.sharing)
    served = {name: pool.profile for name, pool in pools.items() if pool.settings.by_operator}
    facts = {name: mode.facts for name, mode in served.items()}
    for name, mode in served.items():
        if conflict := mode.conflict(name, facts):
            yield Problem(("environment", "pools", name, "sharing"), conflict)


def warnings(settings: SharingSettings) -> Iterable[Problem]:
    """Return warnings about labels that nodes of an existing cluster need."""
    if not settings.cluster.existing:
        return
    pools = offered(settings.pools, settings.sharing)
    operator = any(pool.settings.by_operator for pool in pools.values())
    for name, pool in pools.items():
        labels = serving_labels(pool)
        if labels and (operator or pool.settings.by_dra):
            yield Problem(
                ("environment", "pools", name),
                f"berth labels no nodes of an existing cluster: where they lack these labels, {_unlabeled(pool)}; run:"
                f" {label_command(name, labels)}, and give the node pool the same labels for nodes that come later",
            )


def _unlabeled(pool: Pool) -> str:
    """Return the effect on nodes of a pool that lack the pool's labels."""
    if pool.settings.by_dra:
        return "a device plugin hands out the same GPUs as claims do, each to two pods"
    if not pool.settings.by_operator:
        return (
            "the GPU Operator, which takes every node with an NVIDIA device, runs a second device plugin beside GKE's"
        )
    whole = ", which there has whole GPUs" if pool.profile.facts.shared else ""
    return f"GKE's own device plugin runs beside the GPU Operator's{whole}"


_OTHER_NETWORKS = {"tcpxo": "GPUDirect-TCPXO", "tcpx": "GPUDirect-TCPX"}


def _without_rdma(pool: PoolSettings, path: Path) -> Problem:
    with_rdma = ", ".join(name for name, machine in MACHINES.items() if machine.rdma)
    network = _OTHER_NETWORKS.get(pool.machine.series.gpu_network)
    instead = f", its GPUs' NICs are for {network}" if network else ""
    return Problem(
        (*path, "rdma"), f"{pool.machine_type} has no RDMA NICs{instead}; those that have them are {with_rdma}"
    )


def _sharing_problems(pool: PoolSettings, name: str, profiles: Profiles, path: Path) -> Iterable[Problem]:
    profile = profiles.get(name)
    if profile is None:
        known = did_you_mean(name, profiles) or "; `sharing:` has none"
        message = f"there is no sharing profile {name!r}{known}"
        yield Problem((*path, "sharing"), message, rests_on=(("environment", "sharing", name),))
    elif problem := profile.problem(pool.machine):
        yield Problem((*path, "sharing"), problem)

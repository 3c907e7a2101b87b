"""Node pools with what they offer to pods, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from stacks.settings import mig
from stacks.settings.environment import EnvironmentSettings
from stacks.settings.machines import MACHINES
from stacks.settings.nearest import did_you_mean
from stacks.settings.pool import PoolSettings
from stacks.settings.problems import Path, Problem
from stacks.settings.sharing import WHOLE, Offer, Profiles, SharingProfile, offer_of


@dataclass(frozen=True)
class Pool:
    """A node pool and what its nodes advertise.

    Attributes:
        name: the pool's name.
        settings: its settings.
        profile: how its GPUs are shared.
        offer: what a node advertises; None where it has no GPUs.
    """

    name: str
    settings: PoolSettings
    profile: SharingProfile
    offer: Offer | None

    @property
    def per_node(self) -> int:
        """GPUs, or shares of them, that pods can ask of one node."""
        return self.offer.per_node if self.offer else 0

    @property
    def at_most(self) -> int:
        """GPUs, or shares of them, that the pool can ever have."""
        return self.settings.nodes_at_most * self.per_node

    @property
    def shared(self) -> bool:
        """One GPU serves several pods."""
        return self.offer is not None and self.profile.kind != "none"

    @property
    def unit(self) -> str:
        """What one of the offered resource is called: a GPU, a share of one, a MIG instance."""
        if not self.shared:
            return "GPU"
        return f"{self.profile.profile} instance" if self.profile.kind == "mig" else "share"

    def counted(self, count: int) -> str:
        """`1 GPU`, `4 shares`."""
        return f"{count} {self.unit}" if count == 1 else f"{count} {self.unit}s"

    @property
    def sharing(self) -> str:
        """How its GPUs are shared, for people, with what matters most; empty where they are not."""
        match self.profile.kind if self.shared else "none":
            case "time-slicing":
                return f"time-slicing × {self.profile.replicas}, memory not isolated"
            case "mps":
                return f"MPS × {self.profile.replicas}"
            case "mig":
                return f"MIG {self.profile.profile}"
            case _:
                return ""

    @property
    def made_of(self) -> str:
        """Where its capacity comes from: `4 × a4-highgpu-8g with 8 GPUs, each shared by 4`."""
        machine = self.settings.machine
        text = f"{self.settings.nodes_at_most} × {machine.name} with {machine.gpus}"
        if not self.shared:
            return text
        each = self.per_node // machine.gpus
        return f"{text} GPUs, each {'cut into' if self.profile.kind == 'mig' else 'shared by'} {each}"


Pools = Mapping[str, Pool]
"""An environment's pools by name."""


def offered(pools: Mapping[str, PoolSettings], profiles: Profiles) -> dict[str, Pool]:
    """The pools with what they offer; those with a profile that doesn't exist or doesn't fit are left out."""
    known: dict[str, Pool] = {}
    for name, settings in pools.items():
        profile = WHOLE if settings.sharing is None else profiles.get(settings.sharing)
        if profile is None or not _has_instances(settings, profile):
            continue
        offer = offer_of(settings.machine, profile, by_operator=settings.by_operator)
        known[name] = Pool(name, settings, profile, offer)
    return known


def _has_instances(settings: PoolSettings, profile: SharingProfile) -> bool:
    return profile.kind != "mig" or profile.profile in mig.INSTANCES.get(settings.machine.accelerator, {})


def pool_problems(fleet: EnvironmentSettings) -> Iterable[Problem]:
    """What is wrong with pools, by themselves and together."""
    strategies: dict[str, str] = {}
    drivers: dict[bool, str] = {}
    for name, pool in fleet.pools.items():
        path: Path = ("environment", "pools", name)
        yield from _own_problems(pool, fleet.sharing, path)
        if not pool.by_operator:
            continue
        other = drivers.setdefault(pool.driver == "operator", name)
        if drivers.keys() == {True, False} and other == name:
            yield Problem(
                (*path, "driver"),
                f"pools {' and '.join(sorted(drivers.values()))} differ in whether the GPU Operator installs the driver, which"
                " is one switch for the cluster; give both the same `driver`, or leave one to GKE (gpuManagement: gke)",
            )
        profile = fleet.sharing.get(pool.sharing or "")
        if profile and profile.strategy:
            strategies.setdefault(profile.strategy, name)
            if len(strategies) > 1:
                yield Problem(
                    (*path, "sharing"),
                    f"pools {' and '.join(sorted(strategies.values()))} use MIG with different strategies, which is one setting"
                    " for the cluster; make both single or both mixed",
                )


def _own_problems(pool: PoolSettings, profiles: Profiles, path: Path) -> Iterable[Problem]:
    machine = pool.machine
    for key, value in (("sharing", pool.sharing), ("gpuManagement", pool.gpu_management)):
        if value and not machine.gpus:
            yield Problem((*path, key), f"{machine.name} has no GPUs; take this line out")
    if pool.rdma != "none":
        yield from _rdma_problems(pool, path)
    if not machine.gpus:
        return
    if pool.sharing and pool.gpu_management == "gke":
        yield Problem(
            (*path, "gpuManagement"),
            "GKE's own device plugin does not read berth's sharing profiles; take this line out, and the GPU Operator serves"
            " the pool",
        )
    if pool.driver == "operator" and pool.node_image == "cos":
        yield Problem(
            (*path, "driver"),
            "the GPU Operator cannot install a driver on Container-Optimized OS; use `driver: gke`, or `nodeImage: ubuntu`",
        )
    if pool.driver == "gke" and pool.node_image == "ubuntu" and pool.by_operator:
        yield Problem(
            (*path, "driver"),
            "Google's installer for a pool that the GPU Operator serves is for Container-Optimized OS; on Ubuntu use"
            " `driver: operator` or `driver: preinstalled`",
        )
    if pool.driver == "operator" and not pool.by_operator:
        yield Problem((*path, "driver"), "the pool is left to GKE; set `gpuManagement: operator`, or `driver: gke`")
    if pool.sharing is not None:
        yield from _sharing_problems(pool, pool.sharing, profiles, path)


def _rdma_problems(pool: PoolSettings, path: Path) -> Iterable[Problem]:
    if not pool.machine.rdma:
        with_rdma = ", ".join(name for name, machine in MACHINES.items() if machine.rdma)
        yield Problem((*path, "rdma"), f"{pool.machine_type} has no RDMA NICs; those that have them are {with_rdma}")
    if pool.node_image != "cos":
        yield Problem((*path, "rdma"), "RDMA on GKE needs Container-Optimized OS; take `nodeImage` out")
    if pool.sharing:
        yield Problem(
            (*path, "sharing"),
            "Google does not support shared GPUs on nodes whose NICs are handed out by DRA: a pod there takes all GPUs and all"
            " NICs; share the GPUs of another pool, or set `rdma: none`",
        )


def _sharing_problems(pool: PoolSettings, name: str, profiles: Profiles, path: Path) -> Iterable[Problem]:
    machine, profile = pool.machine, profiles.get(name)
    if profile is None:
        known = did_you_mean(name, profiles) or "; `sharing:` has none"
        yield Problem((*path, "sharing"), f"there is no sharing profile {name!r}{known}")
    elif profile.kind == "mig" and machine.accelerator not in mig.INSTANCES:
        yield Problem(
            (*path, "sharing"),
            f"{machine.gpu_product} ({machine.name}) has no MIG; share it by time-slicing or MPS",
        )
    elif not _has_instances(pool, profile):
        instances = mig.INSTANCES[machine.accelerator]
        yield Problem(
            (*path, "sharing"),
            f"{machine.gpu_product} has no MIG profile {profile.profile}{did_you_mean(str(profile.profile), instances)};"
            f" it has {', '.join(instances)}",
        )

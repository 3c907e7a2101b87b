"""Rules of GPU pools: driver, who advertises the GPUs, how they are shared, RDMA beside them."""

from __future__ import annotations

from collections.abc import Iterable

from berth.components.core.nearest import did_you_mean
from berth.components.core.problems import Path, Problem
from berth.components.gke import PoolSettings
from berth.components.hardware.machines import MACHINES
from berth.components.hardware.names import CONFIG_LABEL, WHOLE_KEY
from berth.components.sharing.device_plugin import label_command, serving_labels
from berth.components.sharing.modes import MODES, Profiles
from berth.components.sharing.pools import Pool, offered
from berth.components.sharing.settings import SharingSettings


def problems(settings: SharingSettings) -> Iterable[Problem]:
    """Return what is wrong with the GPUs of each pool, and of pools together."""
    yield from _counted_beside_claims(settings)
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


def _counted_beside_claims(settings: SharingSettings) -> Iterable[Problem]:
    """Return pools whose pods count GPUs and claim NICs, where other pods claim GPUs.

    The class gpu.nvidia.com of NVIDIA's chart has `extendedResourceName: nvidia.com/gpu`. Since
    1.36 the scheduler goes by that, and fails to bind a pod with a claim of its own whose counted
    GPUs come from a device plugin ("nil or empty request mappings": kubernetes v1.36.3,
    pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go).
    """
    claimed = [name for name, pool in settings.pools.items() if pool.by_dra]
    for name, pool in settings.pools.items():
        if claimed and pool.machine.gpus and not pool.by_dra and pool.rdma != "none":
            yield Problem(
                ("environment", "pools", name, "gpuAllocation"),
                f"GPUs of pool {claimed[0]!r} are claimed, and with NVIDIA's DRA driver in the cluster Kubernetes 1.36"
                " starts no pod that counts its GPUs and claims its NICs, as workers do here; write"
                " `gpuAllocation: dra` for both pools, or for none",
            )


def _own_problems(pool: PoolSettings, settings: SharingSettings, path: Path) -> Iterable[Problem]:
    machine = pool.machine
    for key, value in (
        ("sharing", pool.sharing),
        ("gpuManagement", pool.gpu_management),
        ("driver", pool.driver != "gke"),
        ("driverVersion", pool.driver_version),
        ("gpuAllocation", pool.gpu_allocation == "dra"),
    ):
        if value and not machine.gpus:
            yield Problem((*path, key), f"{machine.name} has no GPUs; take this line out")
    if pool.rdma != "none":
        yield from _rdma_problems(pool, path)
    if pool.by_dra:
        yield from _claim_problems(pool, path)
        yield from _claimed_sharing_problems(pool, settings, path)
    elif machine.gpus:
        yield from _plugin_problems(pool, path)
        if pool.sharing is not None:
            yield from _sharing_problems(pool, pool.sharing, settings.sharing, path)


def _plugin_problems(pool: PoolSettings, path: Path) -> Iterable[Problem]:
    """Return problems of GPUs that a device plugin advertises."""
    if pool.sharing and pool.gpu_management == "gke":
        yield Problem(
            (*path, "gpuManagement"),
            "GKE's own device plugin does not read berth's sharing profiles; take this line out, and the GPU Operator"
            " serves the pool",
        )
    if pool.driver == "operator" and pool.node_image == "cos":
        yield Problem(
            (*path, "driver"),
            "the GPU Operator cannot install a driver on Container-Optimized OS; use `driver: gke`, or"
            " `nodeImage: ubuntu`",
        )
    if pool.driver == "gke" and pool.node_image == "ubuntu" and pool.by_operator:
        yield Problem(
            (*path, "driver"),
            "Google's installer for a pool that the GPU Operator serves is for Container-Optimized OS; on Ubuntu use"
            " `driver: operator` or `driver: preinstalled`",
        )
    if pool.driver == "operator" and not pool.by_operator:
        yield Problem((*path, "driver"), "the pool is left to GKE; set `gpuManagement: operator`, or `driver: gke`")
    if pool.driver_version and pool.by_operator:
        yield Problem(
            (*path, "driverVersion"),
            "GKE installs the driver only where it manages the GPUs too, but here the GPU Operator serves them, with"
            " the version of Google's installer or its own; take this line out",
        )
    elif pool.driver_version and pool.driver == "preinstalled":
        yield Problem(
            (*path, "driverVersion"),
            "with `driver: preinstalled` GKE installs no driver; take one of the two lines out",
        )
    elif pool.driver_version == "latest" and pool.node_image == "ubuntu":
        yield Problem(
            (*path, "driverVersion"),
            "GKE has a latest driver for Container-Optimized OS only; on Ubuntu take this line out",
        )
    if pool.secure_boot and pool.driver == "operator":
        yield Problem(
            (*path, "secureBoot"),
            "the GPU Operator builds a driver that nobody signed, and secure boot would not load it; take this line"
            " out, or leave the driver to GKE (driver: gke)",
        )


def _claim_problems(pool: PoolSettings, path: Path) -> Iterable[Problem]:
    """Return problems of GPUs that pods claim.

    Source: "Prepare GKE infrastructure for DRA workloads", limitations
    (https://docs.cloud.google.com/kubernetes-engine/docs/how-to/set-up-dra): no driver by GKE's own
    automation.
    """
    rests_on = ((*path, "gpuAllocation"),)
    if pool.gpu_management:
        plugin = "GKE's own device plugin" if pool.gpu_management == "gke" else "the GPU Operator's device plugin"
        yield Problem(
            (*path, "gpuManagement"),
            f"{plugin} would hand out the GPUs that NVIDIA's DRA driver hands out (gpuAllocation: dra), each to two"
            " pods; take one of the two lines out",
            rests_on=rests_on,
        )
    if pool.node_image != "cos":
        yield Problem(
            (*path, "nodeImage"),
            "berth tells NVIDIA's DRA driver one place of the GPU driver, that of Container-Optimized OS; take this"
            " line out, or `gpuAllocation`",
            rests_on=rests_on,
        )
    if pool.driver == "operator":
        yield Problem(
            (*path, "driver"),
            "the GPU Operator has no daemons, and so installs no driver, on nodes whose GPUs are claimed"
            " (gpuAllocation: dra); use `driver: gke` for Google's installer, or `driver: preinstalled`",
            rests_on=rests_on,
        )
    if pool.driver_version:
        yield Problem(
            (*path, "driverVersion"),
            "GKE does not install a driver where GPUs are claimed (gpuAllocation: dra): Google's installer does,"
            " with the version that belongs to the node's image; take this line out",
            rests_on=rests_on,
        )


def _claimed_sharing_problems(pool: PoolSettings, settings: SharingSettings, path: Path) -> Iterable[Problem]:
    """Return problems of claimed GPUs that are shared.

    GKE has no time-sharing, MIG and MPS beside DRA (same page). NVIDIA's driver publishes the MIG
    instances that it finds, and cuts none
    (https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu, the rest is behind alpha gates):
    nodes that berth does not create can have them.
    """
    profile = settings.sharing.get(pool.sharing or "")
    if profile is None or (profile.facts.claimable and settings.cluster.existing):
        if pool.sharing:
            yield from _sharing_problems(pool, pool.sharing, settings.sharing, path)
        if profile and pool.rdma != "none":
            yield Problem(
                (*path, "rdma"),
                "a claim pairs NICs with whole GPUs, not with MIG instances; write `rdma: none`, or take `sharing` out",
            )
        return
    yield Problem(
        (*path, "sharing"),
        "Google does not support shared GPUs (time-slicing, MPS, MIG) on nodes whose GPUs are claimed, and a claim is"
        " for a whole one; share the GPUs of another pool, or take `gpuAllocation` out",
        rests_on=((*path, "gpuAllocation"),),
    )


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


def _rdma_problems(pool: PoolSettings, path: Path) -> Iterable[Problem]:
    if not pool.machine.rdma:
        with_rdma = ", ".join(name for name, machine in MACHINES.items() if machine.rdma)
        network = _OTHER_NETWORKS.get(pool.machine.series.gpu_network)
        instead = f", its GPUs' NICs are for {network}" if network else ""
        yield Problem(
            (*path, "rdma"), f"{pool.machine_type} has no RDMA NICs{instead}; those that have them are {with_rdma}"
        )
    if pool.node_image != "cos":
        yield Problem((*path, "rdma"), "RDMA on GKE needs Container-Optimized OS; take `nodeImage` out")
    if pool.sharing and not pool.by_dra:
        yield Problem(
            (*path, "sharing"),
            "Google does not support shared GPUs on nodes whose NICs are handed out by DRA: a pod there takes all GPUs"
            " and all NICs; share the GPUs of another pool, or set `rdma: none`",
        )


def _sharing_problems(pool: PoolSettings, name: str, profiles: Profiles, path: Path) -> Iterable[Problem]:
    profile = profiles.get(name)
    if profile is None:
        known = did_you_mean(name, profiles) or "; `sharing:` has none"
        message = f"there is no sharing profile {name!r}{known}"
        yield Problem((*path, "sharing"), message, rests_on=(("environment", "sharing", name),))
    elif problem := profile.problem(pool.machine):
        yield Problem((*path, "sharing"), problem)

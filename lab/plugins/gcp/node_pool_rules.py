"""Node pools that GKE refuses.

Texts that public bug reports quote are used as they are; the others keep the API's shape and say
what the page on the feature says: docs.cloud.google.com/kubernetes-engine/docs/how-to and
/concepts, and Google's A4 recipes in GoogleCloudPlatform/cluster-toolkit (examples/gke-a4).

Answers to (read): https://docs.cloud.google.com/kubernetes-engine/docs/concepts/dws (flex-start,
    queued provisioning),
    https://docs.cloud.google.com/kubernetes-engine/docs/how-to/consuming-reservations,
    https://docs.cloud.google.com/kubernetes-engine/docs/how-to/compact-placement,
    https://docs.cloud.google.com/kubernetes-engine/docs/how-to/allocate-network-resources-dra
    (accelerator network profile), and https://docs.cloud.google.com/vpc/docs/rdma-network-profiles.
Answers to (believed): the texts of most refusals, and their order. Asking GKE for such a pool would
    settle each.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from berth.components.gke.versions import FLEX_START, MANAGED_DRANET, GkeVersion, parse
from berth.components.hardware.machines import MACHINES
from berth.lab.plugins.gcp.errors import GoogleApiError, bad_request
from berth.lab.plugins.gcp.locations import REGIONS, ZONES, region_of
from berth.lab.plugins.gcp.references import find_network, find_subnetwork, rdma_zone
from berth.lab.plugins.gcp.resource import last_part

if TYPE_CHECKING:
    from collections.abc import Iterable

    from berth.lab.plugins.gcp.pools import Pool
    from berth.lab.plugins.gcp.resource import Cloud
    from berth.lab.plugins.gcp.store import Record

_POOL_MOST = 1000
_FLEX_START_SECONDS = 7 * 24 * 3600
_DRIVERS = {"DEFAULT", "LATEST", "INSTALLATION_DISABLED", "GPU_DRIVER_VERSION_UNSPECIFIED"}


def check_pool(cloud: Cloud, cluster: Record, record: Record, pool: Pool) -> None:
    """Refuse what GKE refuses.

    Raises:
        GoogleApiError: with the first thing that is wrong.
    """
    zones = pool.zones(cluster)
    check_zones(zones, str(cluster.inputs["location"]))
    if pool.machine_name not in MACHINES:
        raise bad_request(f'Machine type with name "{pool.machine_name}" does not exist in zone "{zones[0]}".')
    _check_version(pool, cluster)
    _first(_machine_problems(pool))
    _first(_size_problems(pool))
    _first(_provisioning_problems(pool, zones))
    _check_networks(cloud, cluster, record, pool, zones)


def _first(problems: Iterable[tuple[object, str]]) -> None:
    """Refuse by the first problem that holds."""
    for holds, text in problems:
        if holds:
            raise bad_request(text)


def check_zones(zones: list[str], location: str) -> None:
    """Refuse zones that do not exist, or are not in the region of the cluster.

    Raises:
        GoogleApiError: naming the first one.
    """
    for zone in zones:
        if zone not in ZONES:
            raise bad_request(f'Location "{zone}" does not exist.')
        if ZONES[zone] != region_of(location):
            kind = "region" if location in REGIONS else "zone"
            raise bad_request(f'Node location "{zone}" is not in the region of the cluster\'s {kind} "{location}".')


def _check_version(pool: Pool, cluster: Record) -> None:
    """Refuse features of newer clusters; a cluster that asks for an older version is held to it."""
    version = parse(str(cluster.inputs.get("minMasterVersion") or cluster.state["version"]))
    since = pool.machine.series.gke_since
    features: dict[str, GkeVersion | None] = {
        f"Machine type {pool.machine_name}": parse(since) if since else None,
        "Flex-start": FLEX_START.since if pool.flex_start else None,
        "An accelerator network profile": MANAGED_DRANET.since if pool.network_profile else None,
    }
    for feature, oldest in features.items():
        if oldest and not version.at_least(oldest):
            raise bad_request(
                f"{feature} is not supported in cluster version {version}: it requires version {oldest} or later."
            )


def _machine_problems(pool: Pool) -> Iterable[tuple[object, str]]:
    machine, asked = pool.machine, pool.accelerator
    kind, count = asked.get("type"), int(asked.get("count") or 0)
    image = str(pool.config.get("imageType") or "COS_CONTAINERD").upper()
    yield image not in {"COS_CONTAINERD", "UBUNTU_CONTAINERD"}, f'image type "{image}" is not supported.'
    yield image != "COS_CONTAINERD", f'image type "{image}": the nodes of the simulated GKE run COS_CONTAINERD only.'
    yield (
        machine.gpus and not asked,
        (
            f"Machine type {machine.name} requires accelerator {machine.gpu.accelerator} with count {machine.gpus};"
            " none"
            " was specified."
        ),
    )
    yield (
        asked and kind != machine.gpu.accelerator,
        f"[{kind}, {machine.name}] features are not compatible for creating instance.",
    )
    yield (
        asked and count != machine.gpus,
        (
            f"Number of accelerators {count} is not supported for machine type {machine.name}: it has {machine.gpus} of"
            f" {machine.gpu.accelerator}."
        ),
    )
    yield asked and pool.driver_version not in _DRIVERS, f'Invalid gpu_driver_version "{pool.driver_version}".'
    yield (
        pool.disk_type not in machine.series.boot_disks,
        f"{pool.disk_type} disk type cannot be used by {machine.name} machine type.",
    )
    ssds = sum(
        int((pool.config.get(key) or {}).get("localSsdCount") or 0)
        for key in ("ephemeralStorageLocalSsdConfig", "localNvmeSsdBlockConfig")
    )
    yield (
        machine.local_ssds and ssds and ssds != machine.local_ssds,
        (
            f"Machine type {machine.name} has {machine.local_ssds} Local SSDs; local_ssd_count must be"
            f" {machine.local_ssds}, got {ssds}."
        ),
    )
    yield (
        ssds and not machine.local_ssds and ssds not in machine.local_ssd_choices,
        f"{ssds} Local SSDs are not supported with machine type {machine.name}.",
    )


def _size_problems(pool: Pool) -> Iterable[tuple[object, str]]:
    for key in ("nodeCount", "initialNodeCount"):
        size = int(pool.inputs.get(key) or 0)
        yield size > _POOL_MOST, f"Node pool size {size} exceeds the limit of {_POOL_MOST} nodes in a zone."
    if pool.bounds:
        least, most = pool.bounds.least, pool.bounds.most
        yield most < 1, "NodePoolAutoscaling.total_max_node_count must be greater than zero."
        yield (
            least > most,
            (
                f"NodePoolAutoscaling.total_min_node_count ({least}) must not be greater than total_max_node_count"
                f" ({most})."
            ),
        )


def _provisioning_problems(pool: Pool, zones: list[str]) -> Iterable[tuple[object, str]]:
    """Combinations of Spot, reserved, flex-start and queued capacity, and of compact placement."""
    affinity = pool.config.get("reservationAffinity") or {}
    specific = pool.reservation == "SPECIFIC_RESERVATION"
    on_request = pool.flex_start or pool.queued
    yield (
        specific and not (affinity.get("key") and affinity.get("values")),
        "Reservation affinity SPECIFIC_RESERVATION requires a key and values.",
    )
    yield specific and pool.spot, "Spot and preemptible VMs cannot consume a specific reservation."
    yield specific and pool.flex_start, "Flex-start requires reservation affinity to be set to none."
    yield pool.flex_start and pool.spot, "Flex-start cannot be used with Spot or preemptible VMs."
    yield pool.flex_start and not pool.bounds, "Flex-start requires node pool autoscaling to be enabled."
    yield (
        pool.queued and pool.reservation != "NO_RESERVATION",
        "Queued_provisioning requires reservation affinity to be set to none",
    )
    yield pool.queued and not pool.bounds, "Queued_provisioning requires node pool autoscaling to be enabled"
    yield (
        on_request and int(pool.inputs.get("nodeCount") or 0),
        "Flex-start and queued provisioning require an initial node count of zero.",
    )
    compact = (pool.inputs.get("placementPolicy") or {}).get("type") == "COMPACT"
    yield compact and len(zones) > 1, "Compact placement requires a node pool in a single zone."
    yield compact and pool.queued, "Compact placement cannot be used with queued provisioning."
    duration = str(pool.config.get("maxRunDuration") or "0s")
    seconds = re.fullmatch(r"([0-9]+)s", duration)
    yield not seconds, f'Invalid max_run_duration "{duration}": expected seconds, such as "604800s".'
    yield (
        pool.flex_start and seconds and int(seconds[1]) > _FLEX_START_SECONDS,
        f'max_run_duration "{duration}" exceeds the {_FLEX_START_SECONDS}s that flex-start allows.',
    )


def _check_networks(cloud: Cloud, cluster: Record, record: Record, pool: Pool, zones: list[str]) -> None:
    """Refuse further networks of the nodes: GPUDirect RDMA's, or those that GKE makes itself."""
    config: dict[str, Any] = pool.inputs.get("networkConfig") or {}
    extra = config.get("additionalNodeNetworkConfigs") or []
    profile, rdma = pool.network_profile, pool.machine.rdma
    dataplane = cluster.inputs.get("datapathProvider") == "ADVANCED_DATAPATH"
    _first(
        (
            ((extra or profile) and not dataplane, "Additional node networks require a cluster with Dataplane V2."),
            (
                profile and profile != "auto",
                f'Invalid accelerator_network_profile "{profile}": the only profile is "auto".',
            ),
            (
                profile and not rdma,
                f'Accelerator network profile "auto" is not supported for machine type {pool.machine_name}.',
            ),
            (profile and extra, "Additional node networks cannot be set with an accelerator network profile."),
            (
                extra and not cluster.inputs.get("enableMultiNetworking"),
                "Additional node networks require a cluster with multi-networking enabled.",
            ),
        )
    )
    for item in extra:
        network = find_network(cloud, item.get("network"), record.project)
        zone = rdma_zone(network)
        if zone and not rdma:
            raise bad_request(
                f"Machine type {pool.machine_name} has no RDMA network interfaces for the network '{network.id}'."
            )
        if zone and zones != [zone]:
            raise bad_request(
                f"The network '{network.id}' has the network profile '{last_part(network.inputs['networkProfile'])}' "
                f"and can only be used in zone '{zone}'; the node pool is in {', '.join(zones)}."
            )
        path, subnetwork = find_subnetwork(cloud, item.get("subnetwork"), record.project, region_of(zones[0]))
        if subnetwork is None:
            raise GoogleApiError(404, f"The resource '{path}' was not found", "notFound")
        if last_part(subnetwork.inputs["network"]) != network.name:
            raise bad_request(f'Subnetwork "{path}" is not valid for Network "{network.name}".')

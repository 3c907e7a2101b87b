"""What GKE refuses of a node pool.

Texts that public bug reports quote are used as they are; the others keep the API's shape and say what the page on the
feature says: docs.cloud.google.com/kubernetes-engine/docs/how-to and /concepts, and Google's
A4 recipes in GoogleCloudPlatform/cluster-toolkit (examples/gke-a4).

Answers to (read): https://docs.cloud.google.com/kubernetes-engine/docs/concepts/dws (flex-start,
    queued provisioning),
    https://docs.cloud.google.com/kubernetes-engine/docs/how-to/consuming-reservations,
    https://docs.cloud.google.com/kubernetes-engine/docs/how-to/compact-placement,
    https://docs.cloud.google.com/kubernetes-engine/docs/how-to/allocate-network-resources-dra
    (accelerator network profile),
    https://docs.cloud.google.com/kubernetes-engine/docs/how-to/flexible-pod-cidr (most pods on a
    node), and https://docs.cloud.google.com/vpc/docs/rdma-network-profiles.
Answers to (believed): the texts of most refusals, and their order. Asking GKE for such a pool would
    settle each.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from berth.components.hardware.machines import MACHINES
from berth.lab.plugins.gcp.errors import GoogleApiError, bad_request
from berth.lab.plugins.gcp.locations import REGIONS, ZONES, region_of
from berth.lab.plugins.gcp.references import find_network, find_subnetwork, rdma_zone
from berth.lab.plugins.gcp.resource import last_part
from berth.lab.plugins.gcp.versions import older

if TYPE_CHECKING:
    from berth.lab.plugins.gcp.pools import Pool
    from berth.lab.plugins.gcp.resource import Cloud
    from berth.lab.plugins.gcp.store import Record

_MAX_PODS_LEAST, _MAX_PODS_MOST = 8, 256
_POOL_MOST = 1000
_FLEX_START_SECONDS = 7 * 24 * 3600
# "About GPU consumption with flex-start", "Allocate network resources by using
# GKE managed DRANET": their requirements.
_OLDEST_FLEX_START = "1.32.2-gke.1652000"
_OLDEST_DRANET = "1.34.1-gke.1829001"
_DURATION = re.compile(r"([0-9]+)s")


def check_pool(cloud: Cloud, cluster: Record, record: Record, pool: Pool) -> None:
    """Refuse what GKE refuses.

    Raises:
        GoogleApiError: with the first thing that is wrong.
    """
    zones = pool.zones(cluster)
    check_zones(zones, str(cluster.inputs["location"]))
    _check_machine(pool, zones)
    _check_version(pool, cluster)
    _check_accelerator(pool)
    _check_disks(pool)
    _check_sizes(pool)
    _check_provisioning(pool, zones)
    _check_networks(cloud, cluster, record, pool, zones)


def check_zones(zones: list[str], location: str) -> None:
    """All zones exist, and lie in the region of the cluster.

    Raises:
        GoogleApiError: naming the first that does not.
    """
    for zone in zones:
        if zone not in ZONES:
            raise bad_request(f'Location "{zone}" does not exist.')
        if ZONES[zone] != region_of(location):
            kind = "region" if location in REGIONS else "zone"
            raise bad_request(f'Node location "{zone}" is not in the region of the cluster\'s {kind} "{location}".')


def _check_machine(pool: Pool, zones: list[str]) -> None:
    if pool.machine_name not in MACHINES:
        raise bad_request(f'Machine type with name "{pool.machine_name}" does not exist in zone "{zones[0]}".')
    image = str(pool.config.get("imageType") or "COS_CONTAINERD").upper()
    if image not in {"COS_CONTAINERD", "UBUNTU_CONTAINERD"}:
        raise bad_request(f'image type "{image}" is not supported.')
    if image != "COS_CONTAINERD":
        raise bad_request(f'image type "{image}": the nodes of the simulated GKE run COS_CONTAINERD only.')


def _check_version(pool: Pool, cluster: Record) -> None:
    """What only newer clusters have. The lab's is as new as its API server; one that asks for less is held to that."""
    version = str(cluster.inputs.get("minMasterVersion") or cluster.state["version"])
    features = {
        f"Machine type {pool.machine_name}": pool.machine.series.gke_since,
        "Flex-start": _OLDEST_FLEX_START if pool.flex_start else None,
        "An accelerator network profile": _OLDEST_DRANET if pool.network_profile else None,
    }
    for feature, oldest in features.items():
        if oldest and older(version, oldest):
            raise bad_request(
                f"{feature} is not supported in cluster version {version}: it requires version {oldest} or later."
            )


def _check_accelerator(pool: Pool) -> None:
    machine, accelerators = pool.machine, pool.config.get("guestAccelerators") or []
    if len(accelerators) > 1:
        raise bad_request("Only one accelerator type is supported for a node pool.")
    if not accelerators:
        if machine.gpus:
            raise bad_request(
                f"Machine type {machine.name} requires accelerator {machine.gpu.accelerator} with count "
                f"{machine.gpus}; none was specified."
            )
        return
    wanted, count = str(pool.accelerator.get("type")), int(pool.accelerator.get("count") or 0)
    if wanted != machine.gpu.accelerator:
        raise bad_request(f"[{wanted}, {machine.name}] features are not compatible for creating instance.")
    if count != machine.gpus:
        raise bad_request(
            f"Number of accelerators {count} is not supported for machine type {machine.name}: "
            f"it has {machine.gpus} of {machine.gpu.accelerator}."
        )
    driver = pool.driver_version
    if driver not in {"DEFAULT", "LATEST", "INSTALLATION_DISABLED", "GPU_DRIVER_VERSION_UNSPECIFIED"}:
        raise bad_request(f'Invalid gpu_driver_version "{driver}".')


def _check_disks(pool: Pool) -> None:
    machine = pool.machine
    if pool.disk_type not in machine.series.boot_disks:
        raise bad_request(f"{pool.disk_type} disk type cannot be used by {machine.name} machine type.")
    ephemeral = pool.config.get("ephemeralStorageLocalSsdConfig") or {}
    block = pool.config.get("localNvmeSsdBlockConfig") or {}
    counts = [int(config["localSsdCount"]) for config in (ephemeral, block) if config.get("localSsdCount")]
    if machine.local_ssds and counts and sum(counts) != machine.local_ssds:
        raise bad_request(
            f"Machine type {machine.name} has {machine.local_ssds} Local SSDs; local_ssd_count must be "
            f"{machine.local_ssds}, got {sum(counts)}."
        )
    if counts and machine.family == "e2":
        raise bad_request(f"Local SSDs are not supported with machine type {machine.name}.")


def _check_sizes(pool: Pool) -> None:
    inputs = pool.inputs
    most = inputs.get("maxPodsPerNode")
    if most is not None and not _MAX_PODS_LEAST <= most <= _MAX_PODS_MOST:
        raise bad_request(f"max_pods_per_node must be between {_MAX_PODS_LEAST} and {_MAX_PODS_MOST}, got {most}.")
    for key in ("nodeCount", "initialNodeCount"):
        if int(inputs.get(key) or 0) > _POOL_MOST:
            raise bad_request(f"Node pool size {inputs[key]} exceeds the limit of {_POOL_MOST} nodes in a zone.")
    scaling = inputs.get("autoscaling") or {}
    total = {"totalMinNodeCount", "totalMaxNodeCount"} & scaling.keys()
    if total and {"minNodeCount", "maxNodeCount"} & scaling.keys():
        raise bad_request("Cannot set both per-zone and total node count limits for node pool autoscaling.")
    bounds = pool.bounds
    if bounds is None:
        return
    names = ("total_min_node_count", "total_max_node_count") if total else ("min_node_count", "max_node_count")
    if bounds.most < 1:
        raise bad_request(f"NodePoolAutoscaling.{names[1]} must be greater than zero.")
    if bounds.least > bounds.most:
        raise bad_request(
            f"NodePoolAutoscaling.{names[0]} ({bounds.least}) must not be greater than {names[1]} ({bounds.most})."
        )


def _check_provisioning(pool: Pool, zones: list[str]) -> None:
    """On demand, Spot, reserved, flex-start and queued: what goes with what."""
    affinity = pool.config.get("reservationAffinity") or {}
    reserved = pool.reservation in {"SPECIFIC_RESERVATION", "ANY_RESERVATION", "ANY_RESERVATION_THEN_FAIL"}
    spot = pool.spot or bool(pool.config.get("preemptible"))
    if pool.spot and pool.config.get("preemptible"):
        raise bad_request("Cannot set both spot and preemptible.")
    if pool.reservation == "SPECIFIC_RESERVATION" and not (affinity.get("key") and affinity.get("values")):
        raise bad_request("Reservation affinity SPECIFIC_RESERVATION requires a key and values.")
    if spot and pool.reservation == "SPECIFIC_RESERVATION":
        raise bad_request("Spot and preemptible VMs cannot consume a specific reservation.")
    if pool.flex_start and reserved:
        raise bad_request("Flex-start requires reservation affinity to be set to none.")
    if pool.flex_start and spot:
        raise bad_request("Flex-start cannot be used with Spot or preemptible VMs.")
    _check_capacity_on_request(pool)
    _check_placement(pool, zones)
    _check_duration(pool)


def _check_capacity_on_request(pool: Pool) -> None:
    """Flex-start and queued provisioning: nodes come when pods ask for them."""
    if pool.flex_start and pool.bounds is None:
        raise bad_request("Flex-start requires node pool autoscaling to be enabled.")
    if pool.queued:
        if pool.reservation != "NO_RESERVATION":
            raise bad_request("Queued_provisioning requires reservation affinity to be set to none")
        if pool.bounds is None:
            raise bad_request("Queued_provisioning requires node pool autoscaling to be enabled")
    if (pool.flex_start or pool.queued) and int(pool.inputs.get("nodeCount") or 0):
        raise bad_request("Flex-start and queued provisioning require an initial node count of zero.")


def _check_placement(pool: Pool, zones: list[str]) -> None:
    if (pool.inputs.get("placementPolicy") or {}).get("type") != "COMPACT":
        return
    if len(zones) > 1:
        raise bad_request("Compact placement requires a node pool in a single zone.")
    if pool.queued:
        raise bad_request("Compact placement cannot be used with queued provisioning.")


def _check_duration(pool: Pool) -> None:
    text = pool.config.get("maxRunDuration")
    if not text:
        return
    match = _DURATION.fullmatch(str(text))
    if match is None:
        raise bad_request(f'Invalid max_run_duration "{text}": expected seconds, such as "604800s".')
    if pool.flex_start and int(match[1]) > _FLEX_START_SECONDS:
        raise bad_request(f'max_run_duration "{text}" exceeds the {_FLEX_START_SECONDS}s that flex-start allows.')


def _check_networks(cloud: Cloud, cluster: Record, record: Record, pool: Pool, zones: list[str]) -> None:
    """Further networks of the nodes: GPUDirect RDMA's, or those that GKE makes itself."""
    config: dict[str, Any] = pool.inputs.get("networkConfig") or {}
    extra = config.get("additionalNodeNetworkConfigs") or []
    profile = pool.network_profile
    if (extra or profile) and cluster.inputs.get("datapathProvider") != "ADVANCED_DATAPATH":
        raise bad_request("Additional node networks require a cluster with Dataplane V2.")
    if profile:
        if profile != "auto":
            raise bad_request(f'Invalid accelerator_network_profile "{profile}": the only profile is "auto".')
        if not pool.machine.rdma:
            raise bad_request(
                f'Accelerator network profile "auto" is not supported for machine type {pool.machine_name}.'
            )
        if extra:
            raise bad_request("Additional node networks cannot be set with an accelerator network profile.")
    if extra and not cluster.inputs.get("enableMultiNetworking"):
        raise bad_request("Additional node networks require a cluster with multi-networking enabled.")
    for item in extra:
        network = find_network(cloud, item.get("network"), record.project)
        zone = rdma_zone(network)
        if zone and not pool.machine.rdma:
            raise bad_request(
                f"Machine type {pool.machine_name} has no RDMA network interfaces for the network '{network.id}'."
            )
        if zone and zones != [zone]:
            raise bad_request(
                f"The network '{network.id}' has the network profile '{last_part(network.inputs['networkProfile'])}' "
                f"and can only be used in zone '{zone}'; the node pool is in {', '.join(zones)}."
            )
        _check_subnetwork(cloud, record, network, item.get("subnetwork"), region_of(zones[0]))


def _check_subnetwork(cloud: Cloud, record: Record, network: Record, reference: object, region: str) -> None:
    path, subnetwork = find_subnetwork(cloud, reference, record.project, region)
    if subnetwork is None:
        raise GoogleApiError(404, f"The resource '{path}' was not found", "notFound")
    if last_part(subnetwork.inputs["network"]) != network.name:
        raise bad_request(f'Subnetwork "{path}" is not valid for Network "{network.name}".')

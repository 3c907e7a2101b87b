"""Rules of `arguments`: what a patch may not change, and combinations that the provider refuses."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from berth.components.core.problems import SettingPath
from berth.components.core.rules import Breach, Rules
from berth.components.core.types import location_of_key
from berth.components.gke.argument_patches.merging import pulumi_inputs
from berth.components.gke.arguments import NodeNetwork
from berth.components.gke.cluster_arguments import cluster_arguments
from berth.components.gke.field_rules import field_problems
from berth.components.gke.node_pool_arguments import NodePlace, node_pool_arguments
from berth.components.gke.pool_settings import PoolSettings
from berth.components.gke.provider_fields import CLUSTER, NODE_POOL, resource_fields
from berth.components.gke.rules.pool import EnvironmentPool
from berth.components.gke.settings import GkeSettings

CLUSTER_ARGUMENTS = Rules[GkeSettings](GkeSettings)
"""Rules of the patch of a cluster that berth creates."""

POOL_ARGUMENTS = Rules[EnvironmentPool](PoolSettings)
"""Rules of the patch of a pool that berth creates."""

_SOME = "some"
"""Name of a resource; no rule depends on it."""

_GKES_METADATA = "disable-legacy-endpoints"
"""Key that GKE adds to the metadata of every node."""

_KEY_OF_BOOT_DISKS = ("nodeConfig", "bootDiskKmsKey")

_REGION = re.compile(r"[a-z]+-[a-z]+\d+")
"""Location of one region; others are `us` and `global`, for example."""

_PARTS = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
"""Field, or position in a list."""


@CLUSTER_ARGUMENTS.problem("cluster.arguments.**")
def arguments_of_a_cluster(environment: GkeSettings) -> Iterator[Breach]:
    """The provider takes the patched cluster, in which fields that berth sets are as they were."""
    patch = environment.cluster.arguments
    if not patch:
        return
    without = environment.cluster.model_copy(update={"arguments": {}})
    plain = environment.model_copy(update={"cluster": without})
    for path, message in _problems(
        patch, _cluster_inputs(plain), _cluster_inputs(environment), CLUSTER
    ):
        place = ("cluster", "arguments", *path)
        yield Breach(message, at=place, rests_on=(place,))


@POOL_ARGUMENTS.problem("arguments.**")
def arguments_of_a_pool(pool: EnvironmentPool) -> Iterator[Breach]:
    """The provider takes the patched pool, in which fields that berth sets are as they were."""
    patch = pool.settings.arguments
    if not patch:
        return
    plain = pool.settings.model_copy(update={"arguments": {}})
    among = _place(pool)
    for path, message in _problems(
        patch, _pool_inputs(plain, among), _pool_inputs(pool.settings, among), NODE_POOL
    ):
        place = ("arguments", *path)
        yield Breach(message, at=place, rests_on=(place,))


@POOL_ARGUMENTS.problem("arguments.**")
def metadata_without_gkes_own(pool: EnvironmentPool) -> Iterator[Breach]:
    """GKE adds a key to the metadata of nodes, and the provider takes its absence for a change.

    Source: `metadata` of `node_config`
    (https://registry.terraform.io/providers/hashicorp/google/latest/docs/resources/container_cluster).
    """
    metadata = (pool.settings.arguments.get("nodeConfig") or {}).get("metadata")
    if metadata and _GKES_METADATA not in metadata:
        yield Breach(
            f"GKE adds {_GKES_METADATA} to these, and the next update would replace the pool to"
            f' take it away; write `{_GKES_METADATA}: "true"` too',
            at=("arguments", "nodeConfig", "metadata"),
        )


@CLUSTER_ARGUMENTS.problem("cluster.arguments.**", rests_on=["zone", "region"])
def key_of_the_first_pools_boot_disk(environment: GkeSettings) -> Iterator[Breach]:
    """A disk is encrypted with a key of its own region, or one that is not of a region."""
    message = _wrong_key(environment.cluster.arguments, environment)
    if message:
        yield Breach(message, at=("cluster", "arguments", *_KEY_OF_BOOT_DISKS))


@POOL_ARGUMENTS.problem("arguments.**", rests_on=["environment.zone", "environment.region"])
def key_of_boot_disks(pool: EnvironmentPool) -> Iterator[Breach]:
    """A disk is encrypted with a key of its own region, or one that is not of a region."""
    message = _wrong_key(pool.settings.arguments, pool.environment)
    if message:
        yield Breach(message, at=("arguments", *_KEY_OF_BOOT_DISKS))


def _wrong_key(patch: Mapping[str, Any], environment: GkeSettings) -> str | None:
    """Return what is wrong with a patch's key for boot disks.

    Source: "Use customer-managed encryption keys"
    (https://docs.cloud.google.com/kubernetes-engine/docs/how-to/using-cmek).
    """
    key = (patch.get("nodeConfig") or {}).get("bootDiskKmsKey")
    if key is None or not environment.in_region:
        return None
    location = location_of_key(key)
    if not location:
        example = (
            f"projects/your-keys/locations/{environment.in_region}/keyRings/gke/cryptoKeys/disks"
        )
        return f"{key!r} is not a key of Cloud KMS; write for example {example}"
    is_of_a_region = _REGION.fullmatch(location) is not None
    if is_of_a_region and location != environment.in_region:
        return (
            f"the key is in {location}, and the disks in {environment.in_region}: Compute Engine"
            f" refuses the nodes; name a key in {environment.in_region}"
        )
    return None


def _cluster_inputs(environment: GkeSettings) -> dict[str, Any]:
    """Return the inputs of a cluster, as far as a patch can be in conflict with them."""
    return {
        "name": _SOME,
        "network": _SOME,
        "subnetwork": _SOME,
        "ipAllocationPolicy": {
            "clusterSecondaryRangeName": _SOME,
            "servicesSecondaryRangeName": _SOME,
        },
        **pulumi_inputs(cluster_arguments(environment), CLUSTER),
    }


def _pool_inputs(settings: PoolSettings, place: NodePlace) -> dict[str, Any]:
    arguments = pulumi_inputs(node_pool_arguments(settings, place), NODE_POOL)
    return {"name": _SOME, "cluster": _SOME, **arguments}


def _place(pool: EnvironmentPool) -> NodePlace:
    environment = pool.environment
    return NodePlace(
        project=environment.project or "",
        cluster=_SOME,
        location=environment.location,
        zones=pool.zones,
        labels=environment.labels,
        private=environment.cluster.private_nodes,
        networks=[NodeNetwork(network=_SOME, subnetwork=_SOME)],
        workload_policy=_SOME if pool.nvlink_domain else None,
    )


def _problems(
    patch: Mapping[str, Any], plain: dict[str, Any], patched: dict[str, Any], token: str
) -> Iterator[tuple[SettingPath, str]]:
    """Yield what is wrong with a patch, with the place in it.

    Args:
        patch: the patch.
        plain: inputs of the resource without the patch.
        patched: inputs of the resource with the patch.
        token: Pulumi's type of the resource.
    """
    yield from _changed(plain, patch, ())
    facts = resource_fields()[token]
    present = field_problems(plain, facts)
    places: dict[str, list[SettingPath]] = {}
    for where, reason in field_problems(patched, facts):
        if (where, reason) not in present:
            places.setdefault(reason, []).append(_within(patch, where))
    for reason, places_of_reason in places.items():
        for place in places_of_reason:
            # A combination of a field of the patch with one of berth's is said at the patch's.
            is_above = any(other[: len(place)] == place != other for other in places_of_reason)
            if not is_above:
                yield place, f"{reason.removesuffix('.')}; complete it, or take it out"


def _changed(plain: Any, patch: Any, path: SettingPath) -> Iterator[tuple[SettingPath, str]]:
    """Yield the fields that berth sets here, and that a patch changes."""
    if isinstance(plain, Mapping) and isinstance(patch, Mapping):
        for key, value in patch.items():
            if key in plain:
                yield from _changed(plain[key], value, (*path, key))
    elif plain != patch:
        yield path, "berth sets it here; take it out"


def _within(patch: Any, path: str) -> SettingPath:
    """Return the part of a path, such as `nodeConfig.taints[0].key`, that a patch has."""
    place: SettingPath = ()
    for name, position in _PARTS.findall(path):
        part = name or int(position)
        try:
            patch = patch[part]
        except (KeyError, IndexError, TypeError):
            break
        place = (*place, part)
    return place

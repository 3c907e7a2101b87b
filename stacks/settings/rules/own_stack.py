"""Rules of an engineer's own stack, alone and on its environment."""

from dataclasses import dataclass

from berth.components.core.owner import namespace_of
from berth.components.core.rules import Rules
from berth.components.gke import Addon
from berth.components.ray import RayClusterSettings
from berth.stacks.settings.contract import EnvironmentContract
from berth.stacks.settings.engineer import EngineerSettings
from berth.stacks.settings.environment import USES


@dataclass(frozen=True)
class OwnBerth:
    """Berth of an engineer's own stack, and its environment.

    Attributes:
        name: name of the berth.
        settings: settings of the stack.
        contract: contract of the environment.
    """

    name: str
    settings: EngineerSettings
    contract: EnvironmentContract


@dataclass(frozen=True)
class OwnCluster:
    """Complete RayCluster of an engineer's own stack, and its environment.

    Attributes:
        cluster: the RayCluster.
        settings: settings of the stack.
        contract: contract of the environment.
    """

    cluster: RayClusterSettings
    settings: EngineerSettings
    contract: EnvironmentContract

    def uses(self, addon: Addon) -> bool:
        """Return whether the RayCluster uses an add-on of GKE."""
        return bool(USES[addon](self.cluster))

    @property
    def bring_up(self) -> str:
        """Command that updates the environment."""
        return f"berth up -s {self.contract.name}"


OWN_STACKS = Rules[EngineerSettings](EngineerSettings)
"""Rules of an engineer's own stack, whatever its environment is."""

OWN_BERTHS = Rules[OwnBerth](EngineerSettings)
"""Rules of an engineer's own berth beside those of its environment."""

OWN_CLUSTERS = Rules[OwnCluster](EngineerSettings)
"""Rules of an engineer's own RayCluster: what it needs of its environment."""


@OWN_STACKS.problem("login")
def login_of_the_wrong_half(settings: EngineerSettings) -> str | None:
    """The engineer's own half of a berth is created by the engineer's own login, and only it."""
    if settings.part == "cluster" and not settings.login:
        return "is required with `part: cluster`: your own login to the cluster"
    if settings.part != "cluster" and settings.login:
        return "has a meaning only with `part: cluster`; take it out"
    return None


@OWN_STACKS.problem("lifecycle")
def lifecycle_of_the_wrong_half(settings: EngineerSettings) -> str | None:
    """The keeper reads a berth's lifecycle from its namespace, which only admins write."""
    if settings.part == "cluster" and settings.lifecycle.model_fields_set:
        return (
            "has no effect with `part: cluster`: the keeper reads it from the namespace, which only"
            " the admins' stack with `part: isolation` writes; take it out here, and ask them to"
            " write it there"
        )
    return None


@OWN_BERTHS.problem("name")
def name_of_the_environments_own_berth(berth: OwnBerth) -> str | None:
    """One stack registers a namespace."""
    owner = berth.contract.namespaces.get(namespace_of(berth.name))
    if not owner:
        return None
    return (
        f"environment {berth.contract.name!r} has {berth.name!r} among its own ({owner}); remove"
        " it there, or give this stack another `name`"
    )


@OWN_BERTHS.problem("priority")
def priority_of_an_own_stack(berth: OwnBerth) -> str | None:
    """The environment decides which berths go first."""
    priority = berth.settings.priority
    if priority is None or priority == berth.contract.defaults.priority:
        return None
    return (
        f"only environment {berth.contract.name!r} decides which berths go first, not an"
        " engineer's own stack; take this out"
    )


@OWN_CLUSTERS.problem("access")
def isolation_for_nobody(own: OwnCluster) -> str | None:
    """Somebody has to create the RayCluster in the namespace of the admins' half."""
    if own.settings.part == "isolation" and not own.cluster.access.anyone:
        return (
            "is required with `part: isolation`: nobody else could create the RayCluster; name who"
            " runs the other half"
        )
    return None


@OWN_CLUSTERS.problem("lifecycle")
def lifecycle_without_a_keeper(own: OwnCluster) -> str | None:
    """The environment's keeper suspends and wakes all berths."""
    if not own.cluster.lifecycle.any or own.contract.keeper:
        return None
    return (
        f"environment {own.contract.name!r} has no keeper, so nothing would suspend or wake the"
        f" berth; give it one there (`keeper: {{}}`; then {own.bring_up}), or take this out"
    )


@OWN_CLUSTERS.problem("volumes")
def buckets_without_a_driver(own: OwnCluster) -> str | None:
    """GKE's driver mounts buckets."""
    if not own.uses("gcs_fuse") or own.contract.gcs_fuse:
        return None
    return (
        f"environment {own.contract.name!r} has no driver for buckets; write there `cluster:"
        f" {{gcsFuse: true}}`, and run: {own.bring_up}"
    )


@OWN_CLUSTERS.problem("volumes")
def shares_without_a_driver(own: OwnCluster) -> str | None:
    """GKE's driver mounts volumes of Filestore; no settings say what an existing cluster has."""
    if not own.uses("filestore") or own.contract.filestore or own.contract.login:
        return None
    return (
        f"environment {own.contract.name!r} has no driver for Filestore; write there `cluster:"
        f" {{filestore: true}}`, and run: {own.bring_up}"
    )


@OWN_CLUSTERS.problem("secrets")
def secrets_without_synchronization(own: OwnCluster) -> str | None:
    """GKE copies secrets of Secret Manager; no settings say what an existing cluster has."""
    if not own.uses("secret_sync") or own.contract.project or own.contract.login:
        return None
    return (
        f"environment {own.contract.name!r} does not read Secret Manager; write there `cluster:"
        f" {{secretSync: true}}`, and run: {own.bring_up}"
    )

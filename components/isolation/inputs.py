"""Inputs of the isolation of a namespace."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

from berth.components.isolation.access import Access
from berth.components.isolation.settings import MOST_DISK, IsolationSettings
from berth.components.operators import KubeRaySettings


class NetworkPeer(TypedDict, total=False):
    """Peer of a rule of a NetworkPolicy, as the API has it."""

    namespaceSelector: dict[str, Any]
    podSelector: dict[str, Any]
    ipBlock: dict[str, Any]


@dataclass(frozen=True)
class IsolationInputs:
    """Inputs of a namespace's isolation."""

    settings: IsolationSettings = field(default_factory=IsolationSettings)
    kuberay: KubeRaySettings = field(default_factory=KubeRaySettings)
    access: Access = field(default_factory=Access)
    priority: str | None = None
    """PriorityClass of the pods; None for no limit on classes."""
    gpu_resources: Collection[str] = ()
    """Resource names of GPUs and shares; the quota is 0 for those that no pod requests."""
    devices: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Number of devices by class that a claim takes, by the name of its template."""
    clients: Collection[str] = ()
    """Namespaces whose pods may send requests to Ray Serve."""
    disk: str = MOST_DISK
    """Most disk of its node that a container uses where no setting says it, as a quantity."""
    callers: Collection[NetworkPeer] = ()
    """Peers of NetworkPolicies, beside the KubeRay operator, that may call the dashboard."""

"""Settings of the isolation of berths: exceptions of an environment, and the users of a berth."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypedDict

from pydantic import Field

from berth.components.core.settings import DefaultedSettings, Settings
from berth.components.core.types import Cidr, Name, NonEmpty, Quantity, must_match
from berth.components.operators import KubeRaySettings

PRODUCTION = "berth-production"
"""PriorityClass of named clusters."""

DEVELOPMENT = "berth-development"
"""PriorityClass of engineers' berths: named clusters preempt them."""

PodSecurity = Literal["restricted", "baseline", "privileged"]
"""Levels of Pod Security Admission, the strictest first
(https://kubernetes.io/docs/concepts/security/pod-security-standards/)."""

_ACCOUNT = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-.a-z0-9]*[a-z0-9])?")

# It has 200 characters at most: a quota's name has 253, and begins with other words.
_CLASS = re.compile(r"(?=.{1,200}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


class NetworkPeer(TypedDict, total=False):
    """Peer of a rule of a NetworkPolicy, as the API has it."""

    namespaceSelector: dict[str, Any]
    podSelector: dict[str, Any]
    ipBlock: dict[str, Any]


class IsolationSettings(Settings):
    """Isolation of the berths of an environment; a part that is off is off for all berths."""

    pod_security: Literal["restricted", "baseline"] = "restricted"
    """Strictest Pod Security level that the API server enforces; a berth that needs more of its
    node gets the level that allows it. `baseline` allows `sudo` in Ray's image."""
    network_policies: bool = True
    """Limit traffic: pods reach their own berth, name servers and the internet, and only their own
    berth and the KubeRay operator reach the pods."""
    reachable: Annotated[list[Cidr], Field(examples=[["10.128.0.0/20"]])] = []
    """Further private ranges that pods may reach, for example of file servers: 10.20.0.0/24."""
    reachable_namespaces: Annotated[list[Name], Field(examples=[["mlflow"]])] = []
    """Namespaces whose pods berths may reach; ranges match nothing inside the cluster."""
    metadata_server: Annotated[bool | None, Field(examples=[True])] = None
    """Let pods ask their node's metadata server for their identity (Workload Identity Federation);
    without GKE's, that gives them the node's credentials. Default: only on clusters that berth
    creates."""
    quotas: bool = True
    """Limit a namespace to the cores, memory and GPUs of its RayCluster, a small reserve for job
    submitters, its disks and its PriorityClass."""
    storage: Annotated[Quantity, Field(examples=["10Ti"])] = "1Ti"
    """Storage that all volume claims of a berth together request at most."""
    ephemeral_storage: Annotated[Quantity, Field(examples=["2Ti"])] = "500Gi"
    """Most disk of its node that a container uses: its files, emptyDir volumes, logs, Ray's
    spilling. A pod that uses more is evicted."""


UserName = Annotated[
    NonEmpty,
    must_match(
        re.compile(r"(?!system:).*", re.DOTALL),
        "includes people outside of the berth; name e-mail addresses of users, or groups of"
        " your own",
    ),
]
"""User or group of the cluster: on GKE an e-mail address."""

ClusterServiceAccount = Annotated[
    str,
    must_match(
        _ACCOUNT, "is not a service account of the cluster; write its namespace and name: ci/runner"
    ),
]
"""Kubernetes service account: `namespace/name`."""

PriorityClass = Annotated[
    NonEmpty,
    must_match(
        _CLASS, "is not the name of a PriorityClass: lowercase letters, digits, '-' and '.'"
    ),
    must_match(
        re.compile("(?!system-).*"),
        f"is reserved for system pods of the cluster; take {PRODUCTION} or a class of your own",
    ),
]
"""Name of a PriorityClass."""


class Access(DefaultedSettings):
    """Users of a berth, through kubectl and Ray: they see its pods, run jobs and read its token.

    Their rights end at the berth's namespace.
    """

    users: Annotated[list[UserName], Field(examples=[["alice@example.com"]])] = []
    """E-mail addresses of Google accounts or Google service accounts."""
    groups: Annotated[list[UserName], Field(examples=[["ml-team@example.com"]])] = []
    """E-mail addresses of Google groups that are members of the cluster's gke-security-groups."""
    service_accounts: Annotated[
        list[ClusterServiceAccount], Field(examples=[["argo/submitter"]])
    ] = []
    """Kubernetes service accounts: `namespace/name`."""

    @property
    def anyone(self) -> bool:
        """Whether the berth has any user."""
        return bool(self.users or self.groups or self.service_accounts)


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
    callers: Collection[NetworkPeer] = ()
    """Peers of NetworkPolicies, beside the KubeRay operator, that may call the dashboard."""

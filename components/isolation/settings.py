"""Settings of the isolation of an environment's berths."""

from typing import Annotated, Literal

from pydantic import Field

from berth.components.core.settings import Settings
from berth.components.core.types import Cidr, Name, Quantity

MOST_DISK = "500Gi"
"""Most disk of its node that a container uses where no setting says it."""

PodSecurity = Literal["restricted", "baseline", "privileged"]
"""Levels of Pod Security Admission, the strictest first
(https://kubernetes.io/docs/concepts/security/pod-security-standards/)."""


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
    ephemeral_storage: Annotated[Quantity | None, Field(examples=["2Ti"])] = None
    """Most disk of its node that a container uses: its files, emptyDir volumes, logs, Ray's
    spilling. A pod that uses more is evicted. Default: what the largest node of the berth's pools
    leaves to pods, 500Gi at most."""

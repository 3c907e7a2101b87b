"""What keeps berths apart: what an environment may loosen, and who may use which berth."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator

from berth.components.core.settings import Settings
from berth.components.core.types import Cidr, NonEmpty

PRODUCTION = "berth-production"
"""PriorityClass of named clusters."""

DEVELOPMENT = "berth-development"
"""PriorityClass of engineers' berths: named clusters preempt them."""

PodSecurity = Literal["restricted", "baseline", "privileged"]
"""Levels of Pod Security Admission, the strictest first (https://kubernetes.io/docs/concepts/security/pod-security-standards/)."""

_ACCOUNT = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-.a-z0-9]*[a-z0-9])?")


class IsolationSettings(Settings):
    """What keeps the berths of an environment apart. Every part is on unless it is loosened here, for all of them."""

    pod_security: Literal["restricted", "baseline"] = "restricted"
    """The strictest level that the API server holds pods to; a berth whose pods need more of their node, such as folders of it for
    NCCL, gets the level that lets them. `baseline` gives `sudo` in Ray's image back, and with it what the dashboard profiles."""
    network_policies: bool = True
    """Pods reach their own berth, name servers and the internet, and only their own berth and the KubeRay operator reach them."""
    reachable: list[Cidr] = []
    """Private ranges that pods may reach beside that, such as those of file servers: 10.20.0.0/24."""
    quotas: bool = True
    """A namespace gets no more cores, memory and GPUs than its RayCluster has by the settings, and a little for what submits jobs; and
    no pod of another PriorityClass than the berth's."""


def _nobody_in_particular(name: str) -> str:
    if name.startswith("system:"):
        raise ValueError(
            f"{name!r} stands for more than the people of one berth; name e-mail addresses of users, or groups of your own"
        )
    return name


def _check_service_account(text: str) -> str:
    if not _ACCOUNT.fullmatch(text):
        raise ValueError(f"{text!r} is no service account of the cluster; write its namespace and name: ci/runner")
    return text


def _check_priority(name: str) -> str:
    if name.startswith("system-"):
        raise ValueError(f"{name!r} is for what the cluster itself runs; take {PRODUCTION} or a class of your own")
    return name


Subject = Annotated[NonEmpty, AfterValidator(_nobody_in_particular)]
"""A user or a group, as the cluster knows it: on GKE an e-mail address."""

ClusterServiceAccount = Annotated[str, AfterValidator(_check_service_account)]
"""A Kubernetes service account: `namespace/name`."""

PriorityClass = Annotated[NonEmpty, AfterValidator(_check_priority)]
"""The name of a PriorityClass."""


class AccessShape(Settings):
    """Who may use a berth by kubectl and Ray: see its pods, run jobs, read its token. Rights in its namespace and nowhere else."""

    users: list[Subject] | None = None
    """E-mail addresses of Google accounts, or of Google service accounts. Default: none."""
    groups: list[Subject] | None = None
    """E-mail addresses of Google groups that are members of the cluster's gke-security-groups. Default: none."""
    service_accounts: list[ClusterServiceAccount] | None = None
    """Kubernetes service accounts: `namespace/name`. Default: none."""


class Access(Settings):
    """Who may use a berth, complete."""

    users: list[Subject] = []
    groups: list[Subject] = []
    service_accounts: list[ClusterServiceAccount] = []

    @property
    def anyone(self) -> bool:
        """There is anybody."""
        return bool(self.users or self.groups or self.service_accounts)

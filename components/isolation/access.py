"""Settings of the users of a berth."""

import re
from typing import Annotated

from pydantic import Field

from berth.components.core.settings import DefaultedSettings
from berth.components.core.types import NonEmpty, must_match

_ACCOUNT = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-.a-z0-9]*[a-z0-9])?")

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

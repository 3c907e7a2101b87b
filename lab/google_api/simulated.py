"""State behind all answers: conditions, records and the control plane of one lab.

Answers to (real): the version of the lab's API server.
Answers to (read): https://github.com/hashicorp/terraform-provider-google/issues/9380 (an API that
    is off).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from berth.components.cluster.api import ClusterApi, ClusterError
from berth.lab.plugins.gcp.conditions import Conditions, Project, conditions_of
from berth.lab.plugins.gcp.errors import GoogleApiError
from berth.lab.plugins.gcp.store import Record, Store

if TYPE_CHECKING:
    from berth.lab.home import Home

Answer = dict[str, Any]
"""JSON of an answer."""

_TITLES = {"compute": "Compute Engine API", "container": "Kubernetes Engine API"}


class Simulated:
    """Google Cloud of one lab at the moment of a call.

    Attributes:
        store: the resources that were made.
        conditions: what the projects have and may do.
    """

    def __init__(self, home: Home) -> None:
        self._home = home
        self.store = Store(home.cloud)
        self.conditions: Conditions = conditions_of(home)

    def project(self, name: str, service: str) -> Project:
        """A project with an API enabled.

        Raises:
            GoogleApiError: there is no such project, or its API is not enabled.
        """
        project = self.conditions.project(name)
        if project is None:
            raise GoogleApiError(
                403, f"Permission denied on resource project {name} (or it may not exist).", "forbidden"
            )
        api = f"{service}.googleapis.com"
        if api not in project.services:
            title = _TITLES.get(service, api)
            raise GoogleApiError(
                403,
                f"{title} has not been used in project {name} before or it is disabled. Enable it, then retry.",
                "SERVICE_DISABLED",
            )
        return project

    def pools(self, project: str) -> list[Record]:
        """The node pools of a project."""
        return self.store.list("nodePools", project)

    def gke_version(self) -> str:
        """The version that GKE has here: that of the lab's API server.

        Raises:
            GoogleApiError: the API server does not answer.
        """
        try:
            version = str(ClusterApi(self._home.kubeconfig.read_text()).request("GET", "/version")["gitVersion"])
        except (ClusterError, OSError, KeyError) as error:
            raise GoogleApiError(503, f"the lab's API server does not answer ({error})", "backendError") from None
        return gke_name(version)


def gke_name(version: str) -> str:
    """A Kubernetes version as GKE would call it, as the simulated clusters do."""
    return f"{version.removeprefix('v')}-gke.1000"

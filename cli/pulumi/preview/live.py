"""Question to an environment's cluster for its RayClusters, asked while the engine previews."""

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from berth.cli.pulumi import stack as pulumi_stack
from berth.components.cluster.api import RAY_CLUSTERS, ClusterApi, UnreachableError
from berth.components.cluster.owned import owners_of
from berth.components.cluster.rights import may
from berth.components.core.errors import BerthError
from berth.components.gke import ExistingCluster
from berth.stacks.program.login import logged_in, own_login

SECONDS = 10
"""Time that a cluster has to answer once the engine has its plan."""


class Question(threading.Thread):
    """Thread that asks Pulumi for a stack's outputs, and then the cluster that they name.

    Attributes:
        outputs: outputs of the stack, secret ones in clear text.
        api: its cluster; None if the outputs name none.
        live: RayClusters of its cluster; None if the cluster was not asked.
        not_asked: why it was not asked; "" where there was nothing to ask.
        reads_releases: whether this identity may read Helm's record of releases, which is Secrets.
    """

    def __init__(self, stack: str, *, releases: bool = False) -> None:
        super().__init__(daemon=True)
        self._stack, self._releases = stack, releases
        self.outputs: Mapping[str, Any] = {}
        self.api: ClusterApi | None = None
        self.live: Sequence[Mapping[str, Any]] | None = None
        self.not_asked = f"no answer within {SECONDS} s"
        self.reads_releases = True
        self.start()

    def run(self) -> None:
        """Ask."""
        try:
            self.outputs = pulumi_stack.outputs(self._stack)
            self.live = self._live()
        except UnreachableError as error:
            self.not_asked = str(error.of_stack(self._stack))
        except BerthError as error:
            self.not_asked = str(error)
        else:
            self.not_asked = ""

    def _live(self) -> Sequence[Mapping[str, Any]] | None:
        kubeconfig = self.outputs.get("kubeconfig")
        if not kubeconfig:
            return None
        contract = self.outputs.get("environment")
        named = contract.get("login") if isinstance(contract, Mapping) else None
        login = own_login(str(kubeconfig), ExistingCluster.model_validate(named) if named else None)
        self.api = api = ClusterApi(logged_in(str(kubeconfig), login))
        self.reads_releases = not self._releases or may(api, ("list", "", "secrets"))
        return owners_of(api).labeled(api.list(RAY_CLUSTERS)[0])

"""Question to a cluster for its RayClusters, asked while the engine previews."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from berth.components.cluster.api import RAY_CLUSTERS, ClusterApi
from berth.components.cluster.owned import Owners, owners_of
from berth.components.cluster.unrecorded import is_marked
from berth.components.core.errors import BerthError
from berth.components.core.owner import namespace_of
from berth.components.gke import ExistingCluster
from berth.stacks.program.login import logged_in, own_login

SECONDS = 10
"""Time that a cluster has to answer once the engine has its plan."""


@dataclass(frozen=True)
class Answer:
    """Answer of a cluster.

    Attributes:
        outputs: the stack's outputs, as the last `pulumi up` left them.
        live: the cluster's RayClusters; None without an answer.
        not_asked: why there is no answer; "" if there was nothing to ask.
        owners: owners of the cluster's berths.
        unrecorded: an earlier update was killed before its state was written.
    """

    outputs: Mapping[str, Any] = field(default_factory=dict)
    live: Sequence[Mapping[str, Any]] | None = None
    not_asked: str = ""
    owners: Owners = field(default_factory=Owners)
    unrecorded: bool = False

    def left_over(self, stack: str, known: Collection[str]) -> list[str]:
        """Return names of berths of a stack that neither its settings nor its state have.

        Only a killed update leaves any. A namespace that stays with a home, and has no RayCluster,
        is not a berth. Berths of a stack with the same name in another backend are not its own.
        """
        if not self.unrecorded:
            return []
        of_stack = self.owners.of_environment(stack).of_stack(stack).by_namespace.values()
        live = {cluster["metadata"]["namespace"] for cluster in self.live or ()}
        there = {owner.name for owner in of_stack if not owner.keeps_home or namespace_of(owner.name) in live}
        return sorted(there - set(known))


class Asking:
    """Thread that asks, and does not keep the program from ending."""

    def __init__(self, stack: str, outputs: Mapping[str, Any]) -> None:
        """Start to ask the cluster of the output `kubeconfig`."""
        self._stack, self._outputs = stack, outputs
        self._answer: Answer | None = None
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        kubeconfig = self._outputs.get("kubeconfig")
        try:
            self._answer = self._of_cluster(str(kubeconfig)) if kubeconfig else Answer(self._outputs)
        except BerthError as error:
            self._answer = Answer(self._outputs, not_asked=str(error))

    def _of_cluster(self, kubeconfig: str) -> Answer:
        """Return the answer of a cluster: its RayClusters, with the labels of their owners."""
        api = ClusterApi(self._with_login(kubeconfig))
        owners = owners_of(api)
        return Answer(
            self._outputs,
            live=owners.labeled(api.list(RAY_CLUSTERS)[0]),
            owners=owners,
            unrecorded=is_marked(api, self._stack),
        )

    def _with_login(self, kubeconfig: str) -> str:
        contract = self._outputs.get("environment")
        named = contract.get("login") if isinstance(contract, Mapping) else None
        login = own_login(kubeconfig, ExistingCluster.model_validate(named) if named else None)
        return logged_in(kubeconfig, login)

    def answer(self, seconds: float = SECONDS) -> Answer:
        """Return the answer, after at most so many seconds."""
        self._thread.join(seconds)
        return self._answer or Answer(self._outputs, not_asked=f"no answer within {seconds:.0f} s")

"""Question to an environment's cluster for its RayClusters, asked while the engine previews."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from berth.cli.pulumi import stack as pulumi_stack
from berth.components.cluster.api import RAY_CLUSTERS, ClusterApi, UnreachableError
from berth.components.cluster.owned import owners_of
from berth.components.core.errors import BerthError
from berth.components.gke import ExistingCluster
from berth.stacks.program.login import logged_in, own_login

SECONDS = 10
"""Time that a cluster has to answer once the engine has its plan."""


@dataclass(frozen=True)
class Answer:
    """Outputs of a stack, and its cluster's RayClusters; None with the reason in `not_asked`."""

    outputs: Mapping[str, Any] = field(default_factory=dict)
    live: Sequence[Mapping[str, Any]] | None = None
    not_asked: str = ""


class Question:
    """Thread that asks Pulumi for a stack's outputs, and then the cluster that they name."""

    def __init__(self, stack: str) -> None:
        """Start to ask."""
        self._outputs: Mapping[str, Any] = {}
        self._answer: Answer | None = None
        self._thread = threading.Thread(target=self._ask, args=(stack,), daemon=True)
        self._thread.start()

    def _ask(self, stack: str) -> None:
        try:
            self._outputs = pulumi_stack.outputs(stack)
            self._answer = Answer(self._outputs, live=self._live())
        except UnreachableError as error:
            self._answer = Answer(self._outputs, not_asked=str(error.of_stack(stack)))
        except BerthError as error:
            self._answer = Answer(self._outputs, not_asked=str(error))

    def _live(self) -> Sequence[Mapping[str, Any]] | None:
        """Return the cluster's RayClusters, with the labels of their owners."""
        kubeconfig = self._outputs.get("kubeconfig")
        if not kubeconfig:
            return None
        contract = self._outputs.get("environment")
        named = contract.get("login") if isinstance(contract, Mapping) else None
        login = own_login(str(kubeconfig), ExistingCluster.model_validate(named) if named else None)
        api = ClusterApi(logged_in(str(kubeconfig), login))
        return owners_of(api).labeled(api.list(RAY_CLUSTERS)[0])

    def answer(self, seconds: float = SECONDS) -> Answer:
        """Return the answer, after at most so many seconds."""
        self._thread.join(seconds)
        return self._answer or Answer(self._outputs, not_asked=f"no answer within {seconds:.0f} s")

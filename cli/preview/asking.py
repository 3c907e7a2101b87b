"""Question to a cluster for its RayClusters, asked while the engine previews."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from berth.components.cluster.api import RAY_CLUSTERS, ClusterApi, ClusterError, Object
from berth.components.cluster.owned import owners_of
from berth.components.core.errors import BerthError
from berth.components.gke import ExistingCluster
from berth.stacks.login import KubeconfigError, logged_in, own_login

SECONDS = 10
"""Time that a cluster has to answer once the engine has its plan."""


@dataclass(frozen=True)
class Answer:
    """Answer of a cluster.

    Attributes:
        outputs: the stack's outputs, as the last `pulumi up` left them.
        live: the cluster's RayClusters; None without an answer.
        not_asked: why there is no answer; "" if there was nothing to ask.
    """

    outputs: Mapping[str, Any] = field(default_factory=dict)
    live: Sequence[Mapping[str, Any]] | None = None
    not_asked: str = ""


class Asking:
    """Thread that asks, and does not keep the program from ending."""

    def __init__(self, outputs: Callable[[], Mapping[str, Any]]) -> None:
        """Start to ask the cluster of the output `kubeconfig`."""
        self._outputs = outputs
        self._known: Mapping[str, Any] = {}
        self._answer: Answer | None = None
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        try:
            self._known = self._outputs()
            kubeconfig = self._known.get("kubeconfig")
            live = _ray_clusters(ClusterApi(self._with_login(str(kubeconfig)))) if kubeconfig else None
            self._answer = Answer(self._known, live=live)
        except (ClusterError, KubeconfigError) as error:
            self._answer = Answer(self._known, not_asked=str(error))
        except BerthError:  # the preview itself reports why there are no outputs
            self._answer = Answer()

    def _with_login(self, kubeconfig: str) -> str:
        contract = self._known.get("environment")
        named = contract.get("login") if isinstance(contract, Mapping) else None
        login = own_login(kubeconfig, ExistingCluster.model_validate(named) if named else None)
        return logged_in(kubeconfig, login)

    def answer(self, seconds: float = SECONDS) -> Answer:
        """Return the answer, after at most so many seconds."""
        self._thread.join(seconds)
        return self._answer or Answer(self._known, not_asked=f"no answer within {seconds:.0f} s")


def _ray_clusters(api: ClusterApi) -> list[Object]:
    """Return a cluster's RayClusters, with the labels of their owners."""
    return owners_of(api).labeled(api.list(RAY_CLUSTERS)[0])

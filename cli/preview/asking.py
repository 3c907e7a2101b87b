"""Asking an environment's cluster which RayClusters it has, beside the engine's preview and never for long."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from berth.components.cluster.api import RAY_CLUSTERS, ClusterApi, ClusterError
from berth.components.core.errors import BerthError

SECONDS = 10
"""For so long a cluster that does not answer is waited for, once the engine has its plan."""


@dataclass(frozen=True)
class Answer:
    """What was learnt.

    Attributes:
        outputs: the stack's outputs, as the last `pulumi up` left them.
        live: the RayClusters that its cluster has; None where it was not asked.
        not_asked: why not, "" where there was nothing to ask.
    """

    outputs: Mapping[str, Any] = field(default_factory=dict)
    live: Sequence[Mapping[str, Any]] | None = None
    not_asked: str = ""


class Asking:
    """Begins at once, in a thread that does not keep the program from ending."""

    def __init__(self, outputs: Callable[[], Mapping[str, Any]]) -> None:
        """Begin.

        Args:
            outputs: what tells the stack's outputs; the cluster is reached by its `kubeconfig`.
        """
        self._outputs = outputs
        self._known: Mapping[str, Any] = {}
        self._answer: Answer | None = None
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        try:
            self._known = self._outputs()
        except BerthError:  # the preview itself reports the reason
            self._known = {}
        kubeconfig = self._known.get("kubeconfig")
        if not kubeconfig:
            self._answer = Answer(self._known)
            return
        try:
            found, _ = ClusterApi(str(kubeconfig)).list(RAY_CLUSTERS)
            self._answer = Answer(self._known, live=found)
        except ClusterError as error:
            self._answer = Answer(self._known, not_asked=str(error))

    def answer(self, seconds: float = SECONDS) -> Answer:
        """What was learnt until now, or within some more seconds."""
        self._thread.join(seconds)
        return self._answer or Answer(self._known, not_asked=f"no answer within {seconds:.0f} s")

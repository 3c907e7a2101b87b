"""Updates whose state is written at their end only, and what is left over after a killed one."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from typing import Any

from berth.cli.reach.environment import Environment, NotUpError, brought_up
from berth.cli.shell.console import err
from berth.cli.update.losses import Loss, losses_in
from berth.cli.update.phases import Phase
from berth.components.cluster import unrecorded
from berth.components.cluster.api import NAMESPACES, RAY_CLUSTERS, ClusterApi, within
from berth.components.cluster.owned import owner_of_namespace, ray_clusters_of
from berth.components.core.errors import BerthError
from berth.components.core.owner import namespace_of
from berth.components.core.words import counted
from berth.stacks.preview.report import Known

_GONE_SECONDS = 600.0
_LOOK_SECONDS = 0.5


class Recovery:
    """Cluster of a stack, for the mark of an update and for berths that are left over."""

    def __init__(self, stack: str, outputs: Mapping[str, Any] | None = None) -> None:
        self._stack, self._outputs = stack, outputs
        self._environment: Environment | None = None

    def begin(self, phase: Phase) -> Phase:
        """Put the mark on the cluster; return the phase, with checkpoints where that fails."""
        if phase.checkpoints:
            return phase
        try:
            self._environment = brought_up(self._stack, self._outputs)
            unrecorded.mark(self._api, self._stack, self._environment.contract.name)
        except BerthError as error:
            err.print(f"writes the state at every step, since the cluster cannot be asked: {error}", markup=False)
            return Phase(phase.only)
        return phase

    def end(self) -> None:
        """Take the mark off the cluster; one that stays only costs the next update a comparison."""
        with contextlib.suppress(BerthError):
            self._environment = self._environment or brought_up(self._stack, self._outputs)
            unrecorded.unmark(self._api, self._stack)

    @property
    def _api(self) -> ClusterApi:
        if self._environment is None:
            raise NotUpError(f"stack {self._stack} has not been brought up")
        return ClusterApi(self._environment.kubeconfig)

    def left_over(self, known: Known) -> Sequence[Loss]:
        """Return berths that a killed update left over, with the work that runs on them."""
        if not known.unrecorded:
            return ()
        self._environment = brought_up(self._stack, self._outputs)
        return losses_in(self._environment, known.left_over) if known.left_over else ()

    def remove(self, left_over: Sequence[Loss]) -> None:
        """Delete the namespaces of berths that are left over, and wait until they are gone.

        Of a berth with a home that stays, only the RayCluster goes.

        Raises:
            ClusterError: the cluster refuses, or does not answer.
            BerthError: some are not gone in time.
        """
        if not left_over:
            return
        paths = []
        for loss in left_over:
            namespace = self._api.get(f"{NAMESPACES}/{namespace_of(loss.name)}")
            if namespace is None:
                continue
            owner = owner_of_namespace(namespace)
            going = ray_clusters_of(self._api, owner) if owner and owner.keeps_home else [namespace]
            for item in going:
                name, of_namespace = item["metadata"]["name"], item["metadata"].get("namespace")
                paths.append(f"{within(of_namespace, RAY_CLUSTERS) if of_namespace else NAMESPACES}/{name}")
                self._api.delete(paths[-1], item["metadata"]["uid"])
        deadline = time.monotonic() + _GONE_SECONDS
        while staying := [path for path in paths if self._api.get(path)]:
            if time.monotonic() > deadline:
                raise BerthError(
                    f"{counted(len(staying), 'object')} not gone after {_GONE_SECONDS:.0f} s: {', '.join(staying)}",
                    "kubectl get namespace NAME --output yaml says what a namespace waits for",
                )
            time.sleep(_LOOK_SECONDS)
        err.print(f"removed {counted(len(left_over), 'berth')} that a killed update left", markup=False)

"""Session that the objects of one provider share: settings, cluster, and messages to the user.

Simulates nothing: settings, cluster and messages that the objects of one provider share.
"""

from __future__ import annotations

import threading

from berth.lab.plugins.kubernetes import objects, scopes
from berth.lab.plugins.kubernetes.apply import Item, Writer
from berth.lab.plugins.kubernetes.client import ApiError, Cluster, NoMatchError, UnreachableError
from berth.lab.plugins.kubernetes.objects import ObjectKind
from berth.lab.plugins.kubernetes.settings import Settings
from berth.lab.plugins.kubernetes.waiting import Waits
from berth.lab.plugins.provider import Engine, ProviderError


class Session:
    """One provider's cluster.

    Args:
        settings: the provider's settings.
        cluster: the cluster, or None while it is not known (previews).
        engine: for the lines shown to the user.
        cancelled: set when the user interrupts.
    """

    def __init__(self, settings: Settings, cluster: Cluster | None, engine: Engine, cancelled: threading.Event) -> None:
        self.settings = settings
        self.engine = engine
        self._maybe_cluster = cluster
        self._cancelled = cancelled

    def live(self, kind: ObjectKind, old_live: Item) -> Item | None:
        """The object as it is, or None where it is gone.

        Raises:
            ProviderError: its type is gone, or the server refuses.
        """
        try:
            return self.cluster().get(
                kind.api_version, kind.kind, objects.namespace_of(old_live), objects.name_of(old_live)
            )
        except NoMatchError as error:
            raise ProviderError(f"{error}. Verify that any required CRDs have been created") from error
        except ApiError as error:
            if error.not_found:
                return None
            raise ProviderError(str(error)) from error

    def knows(self, kind: ObjectKind) -> bool:
        """Whether the server can be asked about the kind; previews do without where it cannot."""
        if self._maybe_cluster is None:
            return False
        try:
            self._maybe_cluster.resource(kind.api_version, kind.kind)
        except (NoMatchError, UnreachableError):
            return False
        return True

    def is_namespaced(self, kind: ObjectKind) -> bool:
        """Whether objects of the kind live in namespaces."""
        if self._maybe_cluster is not None:
            try:
                return self._maybe_cluster.resource(kind.api_version, kind.kind).namespaced
            except (NoMatchError, UnreachableError):
                pass
        return scopes.is_namespaced(kind.kind)

    def is_forced(self, wanted: Item) -> bool:
        """Whether fields are taken from other managers."""
        asked = objects.annotation(wanted, objects.FORCE).lower() == "true"
        return asked or "enablePatchForce" in self.settings.switches

    def cluster(self) -> Cluster:
        """The cluster.

        Raises:
            UnreachableError: which one is not known yet.
        """
        if self._maybe_cluster is None:
            raise UnreachableError("the kubeconfig is not known yet")
        return self._maybe_cluster

    def writer(self) -> Writer:
        """Writes to the cluster."""
        return Writer(self.cluster(), self._cancelled, self.engine.status)

    def waits(self) -> Waits:
        """Waits on the cluster."""
        return Waits(self.cluster(), self._cancelled, self.engine.status)

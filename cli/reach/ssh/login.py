"""Open logins: the mark on a berth's RayCluster that holds up its suspension."""

import contextlib
import threading
from collections.abc import Iterator
from datetime import UTC, datetime

from berth.cli.reach.berths import Berth
from berth.cli.shell.console import err
from berth.components.cluster.api import JSON_PATCH, RAY_CLUSTERS, ClusterApi, ClusterError, within
from berth.components.programs.decision import stamp
from berth.components.programs.logins import LASTS, OPEN_UNTIL, RENEWED_EVERY

_MANAGER = "berth-login"
_POINTER = "/metadata/annotations/" + OPEN_UNTIL.replace("/", "~1")


@contextlib.contextmanager
def marked_as_used(berth: Berth) -> Iterator[None]:
    """Renew the mark of an open login until the login ends, then remove it."""
    over = threading.Event()
    mark = _Mark(berth)
    thread = threading.Thread(target=mark.renew, args=(over,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        mark.remove()


class _Mark:
    """Mark of one login."""

    def __init__(self, berth: Berth) -> None:
        self._api = ClusterApi(berth.environment.kubeconfig)
        self._name = berth.name
        self._path = f"{within(berth.namespace, RAY_CLUSTERS)}/{berth.key[1]}"
        self._written = ""

    def renew(self, over: threading.Event) -> None:
        """Write the mark again and again; report once why that fails."""
        reported = False
        while True:
            until = stamp(datetime.now(UTC) + LASTS)
            try:
                self._api.patch(self._path, {"metadata": {"annotations": {OPEN_UNTIL: until}}}, _MANAGER)
                self._written = until
            except ClusterError as error:
                if not reported:
                    err.print(f"note: the keeper of {self._name} does not see this login: {error}", markup=False)
                reported = True
            if over.wait(RENEWED_EVERY.total_seconds()):
                return

    def remove(self) -> None:
        """Remove the mark, unless another login has renewed it since."""
        if not self._written:
            return
        change = [
            {"op": "test", "path": _POINTER, "value": self._written},
            {"op": "remove", "path": _POINTER},
        ]
        with contextlib.suppress(ClusterError):
            self._api.request("PATCH", self._path, change, {"fieldManager": _MANAGER}, JSON_PATCH)

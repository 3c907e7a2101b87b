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
    """Renew the mark of an open login until the login ends, then remove it.

    Another login may have renewed the mark since, and keeps it.
    """
    api, path = ClusterApi(berth.environment.kubeconfig), f"{within(berth.namespace, RAY_CLUSTERS)}/{berth.key[1]}"
    over, written = threading.Event(), list[str]()

    def renew() -> None:
        reported = False
        while True:
            until = stamp(datetime.now(UTC) + LASTS)
            try:
                api.patch(path, {"metadata": {"annotations": {OPEN_UNTIL: until}}}, _MANAGER)
                written[:] = [until]
            except ClusterError as error:
                if not reported:
                    err.print(f"note: the keeper of {berth.name} does not see this login: {error}")
                reported = True
            if over.wait(RENEWED_EVERY.total_seconds()):
                return

    thread = threading.Thread(target=renew, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        for until in written:
            test, remove = {"op": "test", "path": _POINTER, "value": until}, {"op": "remove", "path": _POINTER}
            with contextlib.suppress(ClusterError):
                api.request("PATCH", path, [test, remove], {"fieldManager": _MANAGER}, JSON_PATCH)

"""Logins to a berth's containers, which count as use of the berth."""

import contextlib
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from berth.cli.reach.berths import LiveBerth
from berth.cli.reach.kubectl import kubectl
from berth.cli.reach.pods import container_of, running_pod
from berth.cli.shell.console import err
from berth.components.cluster.api import (
    JSON_PATCH,
    RAY_CLUSTERS,
    ClusterApi,
    ClusterError,
    in_namespace,
)
from berth.components.programs.decision import timestamp
from berth.components.programs.logins import LASTS, OPEN_UNTIL, RENEWED_EVERY

_MANAGER = "berth-login"
_POINTER = "/metadata/annotations/" + OPEN_UNTIL.replace("/", "~1")


def run_attached(
    berth: LiveBerth, worker: str | None, command: Sequence[str], *, terminal: bool = False
) -> int:
    """Run a command in a container on this process's streams; return its exit code."""
    pod = running_pod(berth, worker)
    arguments = ["exec", "--stdin"]
    if terminal:
        arguments.append("--tty")
    arguments += ["--namespace", berth.namespace, pod, "--container", container_of(worker)]
    with marked_as_used(berth), kubectl(berth.environment.kubeconfig) as program:
        return program.attached(*arguments, "--", *command)


@contextlib.contextmanager
def marked_as_used(berth: LiveBerth) -> Iterator[None]:
    """Renew the mark of an open login until the login ends, then remove it."""
    mark = _LoginMark(berth)
    thread = threading.Thread(target=mark.renew, daemon=True)
    thread.start()
    try:
        yield
    finally:
        mark.over.set()
        thread.join()
        mark.remove()


class _LoginMark:
    """Annotation of a RayCluster by which its keeper sees an open login.

    Attributes:
        over: whether the login has ended.
    """

    def __init__(self, berth: LiveBerth) -> None:
        self.over = threading.Event()
        self._berth = berth.name
        self._api = ClusterApi(berth.environment.kubeconfig)
        self._path = f"{in_namespace(berth.namespace, RAY_CLUSTERS)}/{berth.key[1]}"
        self._written = ""

    def renew(self) -> None:
        """Renew the mark until the login ends."""
        reported = False
        while True:
            until = timestamp(datetime.now(UTC) + LASTS)
            try:
                annotations = {OPEN_UNTIL: until}
                self._api.patch(self._path, {"metadata": {"annotations": annotations}}, _MANAGER)
                self._written = until
            except ClusterError as error:
                if not reported:
                    err.print(f"note: the keeper of {self._berth} does not see this login: {error}")
                reported = True
            if self.over.wait(RENEWED_EVERY.total_seconds()):
                return

    def remove(self) -> None:
        """Remove the mark, unless another login has renewed it since."""
        if not self._written:
            return
        patch = [
            {"op": "test", "path": _POINTER, "value": self._written},
            {"op": "remove", "path": _POINTER},
        ]
        with contextlib.suppress(ClusterError):
            self._api.request("PATCH", self._path, patch, {"fieldManager": _MANAGER}, JSON_PATCH)

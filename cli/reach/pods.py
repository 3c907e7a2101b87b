"""Pods of a berth, and commands in their containers."""

import contextlib
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from berth.cli.reach.berths import LiveBerth
from berth.cli.reach.head import ready_head
from berth.cli.reach.kubectl import kubectl
from berth.cli.shell.console import err
from berth.components.cluster.api import (
    JSON_PATCH,
    PODS,
    RAY_CLUSTERS,
    ClusterApi,
    ClusterError,
    Object,
    in_namespace,
)
from berth.components.cluster.pods import runs_here, why_not_ready
from berth.components.core.errors import BadInputError, BerthError
from berth.components.core.nearest import did_you_mean
from berth.components.core.words import counted
from berth.components.programs.decision import stamp
from berth.components.programs.logins import LASTS, OPEN_UNTIL, RENEWED_EVERY

HEAD_CONTAINER = "ray-head"
WORKER_CONTAINER = "ray-worker"

_MANAGER = "berth-login"
_POINTER = "/metadata/annotations/" + OPEN_UNTIL.replace("/", "~1")


def head_or_worker(berth: LiveBerth, worker: str | None) -> Object:
    """Return the head's pod, or a worker's: `2` of all by name, `gpu/2` of a group."""
    pods = berth.pods("worker" if worker else "head")
    if not pods and (note := berth.suspension_note()):
        raise BerthError(note)
    if worker is None:
        if not pods:
            raise BerthError(
                f"{berth.name} has no head pod yet; berth logs {berth.name} --operator may show why"
            )
        return pods[0]
    group, _, number = worker.rpartition("/")
    if group:
        require_group(
            berth.name,
            group,
            [found["groupName"] for found in berth.cluster["spec"]["workerGroupSpecs"]],
        )
        pods = [pod for pod in pods if pod["metadata"]["labels"].get("ray.io/group") == group]
    if int(number) > len(pods):
        where = f" in group {group}" if group else ""
        raise BadInputError(
            f"{berth.name} has {counted(len(pods), 'worker')}{where}; there is no worker {worker}",
            "name a worker that exists: they count from 1",
        )
    return pods[int(number) - 1]


def require_group(berth: str, group: str, known: Collection[str]) -> None:
    """Refuse a group of workers that a berth does not have."""
    if group not in known:
        raise BadInputError(
            f"{berth} has no group of workers {group!r}{did_you_mean(group, known)}",
            f"name one of its groups: {', '.join(known)}",
        )


def run_attached(
    berth: LiveBerth, worker: str | None, command: Sequence[str], *, terminal: bool = False
) -> int:
    """Run a command in a container on this process's streams, as use of the berth."""
    pod = running_pod(berth, worker)
    container = HEAD_CONTAINER if worker is None else WORKER_CONTAINER
    where = ["--namespace", berth.namespace, pod, "--container", container]
    with marked_as_used(berth), kubectl(berth.environment.kubeconfig) as program:
        return program.attached(
            "exec", "--stdin", *(["--tty"] if terminal else []), *where, "--", *command
        )


def pod_lines(berth: LiveBerth, worker: str | None, query: Mapping[str, str]) -> Iterator[str]:
    """Return the log of one of a berth's pods, by a query of the log request."""
    pod = head_or_worker(berth, worker)
    name = pod["metadata"]["name"]
    if berth.is_simulated(pod) and not runs_here(pod):
        raise BerthError(
            f"pod {name} is on a simulated node and has no log",
            "that of a head begins when its Ray starts, with the first job: berth submit NAME --"
            " COMMAND",
        )
    if reason := why_not_ready(pod):
        err.print(f"note: {name}: {reason}")
    container = HEAD_CONTAINER if worker is None else WORKER_CONTAINER
    return berth.api.lines(
        f"{in_namespace(berth.namespace, PODS)}/{name}/log", container=container, **query
    )


def running_pod(berth: LiveBerth, worker: str | None) -> str:
    """Return the name of a pod that runs."""
    if worker is None:
        return str(ready_head(berth)["metadata"]["name"])
    pod = head_or_worker(berth, worker)
    name = str(pod["metadata"]["name"])
    if berth.is_simulated(pod):
        problem = f"pod {name} is on a simulated node: no container runs in it"
        raise BerthError(problem, f"the head's Ray has its CPUs and GPUs: berth exec {berth.name}")
    if reason := why_not_ready(pod):
        problem = f"worker {worker} of {berth.name} is not ready: {reason}"
        raise BerthError(problem, f"berth status -s {berth.stack} --watch shows when it is")
    return name


@contextlib.contextmanager
def marked_as_used(berth: LiveBerth) -> Iterator[None]:
    """Renew the mark of an open login until the login ends, then remove it.

    Another login may have renewed the mark since, and keeps it.
    """
    api, path = (
        ClusterApi(berth.environment.kubeconfig),
        f"{in_namespace(berth.namespace, RAY_CLUSTERS)}/{berth.key[1]}",
    )
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
            test, remove = (
                {"op": "test", "path": _POINTER, "value": until},
                {"op": "remove", "path": _POINTER},
            )
            with contextlib.suppress(ClusterError):
                api.request("PATCH", path, [test, remove], {"fieldManager": _MANAGER}, JSON_PATCH)

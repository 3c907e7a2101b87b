"""Pods of a berth, chosen by their place in it."""

from collections.abc import Collection

from berth.cli.reach.berths import LiveBerth
from berth.cli.reach.head import ready_head
from berth.components.cluster.api import Object
from berth.components.cluster.pods import why_not_ready
from berth.components.core.errors import BadInputError, BerthError
from berth.components.core.nearest import did_you_mean
from berth.components.core.words import counted

HEAD_CONTAINER = "ray-head"
WORKER_CONTAINER = "ray-worker"


def head_or_worker(berth: LiveBerth, worker: str | None) -> Object:
    """Return the pod of the head, or of a worker.

    Args:
        berth: the berth.
        worker: number of a worker by name, of all (`2`) or of a group (`gpu/2`); None for the head.

    Raises:
        BadInputError: there is no such worker.
        BerthError: the berth is suspended, or has no head.
    """
    pods = berth.pods("worker" if worker else "head")
    if not pods and (note := berth.suspension_note()):
        raise BerthError(note)
    if worker is not None:
        return _worker(berth, worker, pods)
    if not pods:
        raise BerthError(
            f"{berth.name} has no head pod yet; berth logs {berth.name} --operator may show why"
        )
    return pods[0]


def _worker(berth: LiveBerth, worker: str, pods: list[Object]) -> Object:
    group, _, number = worker.rpartition("/")
    where = ""
    if group:
        groups = berth.cluster["spec"]["workerGroupSpecs"]
        require_group(berth.name, group, [spec["groupName"] for spec in groups])
        pods = [pod for pod in pods if pod["metadata"]["labels"].get("ray.io/group") == group]
        where = f" in group {group}"
    if int(number) > len(pods):
        raise BadInputError(
            f"{berth.name} has {counted(len(pods), 'worker')}{where}; there is no worker {worker}",
            "name a worker that exists: they count from 1",
        )
    return pods[int(number) - 1]


def require_group(berth: str, group: str, groups: Collection[str]) -> None:
    """Refuse a group of workers that a berth does not have.

    Raises:
        BadInputError: the group is not among the berth's groups.
    """
    if group not in groups:
        raise BadInputError(
            f"{berth} has no group of workers {group!r}{did_you_mean(group, groups)}",
            f"name one of its groups: {', '.join(groups)}",
        )


def container_of(worker: str | None) -> str:
    """Return the container in which Ray runs, of the head or of a worker."""
    return HEAD_CONTAINER if worker is None else WORKER_CONTAINER


def running_pod(berth: LiveBerth, worker: str | None) -> str:
    """Return the name of the head's pod or a worker's, in which commands can run.

    Raises:
        BadInputError: there is no such worker.
        BerthError: the pod is simulated or not ready, or the berth is suspended.
    """
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

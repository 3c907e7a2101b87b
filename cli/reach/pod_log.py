"""Log of a berth's pod."""

from collections.abc import Iterator, Mapping

from berth.cli.reach.berths import LiveBerth
from berth.cli.reach.pods import container_of, head_or_worker
from berth.cli.shell.console import err
from berth.components.cluster.api import PODS, in_namespace
from berth.components.cluster.pods import runs_here, why_not_ready
from berth.components.core.errors import BerthError


def pod_lines(berth: LiveBerth, worker: str | None, query: Mapping[str, str]) -> Iterator[str]:
    """Return the log of one of a berth's pods, by a query of the log request.

    Raises:
        BadInputError: there is no such worker.
        BerthError: the pod is simulated and has no log.
    """
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
    path = f"{in_namespace(berth.namespace, PODS)}/{name}/log"
    return berth.api.lines(path, container=container_of(worker), **query)

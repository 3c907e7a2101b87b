"""Log of the KubeRay operator, wherever it runs."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from berth.cli.reach.berths import LiveBerth
from berth.components.cluster.api import PODS, Object, in_namespace
from berth.components.core.errors import BerthError
from berth.components.core.owner import namespace_of

SELECTOR = "app.kubernetes.io/component=kuberay-operator"
"""Label of the operator's pods in the published chart, and in GKE's own installation of it."""


def readable_line(line: str) -> str:
    """Return a line of the operator as time, level, text and error; another line as it is."""
    try:
        entry = json.loads(line)
        parts = [entry[key] for key in ("ts", "level", "msg", "error") if key in entry]
    except (ValueError, TypeError):
        return line
    return "  ".join(map(str, parts)) or line


def lines_about(berth: LiveBerth, lines: Iterable[str]) -> Iterator[str]:
    """Return the lines that name a berth's namespace."""
    named = re.compile(
        rf'["/ =]{berth.namespace}["/ ,\\]'
    )  # as a word: `berth-bob` is not `berth-bobby`
    return filter(named.search, lines)


def operator_lines(berth: LiveBerth, query: Mapping[str, str]) -> Iterator[str]:
    """Return the operator's lines about a berth, by a query of the log request.

    Raises:
        BerthError: the operator's pod is not there, or has no log.
    """
    pod = _operator_pod(berth)
    if berth.is_simulated(pod):
        return lines_about(berth, _lines_of_the_lab())
    path = f"{in_namespace(pod['metadata']['namespace'], PODS)}/{pod['metadata']['name']}/log"
    return lines_about(berth, berth.api.lines(path, **query))


def _operator_pod(berth: LiveBerth) -> Object:
    """Return the newest pod of the operator."""
    labeled, _ = berth.api.list(PODS, labelSelector=SELECTOR)
    # The users of a berth may give any label to their pods.
    of_berths = namespace_of("")
    pods = [pod for pod in labeled if not pod["metadata"]["namespace"].startswith(of_berths)]
    if not pods:
        raise BerthError(
            f"no pod has the label {SELECTOR}: GKE may run the operator where you cannot read"
            " its log",
            "read it in Cloud Logging",
        )
    return max(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp")))


def _lines_of_the_lab() -> list[str]:
    """Return the log of the lab's operator, a real process on this machine."""
    lab = os.environ.get("BERTH_LAB", "")
    log = Path(lab) / "logs" / "kuberay-operator.log"
    if not lab or not log.is_file():
        raise BerthError(
            "the operator's pod is simulated and has no log; the lab's operator writes to .lab/logs"
        )
    return log.read_text(encoding="utf-8", errors="replace").splitlines()

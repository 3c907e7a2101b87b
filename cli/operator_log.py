"""What the KubeRay operator says, wherever it runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from berth.cli.berths import Berth
from berth.components.cluster.api import PODS, ClusterApi, within
from berth.components.core.errors import BerthError

SELECTOR = "app.kubernetes.io/component=kuberay-operator"
"""The label of the operator's pods in the published chart, and in GKE's own installation of it."""


def operator_lines(berth: Berth, query: Mapping[str, str]) -> Iterator[str]:
    """The operator's lines about a berth.

    Args:
        berth: the berth.
        query: how its log is asked for, such as `follow`. `tailLines` counts the lines about the berth, not all.

    Raises:
        BerthError: there is none, or it has no log.
        ClusterError: the API server can't be asked.
    """
    return about(berth, _lines(berth.api, berth.simulated_nodes, query))


def about(berth: Berth, lines: Iterable[str]) -> Iterator[str]:
    """The lines that name a berth's namespace."""
    for line in lines:
        # As a word: `berth-bob` is not meant by `berth-bobby`.
        if any(f"{before}{berth.namespace}{after}" in line for before in _BEFORE for after in _AFTER):
            yield line


_BEFORE, _AFTER = ('"', "/", " ", "="), ('"', "/", " ", ",", "\\")


def _lines(api: ClusterApi, simulated: frozenset[str], query: Mapping[str, str]) -> Iterator[str]:
    found, _ = api.list(PODS, labelSelector=SELECTOR)
    if not found:
        raise BerthError(f"no pod has the label {SELECTOR}: GKE may run the operator where its log is not seen")
    pod = max(found, key=lambda pod: str(pod["metadata"].get("creationTimestamp")))
    if pod["spec"].get("nodeName") in simulated:
        return iter(_of_the_lab())
    path = f"{within(pod['metadata']['namespace'], PODS)}/{pod['metadata']['name']}/log"
    return api.lines(path, **query)


def _of_the_lab() -> list[str]:
    """Where the lab's nodes are simulated, the operator itself is a real process on this machine.

    Raises:
        BerthError: this is not the machine of the lab, or its environment is not set.
    """
    root = os.environ.get("BERTH_LAB")
    path = Path(root or "") / "logs" / "kuberay-operator.log"
    if not root or not path.is_file():
        raise BerthError("the operator's pod is simulated and has no log; the lab's operator writes to .lab/logs")
    return path.read_text(encoding="utf-8", errors="replace").splitlines()

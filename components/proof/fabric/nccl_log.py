"""Transport of a collective, read from NCCL's own log. Pure.

The lines are those of NCCL 2.18 to 2.30 (https://github.com/NVIDIA/nccl: src/init.cc,
src/transport/net.cc, src/transport/p2p.cc, src/transport/shm.cc, src/plugin/net.cc,
src/plugin/plugin_open.cc, src/graph/topo.cc, src/enqueue.cc) and those of Google's plugin gIB in
the DraNet documentation (https://github.com/kubernetes-sigs/dranet,
site/content/docs/user/kuberay.md). A missing log, or one that breaks off, never counts as a good
one.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from berth.components.core import fast_yaml

GIB = "gIB"
"""Name of Google's plugin in NCCL's log."""

SOCKET = "Socket"
"""Name of NCCL's network over TCP."""

Way = Literal["fabric", "staged", "other plugin", "tcp", "none", "unknown"]
"""Way of data between pods: by gIB between NIC and GPU (`fabric`) or over memory (`staged`), by
another plugin, over TCP, not at all, or unknown."""

_PATTERNS = {
    name: re.compile(pattern if isinstance(pattern, str) else "|".join(pattern))
    for name, pattern in fast_yaml.load_beside(__file__).items()
}
_WITHIN: dict[str, str | tuple[str, ...]] = {"p2p": "P2P", "shm": ("SHM", "direct shared memory")}

# Before 2.23 NCCL logged numbers (src/include/nccl_common.h, NCCL_ALGO_* and NCCL_PROTO_*).
_ALGORITHMS = ("TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT")
_PROTOCOLS = ("LL", "LL128", "SIMPLE")


@dataclass(frozen=True)
class ProcessLog:
    """Parsed log of one process; a text is "" where the log does not have it."""

    version: str = ""
    """Version of NCCL, such as `2.28.3+cuda12.8`."""
    network: str = ""
    gib: str = ""
    nics: Mapping[int, str] = field(default_factory=dict)
    """Names of NICs by number."""
    between: tuple[tuple[str, int], ...] = ()
    """Connections to other pods: the network, `gIB/GDRDMA` where NIC and GPU exchange data without
    the node's memory (GPUDirect RDMA), and the number of the NIC."""
    within: tuple[str, ...] = ()
    """Kinds of connections within the pod."""
    choices: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    """Algorithm and protocol of all-reduces by their size in bytes."""
    no_plugin: tuple[str, ...] = ()
    """Lines about plugins that were not found."""
    tuner_problems: tuple[str, ...] = ()
    """Lines about failures of the tuner's configuration."""
    mismatches: tuple[str, ...] = ()
    """Lines about versions that do not match."""
    checker: tuple[str, ...] = ()
    """Lines of gIB's config checker about variables that it wants otherwise."""
    complete: bool = False
    """Whether set-up and connections were finished, so that no connection is missing."""


@dataclass(frozen=True)
class Transport:
    """Transport between the pods of a collective."""

    way: Way
    """The worst way of any connection."""
    networks: Mapping[str, int]
    """Connections between pods by network, `gIB/GDRDMA` for direct ones."""
    within: Mapping[str, int]
    """Connections within pods by kind."""
    nics: Mapping[str, tuple[str, ...]]
    """Names or numbers of the used NICs, by pod."""


def parse(log: str) -> ProcessLog:
    """Parse a process's log, written with NCCL_DEBUG=INFO for at least INIT, NET and ENV."""
    texts = [_PATTERNS["prefix"].sub("", line).strip() for line in log.splitlines()]
    hcas = [match for text in texts if (match := _PATTERNS["hca"].search(text))]
    vias = [match[1] for text in texts if (match := _PATTERNS["channel"].search(text))]
    return ProcessLog(
        version=_last("version", texts),
        network=_last("network", texts),
        gib=_last("gib_version", texts),
        nics={int(match[1]): match[2] for match in hcas},
        between=tuple(
            (f"{net[1]}/GDRDMA" if "GDRDMA" in net[3] else net[1], int(net[2]))
            for via in vias
            if (net := _PATTERNS["net"].match(via))
        ),
        within=tuple(
            kind for via in vias for kind, starts in _WITHIN.items() if via.startswith(starts)
        ),
        choices={
            int(match[1]): (_name(match[2], _ALGORITHMS), _name(match[3], _PROTOCOLS))
            for text in texts
            if (match := _PATTERNS["choice"].search(text))
        },
        no_plugin=_matching("no_plugin", texts),
        tuner_problems=tuple(
            text
            for text in _matching("tuner", _matching("failed", texts))
            if not _PATTERNS["no_tuner"].search(text)
        ),
        mismatches=_matching("mismatch", texts),
        checker=_matching("checker", texts),
        complete=all(_matching(name, texts) for name in ("complete", "connected")),
    )


def transport_of(logs: Mapping[str, Sequence[ProcessLog]]) -> Transport:
    """Return the transport between pods, from the logs of all processes by pod."""
    every = [log for found in logs.values() for log in found]
    networks = Counter(network for log in every for network, _ in log.between)
    # NCCL joins the ports of one NIC, or several NICs, under one number as `mlx5_0+mlx5_1`.
    nics = {
        pod: {
            nic
            for log in found
            for _, number in log.between
            for nic in log.nics.get(number, str(number)).split("+")
        }
        for pod, found in logs.items()
    }
    within = Counter(kind for log in every for kind in log.within)
    used = {pod: tuple(sorted(found)) for pod, found in nics.items()}
    return Transport(_way(every, networks, used), dict(networks), dict(within), used)


def _way(
    every: Sequence[ProcessLog], networks: Mapping[str, int], nics: Mapping[str, tuple[str, ...]]
) -> Way:
    complete = bool(every) and all(log.complete for log in every)
    if complete and len(nics) == 1 and not networks:
        return "none"  # NCCL chooses a network here, too
    if SOCKET in networks or any(log.network == SOCKET for log in every):
        return "tcp"
    if any(name.split("/")[0] != GIB for name in networks):
        return "other plugin"
    if GIB in networks:
        return "staged"
    return "fabric" if complete and all(nics.values()) else "unknown"


def _name(written: str, names: Sequence[str]) -> str:
    return (
        names[int(written)] if written.isdigit() and int(written) < len(names) else written.upper()
    )


def _last(name: str, texts: Sequence[str]) -> str:
    """Return a pattern's match in the last line that has one; "" without."""
    return next(
        (match[1] for text in reversed(texts) if (match := _PATTERNS[name].search(text))), ""
    )


def _matching(name: str, texts: Sequence[str]) -> tuple[str, ...]:
    """Return the lines that match a pattern, without repetitions."""
    return tuple(dict.fromkeys(text for text in texts if _PATTERNS[name].search(text)))

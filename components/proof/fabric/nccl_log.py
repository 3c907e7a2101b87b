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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal

GIB = "gIB"
"""Name of Google's plugin in NCCL's log."""

SOCKET = "Socket"
"""Name of NCCL's network over TCP."""

Way = Literal["fabric", "staged", "other plugin", "tcp", "none", "unknown"]
"""Way of data between pods: by gIB between NIC and GPU (`fabric`) or over memory (`staged`), by
another plugin, over TCP, not at all, or unknown."""

_PREFIX = re.compile(r"^.*?NCCL (?:INFO|WARN) ")
_VERSION = re.compile(r"^NCCL version (\S+)")
_NETWORK = re.compile(r"Using network (.+?)\s*$")
_GIB_VERSION = re.compile(r"Initializing gIB (v\S+)")
_CHANNEL = re.compile(
    r"Channel \d+(?:/\d+)? : \d+\[[^\]]*\] -> \d+\[[^\]]*\] (?:\[(?:send|receive)\] )?via (.+?)\s*$"
)
_NET = re.compile(r"NET/([^/]+)/(\d+)(?:\(\d+\))?(.*)")
_HCA = re.compile(r"GPU Direct RDMA (?:Enabled|Disabled) for HCA (\d+) '([^']*)'")
_CHOICE = re.compile(r"AllReduce: (\d+) Bytes -> Algo (\S+) proto (\S+)")
_NO_PLUGIN = re.compile(
    r"NET/Plugin ?: (?:Could not find:|No plugin found|.*cannot open shared object file)"
    r"|Failed to initialize (?:NET plugin|any NET plugin)|network \S+ not found"
)
_TUNER = re.compile(r"tuner", re.IGNORECASE)
_FAILURE = re.compile(r"\b(?:no|not|fail\w*|error|invalid|unable|cannot)\b", re.IGNORECASE)
# Every log of an image without a tuner of its own has it; it is not a failure.
_NO_TUNER = re.compile(
    r"TUNER/Plugin ?: (?:Could not find|Plugin name set|Failed to find)"
    r"|tuner plugin .* is unsupported|NCCL_TUNER_\w+ set by"
)
_MISMATCH = re.compile(
    r"Mismatched NCCL version|compiled with (?:too old version of NCCL|NCCL version)"
)
# "Guest Config Checker enforced or recommended a setting" and the section before
# (https://docs.cloud.google.com/ai-hypercomputer/docs/nccl/collect-logs).
_CHECKER = re.compile(
    r"mismatch (?:enforced|recommended)|GUEST_CONFIG_CHECKER_CONFIG_FILE", re.IGNORECASE
)
_INITIALIZED = re.compile(r"Init COMPLETE")
# A process that is alone connects to nobody.
_CONNECTED = re.compile(
    r"Connected all (?:rings|trees)|Connected NVLS|Connected binomial trees"
    r"|nranks 1 .*Init COMPLETE"
)

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


def parse_log(log: str) -> ProcessLog:
    """Parse a process's log, written with NCCL_DEBUG=INFO for at least INIT, NET and ENV."""
    lines = [_PREFIX.sub("", line).strip() for line in log.splitlines()]
    connections = [match[1] for match in map(_CHANNEL.search, lines) if match]
    return ProcessLog(
        version=_last(_VERSION, lines),
        network=_last(_NETWORK, lines),
        gib=_last(_GIB_VERSION, lines),
        nics={int(match[1]): match[2] for match in map(_HCA.search, lines) if match},
        between=tuple(_between_pods(connections)),
        within=tuple(_within_pods(connections)),
        choices=_choices(lines),
        no_plugin=_matching(_NO_PLUGIN, lines),
        tuner_problems=_tuner_problems(lines),
        mismatches=_matching(_MISMATCH, lines),
        checker=_matching(_CHECKER, lines),
        complete=bool(_matching(_INITIALIZED, lines) and _matching(_CONNECTED, lines)),
    )


def _between_pods(connections: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield network and number of the NIC of each connection to another pod."""
    for connection in connections:
        match = _NET.match(connection)
        if match:
            is_direct = "GDRDMA" in match[3]
            yield f"{match[1]}/GDRDMA" if is_direct else match[1], int(match[2])


def _within_pods(connections: Iterable[str]) -> Iterator[str]:
    for connection in connections:
        if connection.startswith("P2P"):
            yield "p2p"
        elif connection.startswith(("SHM", "direct shared memory")):
            yield "shm"


def _choices(lines: Iterable[str]) -> dict[int, tuple[str, str]]:
    """Return algorithm and protocol of all-reduces by their size in bytes."""
    choices: dict[int, tuple[str, str]] = {}
    for line in lines:
        match = _CHOICE.search(line)
        if match:
            names = _name(match[2], _ALGORITHMS), _name(match[3], _PROTOCOLS)
            choices[int(match[1])] = names
    return choices


def _tuner_problems(lines: Sequence[str]) -> tuple[str, ...]:
    failures = _matching(_TUNER, _matching(_FAILURE, lines))
    return tuple(line for line in failures if not _NO_TUNER.search(line))


def transport_of(logs: Mapping[str, Sequence[ProcessLog]]) -> Transport:
    """Return the transport between pods, from the logs of all processes by pod."""
    every = list(chain.from_iterable(logs.values()))
    networks: Counter[str] = Counter()
    within: Counter[str] = Counter()
    for log in every:
        networks.update(network for network, _ in log.between)
        within.update(log.within)
    nics = {pod: _used_nics(of_pod) for pod, of_pod in logs.items()}
    return Transport(_way(every, networks, nics), dict(networks), dict(within), nics)


def _used_nics(logs: Iterable[ProcessLog]) -> tuple[str, ...]:
    """Return the NICs that processes used: their names, or the numbers of those without a name."""
    used: set[str] = set()
    for log in logs:
        for _, number in log.between:
            # NCCL joins the ports of one NIC, or several NICs, under one number as
            # `mlx5_0+mlx5_1`.
            used.update(log.nics.get(number, str(number)).split("+"))
    return tuple(sorted(used))


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
    """Return the name of an algorithm or protocol, which older versions write as a number."""
    if written.isdigit() and int(written) < len(names):
        return names[int(written)]
    return written.upper()


def _last(pattern: re.Pattern[str], lines: Sequence[str]) -> str:
    """Return a pattern's match in the last line that has one; "" without."""
    for line in reversed(lines):
        match = pattern.search(line)
        if match:
            return match[1]
    return ""


def _matching(pattern: re.Pattern[str], lines: Sequence[str]) -> tuple[str, ...]:
    """Return the lines that match a pattern, without repetitions."""
    return tuple(dict.fromkeys(filter(pattern.search, lines)))

"""Ports of a berth's head on this machine, by `kubectl port-forward`."""

import contextlib
import re
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import IO, NoReturn

from berth.cli.reach.berths import LiveBerth
from berth.cli.reach.kubectl import Kubectl
from berth.cli.shell.console import err
from berth.components.cluster.api import RAY_CLUSTERS, ClusterError, Object, in_namespace
from berth.components.cluster.pods import why_not_ready
from berth.components.core.errors import BadInputError, BerthError

DASHBOARD = 8265
"""Port of Ray's dashboard (https://docs.ray.io/en/latest/ray-core/configure.html)."""
CLIENT = 10001
"""Port of Ray's client, from the same page."""

LOOPBACK = "127.0.0.1"
_LOOK_SECONDS = 2.0
_RETRY_SECONDS = 1.0
_FORWARDED = re.compile(r"^Forwarding from 127\.0\.0\.1:(\d+) -> (\d+)$")


def local_port(requested: int | None, usual: int) -> int:
    """Return a free port of this machine's loopback.

    Args:
        requested: port that the user asks for; None for the usual one, or else any.
        usual: port to take if none is asked for.

    Raises:
        BadInputError: the requested port is taken, or no port is free.
    """
    if requested is not None:
        try:
            return _bound_port(requested)
        except OSError as error:
            raise BadInputError(
                f"port {requested} of this machine cannot be used: {error.strerror}",
                "name another port, or none: berth takes a free one",
            ) from None
    for port in (usual, 0):
        with contextlib.suppress(OSError):
            return _bound_port(port)
    raise BadInputError("this machine has no free port", "end programs that hold ports")


def _bound_port(port: int) -> int:
    """Return a port that can be bound, for 0 any free one."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((LOOPBACK, port))
        return int(probe.getsockname()[1])


def keep_forwarding(
    berth: LiveBerth,
    head: Object,
    program: Kubectl,
    ports: Callable[[Object], Mapping[int, int]],
    connected: Callable[[Object], None],
) -> NoReturn:
    """Forward ports of the head, and of its successors, until an interrupt.

    `ports` returns the ports of this machine, by those of a head, before each connection;
    `connected` is called after it.
    """
    while True:
        began = time.monotonic()
        with forwarding(program, berth.namespace, head, ports(head)) as process:
            if process is None:
                err.print("trying again")
            else:
                connected(head)
                _watch(berth, head, process)
        # A connection that breaks at once is not tried again without a pause.
        time.sleep(max(0.0, _RETRY_SECONDS - (time.monotonic() - began)))
        head = _next_head(berth)


@contextlib.contextmanager
def forwarding(
    program: Kubectl, namespace: str, head: Object, ports: Mapping[int, int]
) -> Iterator[subprocess.Popen[str] | None]:
    """Yield kubectl, forwarding ports of a head; None if it failed, after it has said why."""
    arguments = [f"{local}:{remote}" for remote, local in ports.items()]
    where = ["--namespace", namespace, "--address", LOOPBACK, f"pod/{head['metadata']['name']}"]
    with program.started("port-forward", *where, *arguments) as process:
        read_in_thread(process.stderr, lambda line: err.print(line.rstrip(), style="dim"))
        missing = set(ports)
        for line in process.stdout or ():
            if forwarded := _FORWARDED.match(line.strip()):
                missing.discard(int(forwarded[2]))
            if not missing:
                break
        # kubectl prints a line for each connection: a full pipe would stop it.
        read_in_thread(process.stdout, lambda _line: None)
        yield None if missing else process


def read_in_thread(stream: IO[str] | None, handle: Callable[[str], None]) -> None:
    """Read a stream to its end in a thread."""

    def until_the_end() -> None:
        with contextlib.suppress(ValueError):
            for line in stream or ():
                handle(line)

    threading.Thread(target=until_the_end, daemon=True).start()


def _watch(berth: LiveBerth, head: Object, process: subprocess.Popen[str]) -> None:
    """Wait until the connection or the head is lost, which kubectl itself may notice much later."""
    while True:
        try:
            process.wait(_LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            try:
                heads = {pod["metadata"]["uid"] for pod in berth.pods("head")}
            except ClusterError:
                continue
            if head["metadata"]["uid"] in heads:
                continue
        err.print(f"lost the head of {berth.name}; waiting for the next one")
        return


def _next_head(berth: LiveBerth) -> Object:
    """Wait for a ready head, and print why there is none whenever that changes."""
    reported = ""
    namespace, name = berth.key
    while True:
        try:
            clusters, _ = berth.api.list(
                in_namespace(namespace, RAY_CLUSTERS), fieldSelector=f"metadata.name={name}"
            )
            heads = berth.pods("head")
        except ClusterError as error:
            why = str(error)
        else:
            if not clusters:
                raise BerthError(
                    f"{berth.name} is gone", f"berth status -s {berth.stack} shows what is there"
                )
            if note := berth.suspension_note(clusters[0]):
                raise BerthError(note)
            why = (why_not_ready(heads[0], "head") or "") if heads else "there is no head pod yet"
            if not why:
                return heads[0]
        if why != reported:
            err.print(f"{berth.name}: {why}")
            reported = why
        time.sleep(_RETRY_SECONDS)

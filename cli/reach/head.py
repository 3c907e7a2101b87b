"""Head of a berth: its pod, its ports on this machine, Ray's token."""

import base64
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
from berth.components.cluster.api import RAY_CLUSTERS, SECRETS, ClusterError, Object, in_namespace
from berth.components.cluster.pods import runs_here, why_not_ready
from berth.components.core.errors import BadInputError, BerthError
from berth.components.ray.live import LiveObjects, condition_of, reasons_of

DASHBOARD, CLIENT = 8265, 10001
"""Ray's own ports of a head (https://docs.ray.io/en/latest/ray-core/configure.html)."""

TOKEN_KEY = "auth_token"  # noqa: S105 - KubeRay's name of the key (ray-operator/controllers/ray/utils/constant.go)

LOOPBACK = "127.0.0.1"
_LOOK_SECONDS = 2.0
_RETRY_SECONDS = 1.0
_FORWARDED = re.compile(r"^Forwarding from 127\.0\.0\.1:(\d+) -> (\d+)$")


def ready_head(berth: LiveBerth) -> Object:
    """Return the ready head pod of a berth."""
    condition = condition_of(berth.cluster)
    if note := berth.suspension_note():
        raise BerthError(note)
    heads = berth.pods("head")
    if not heads or why_not_ready(heads[0], "head"):
        reasons = reasons_of(LiveObjects(berth.api, berth.key[0]), berth.key) or [str(condition)]
        raise BerthError(
            f"{berth.name} has no head that is ready: {'; '.join(reasons)}",
            f"berth status -s {berth.stack} shows what the head waits for",
        )
    if berth.is_simulated(heads[0]) and not runs_here(heads[0]):
        err.print(
            f"{berth.name} is in the lab: its Ray starts on this machine, with the berth's CPUs;"
            " GPUs are simulated"
        )
    if not condition.ready:
        err.print(f"note: {berth.name} has its head, but not all workers: {condition}")
    return heads[0]


def local_port(requested: int | None, usual: int) -> int:
    """Return a free port of this machine's loopback; fail if the requested one is taken."""
    for port in (requested or usual, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, port))
            except OSError as error:
                if requested is not None:
                    raise BadInputError(
                        f"port {requested} of this machine cannot be used: {error.strerror}",
                        "name another port, or none: berth takes a free one",
                    ) from None
                continue
            return int(probe.getsockname()[1])
    raise BadInputError("this machine has no free port", "end programs that hold ports")


def token_secret(cluster: Object) -> str | None:
    """Return the name of the Secret with a RayCluster's token; None for a cluster without one."""
    options = cluster["spec"].get("authOptions") or {}
    if options.get("mode") != "token":
        return None
    return str(options.get("secretName") or cluster["metadata"]["name"])


def read_token(berth: LiveBerth) -> str | None:
    """Return Ray's token of a berth; None for a berth without one."""
    name = token_secret(berth.cluster)
    if name is None:
        return None
    secret = berth.api.get(f"{in_namespace(berth.namespace, SECRETS)}/{name}")
    if secret is None or TOKEN_KEY not in (secret.get("data") or {}):
        raise BerthError(
            f"the operator has not made the token of {berth.name} yet (Secret"
            f" {berth.namespace}/{name})",
            f"try again; berth logs {berth.name} --operator shows why",
        )
    return base64.b64decode(secret["data"][TOKEN_KEY]).decode()


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

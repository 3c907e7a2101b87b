"""`berth connect`: a berth's dashboard and client on this machine, until Ctrl-C."""

import contextlib
from collections.abc import Mapping
from pathlib import Path

from berth.cli.reach.berths import LiveBerth, live_berth
from berth.cli.reach.head import ready_head
from berth.cli.reach.kubectl import Kubectl, private_folder, write_private
from berth.cli.reach.port_forwarding import CLIENT, DASHBOARD, LOOPBACK, keep_forwarding, local_port
from berth.cli.reach.ray_token import read_token
from berth.cli.shell.console import err, out, print_json
from berth.cli.verbs.connect.commands import submit_command
from berth.components.cluster.api import Object


class BerthConnection:
    """Connection of ports of this machine to a berth's head, and to the heads after it.

    Args:
        berth: the berth.
        ports: ports of this machine, by those of a head.
        token: file with Ray's token; None for a berth without one.
        as_json: whether addresses are printed as JSON.
    """

    def __init__(
        self, berth: LiveBerth, ports: Mapping[int, int], token: Path | None, *, as_json: bool
    ) -> None:
        self._berth = berth
        self._ports = ports
        self._token = token
        self._as_json = as_json
        self._connected_before = False

    def keep_forwarding(self, head: Object, program: Kubectl) -> None:
        """Forward the ports until an interrupt."""
        keep_forwarding(self._berth, head, program, lambda _head: self._ports, self._connected)

    def _connected(self, head: Object) -> None:
        """Print the addresses once, and later heads by their names."""
        if self._connected_before:
            err.print(f"connected again, to {head['metadata']['name']}")
        else:
            self._connected_before = True
            self._print_addresses()

    def _print_addresses(self) -> None:
        dashboard = f"http://{LOOPBACK}:{self._ports[DASHBOARD]}"
        client = f"ray://{LOOPBACK}:{self._ports[CLIENT]}"
        submit = submit_command(self._ports[DASHBOARD], self._token)
        if self._as_json:
            print_json(
                {
                    "name": self._berth.name,
                    "namespace": self._berth.namespace,
                    "dashboard": dashboard,
                    "client": client,
                    "tokenFile": str(self._token) if self._token else None,
                    "submit": submit,
                }
            )
            return
        lines = [f"dashboard  {dashboard}", f"client     {client}"]
        if self._token:
            lines.append(f"token      in {self._token}, until this ends; the dashboard asks for it")
        out.print("\n".join([*lines, "", "In another terminal:", "", f"  {submit}", ""]))
        err.print(f"connected to {self._berth.name}; Ctrl-C ends it")


def connect_berth(
    name: str | None, stack: str | None, dashboard: int | None, client: int | None, *, as_json: bool
) -> int:
    """Forward ports until Ctrl-C; return the exit code.

    Args:
        name: name of the berth; by default that of the stack.
        stack: stack of the berth; by default found by its name.
        dashboard: port of this machine for the dashboard; by default its own, or a free one.
        client: port of this machine for Ray Client; by default its own, or a free one.
        as_json: whether addresses are printed as JSON.

    Raises:
        BerthError: the berth is not ready, is suspended, or cannot be asked.
    """
    berth = live_berth(name, stack)
    head = ready_head(berth)
    ports = {DASHBOARD: local_port(dashboard, DASHBOARD), CLIENT: local_port(client, CLIENT)}
    with private_folder() as folder:
        file = None
        token = read_token(berth)
        if token is not None:
            file = folder / "token"
            write_private(file, token)
        program = Kubectl(berth.environment.kubeconfig, folder)
        connection = BerthConnection(berth, ports, file, as_json=as_json)
        with contextlib.suppress(KeyboardInterrupt):
            connection.keep_forwarding(head, program)
    err.print(f"disconnected from {berth.name}")
    return 0

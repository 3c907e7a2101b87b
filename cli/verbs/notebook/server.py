"""`berth notebook`: Jupyter in a berth's head, at a port of this machine until Ctrl-C."""

import contextlib
from collections.abc import Mapping

from berth.cli.reach.berths import LiveBerth, live_berth
from berth.cli.reach.head import ready_head
from berth.cli.reach.kubectl import kubectl
from berth.cli.reach.logins import marked_as_used
from berth.cli.reach.port_forwarding import keep_forwarding, local_port
from berth.cli.shell.console import err, out, print_json, print_result
from berth.cli.verbs.notebook.jupyter import HeadJupyter, JupyterServer
from berth.components.cluster.api import Object
from berth.components.core.errors import BerthError

PORT = 8888
"""Jupyter's own port (https://jupyter-server.readthedocs.io/en/latest/other/full-config.html)."""


class NotebookConnection:
    """Connection of a port of this machine to Jupyter in a head, and in the heads after it.

    Args:
        jupyter: Jupyter in the head of the berth.
        pod: the head.
        local: port of this machine.
        as_json: whether addresses are printed as JSON.
    """

    def __init__(self, jupyter: HeadJupyter, pod: Object, local: int, *, as_json: bool) -> None:
        self._jupyter = jupyter
        self._pod = pod
        self._local = local
        self._as_json = as_json
        self._server = jupyter.start(pod)
        self._reported: JupyterServer | None = None

    def ports(self, pod: Object) -> Mapping[int, int]:
        """Return this machine's port by the head's, where a new head starts a new server.

        Raises:
            BerthError: somebody stopped the server.
        """
        name = self._jupyter.berth.name
        if pod["metadata"]["uid"] != self._pod["metadata"]["uid"]:
            err.print(f"{name} has a new head: the kernels of the last one are gone")
            self._pod = pod
            self._server = self._jupyter.start(pod)
        elif self._reported and not self._jupyter.is_running(pod):
            raise BerthError(
                f"the notebook of {name} was stopped", f"start it again: berth notebook {name}"
            )
        return {self._server.port: self._local}

    def connected(self, _pod: Object) -> None:
        """Print the address of a new server."""
        server = self._server
        if server == self._reported:
            err.print("connected again")
            return
        self._reported = server
        berth = self._jupyter.berth
        url = f"http://127.0.0.1:{self._local}{server.page}?token={server.token}"
        if self._as_json:
            _print_address(berth, server, url)
            return
        out.print(f"notebook   {url}\nfolder     {server.folder}", soft_wrap=True)
        err.print(
            f"connected to {berth.name}; Ctrl-C ends the connection, and the notebooks run on"
        )


def _print_address(berth: LiveBerth, server: JupyterServer, url: str) -> None:
    print_json(
        {
            "name": berth.name,
            "namespace": berth.namespace,
            "folder": server.folder,
            "url": url,
            "token": server.token,
        }
    )


def open_notebook(
    name: str | None, stack: str | None, port: int | None, python: str, *, as_json: bool
) -> int:
    """Open the notebook until Ctrl-C; return the exit code.

    Raises:
        BerthError: the berth is not ready, or has no Jupyter.
    """
    berth = live_berth(name, stack)
    pod = ready_head(berth)
    local = local_port(port, PORT)
    with marked_as_used(berth), kubectl(berth.environment.kubeconfig) as program:
        jupyter = HeadJupyter(berth, program, python)
        connection = NotebookConnection(jupyter, pod, local, as_json=as_json)
        with contextlib.suppress(KeyboardInterrupt):
            keep_forwarding(berth, pod, program, connection.ports, connection.connected)
    err.print(
        f"disconnected from {berth.name}; its notebooks run on: berth notebook {berth.name} opens"
        f" them again, berth notebook {berth.name} --stop ends them"
    )
    return 0


def stop_notebook(name: str | None, stack: str | None, python: str, *, as_json: bool) -> int:
    """Stop Jupyter and its kernels; return the exit code."""
    berth = live_berth(name, stack)
    with kubectl(berth.environment.kubeconfig) as program:
        stopped = HeadJupyter(berth, program, python).stop(ready_head(berth))
    text = f"stopped the notebook of {berth.name}" if stopped else f"{berth.name} has no notebook"
    document = {"name": berth.name, "namespace": berth.namespace, "stopped": stopped}
    return print_result(document, text, as_json=as_json, to=err)

"""`berth notebook`: Jupyter in a berth's head, at a port of this machine until Ctrl-C."""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from berth.cli.reach.berths import LiveBerth, live_berth
from berth.cli.reach.head import ready_head
from berth.cli.reach.kubectl import Kubectl, kubectl
from berth.cli.reach.logins import marked_as_used
from berth.cli.reach.pods import HEAD_CONTAINER
from berth.cli.reach.port_forwarding import keep_forwarding, local_port
from berth.cli.shell.console import err, out, print_json, print_result
from berth.components.cluster.api import Object
from berth.components.core.errors import BerthError
from berth.components.core.printable import load_json
from berth.components.programs import notebook as program_of_the_head
from berth.components.programs.notebook import FIND, SECONDS, START, STOP
from berth.components.ray.storage.home import HOME_FOLDER

PORT = 8888
"""Jupyter's own port (https://jupyter-server.readthedocs.io/en/latest/other/full-config.html)."""

_MARGIN_SECONDS = 30


class Head:
    """Head of a berth, in which commands run Jupyter, at a port of this machine."""

    _server: Mapping[str, Any]
    """Port of the head's loopback, token, page and folder of the running Jupyter."""
    _reported: Mapping[str, Any] | None = None

    def __init__(
        self,
        berth: LiveBerth,
        pod: Object,
        program: Kubectl,
        python: str,
        local: int = 0,
        *,
        as_json: bool = False,
    ) -> None:
        self._berth, self._pod, self._program, self._python = berth, pod, program, python
        self._local, self._as_json = local, as_json

    def ports(self, pod: Object) -> Mapping[int, int]:
        """Return this machine's port by the head's, where a new head starts a new server."""
        name = self._berth.name
        if pod["metadata"]["uid"] != self._pod["metadata"]["uid"]:
            err.print(f"{name} has a new head: the kernels of the last one are gone")
            self._pod = pod
            self.start()
        elif self._reported and not self.ask(FIND):
            raise BerthError(
                f"the notebook of {name} was stopped", f"start it again: berth notebook {name}"
            )
        return {self._server["port"]: self._local}

    def connected(self, _pod: Object) -> None:
        """Print the address of a new server."""
        berth, server = self._berth, self._server
        if server == self._reported:
            err.print("connected again")
            return
        self._reported = server
        url = f"http://127.0.0.1:{self._local}{server['page']}?token={server['token']}"
        if self._as_json:
            where = {"name": berth.name, "namespace": berth.namespace, "folder": server["folder"]}
            print_json({**where, "url": url, "token": server["token"]})
            return
        out.print(f"notebook   {url}\nfolder     {server['folder']}", soft_wrap=True)
        err.print(
            f"connected to {berth.name}; Ctrl-C ends the connection, and the notebooks run on"
        )

    def start(self) -> None:
        """Find the running server, or start one."""
        found = self.ask(START)
        try:
            self._server = {key: found[key] for key in ("token", "page", "folder")} | {
                "port": int(found["port"])
            }
        except (KeyError, TypeError, ValueError):
            raise self._nonsense(", ".join(map(str, found))) from None

    def ask(self, verb: str) -> Mapping[str, Any]:
        """Return what the program in the head answers to START, FIND or STOP."""
        text = Path(program_of_the_head.__file__).read_text(encoding="utf-8")
        pod, name = str(self._pod["metadata"]["name"]), self._berth.name
        answer = self._program.execute(
            self._berth.namespace,
            pod,
            HEAD_CONTAINER,
            [self._python, "-c", text, verb, HOME_FOLDER],
            SECONDS + _MARGIN_SECONDS,
        )
        try:
            found = load_json(answer)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise self._nonsense(answer)
        if python := found.get("missing"):
            raise BerthError(
                f"the head of {name} has no Jupyter for {python}, so that no notebook can start",
                f"install it until the head restarts: berth exec {name} -- {self._python} -m pip"
                " install jupyterlab (docs/engineer.md#a-notebook: how to keep it)",
            )
        if problem := found.get("failed"):
            raise BerthError(
                f"the notebook of {name} failed: {problem}",
                f"berth exec {name} -- sh -c 'cat /tmp/berth-notebook-*/log' prints Jupyter's log",
            )
        return found

    def _nonsense(self, answer: str) -> BerthError:
        problem = (
            f"{self._python} in the head of {self._berth.name} is not Python: it answers"
            f" {answer[:80]!r}"
        )
        return BerthError(problem, "name a Python of the head: --python PATH")


def notebook(
    name: str | None, stack: str | None, port: int | None, python: str, *, as_json: bool
) -> int:
    """Open the notebook until Ctrl-C; return the exit code."""
    berth = live_berth(name, stack)
    pod = ready_head(berth)
    local = local_port(port, PORT)
    with marked_as_used(berth), kubectl(berth.environment.kubeconfig) as program:
        head = Head(berth, pod, program, python, local, as_json=as_json)
        head.start()
        with contextlib.suppress(KeyboardInterrupt):
            keep_forwarding(berth, pod, program, head.ports, head.connected)
    err.print(
        f"disconnected from {berth.name}; its notebooks run on: berth notebook {berth.name} opens"
        f" them again, berth notebook {berth.name} --stop ends them"
    )
    return 0


def stop(name: str | None, stack: str | None, python: str, *, as_json: bool) -> int:
    """Stop Jupyter and its kernels; return the exit code."""
    berth = live_berth(name, stack)
    with kubectl(berth.environment.kubeconfig) as program:
        stopped = bool(Head(berth, ready_head(berth), program, python).ask(STOP).get("stopped"))
    text = f"stopped the notebook of {berth.name}" if stopped else f"{berth.name} has no notebook"
    document = {"name": berth.name, "namespace": berth.namespace, "stopped": stopped}
    return print_result(document, text, as_json=as_json, to=err)

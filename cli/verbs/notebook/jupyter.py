"""Jupyter in a berth's head: asked for, started and stopped by a program in the head."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from berth.cli.reach.berths import LiveBerth
from berth.cli.reach.kubectl import Kubectl
from berth.cli.reach.pods import HEAD_CONTAINER
from berth.components.cluster.api import Object
from berth.components.core.errors import BerthError
from berth.components.core.printable import load_json
from berth.components.programs import notebook as program_of_the_head
from berth.components.programs.notebook import FIND, SECONDS, START, STOP
from berth.components.ray import HOME_FOLDER

_MARGIN_SECONDS = 30
_SHOWN_CHARACTERS = 80


@dataclass(frozen=True)
class JupyterServer:
    """Jupyter that runs in a head.

    Attributes:
        port: port of the head's loopback.
        token: token that Jupyter asks for.
        page: path of the page to open.
        folder: folder of the notebooks.
    """

    port: int
    token: str
    page: str
    folder: str


@dataclass(frozen=True)
class HeadJupyter:
    """Jupyter in the head of a berth.

    Attributes:
        berth: the berth.
        program: kubectl, which runs commands in the head.
        python: Python of the head that has Jupyter.
    """

    berth: LiveBerth
    program: Kubectl
    python: str

    def start(self, pod: Object) -> JupyterServer:
        """Return the server that runs in a head, or start one.

        Raises:
            BerthError: there is no Jupyter, or it does not start.
        """
        answer = self._ask(pod, START)
        try:
            return JupyterServer(
                int(answer["port"]),
                str(answer["token"]),
                str(answer["page"]),
                str(answer["folder"]),
            )
        except (KeyError, TypeError, ValueError):
            raise self._no_python(", ".join(map(str, answer))) from None

    def is_running(self, pod: Object) -> bool:
        """Return whether a server runs in a head."""
        return bool(self._ask(pod, FIND))

    def stop(self, pod: Object) -> bool:
        """Stop the server of a head and its kernels; return whether there was one."""
        return bool(self._ask(pod, STOP).get("stopped"))

    def _ask(self, pod: Object, verb: str) -> dict[str, Any]:
        """Return what the program in the head answers to START, FIND or STOP."""
        name = self.berth.name
        text = Path(program_of_the_head.__file__).read_text(encoding="utf-8")
        output = self.program.execute(
            self.berth.namespace,
            str(pod["metadata"]["name"]),
            HEAD_CONTAINER,
            [self.python, "-c", text, verb, HOME_FOLDER],
            SECONDS + _MARGIN_SECONDS,
        )
        try:
            answer = load_json(output)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise self._no_python(output)
        if answer.get("missing"):
            raise BerthError(
                f"the head of {name} has no Jupyter for {answer['missing']}, so that no notebook"
                " can start",
                f"install it until the head restarts: berth exec {name} -- {self.python} -m pip"
                " install jupyterlab (how to keep it: berth docs engineer#a-notebook)",
            )
        if answer.get("failed"):
            raise BerthError(
                f"the notebook of {name} failed: {answer['failed']}",
                f"berth exec {name} -- sh -c 'cat /tmp/berth-notebook-*/log' prints Jupyter's log",
            )
        return answer

    def _no_python(self, answer: str) -> BerthError:
        return BerthError(
            f"{self.python} in the head of {self.berth.name} is not Python: it answers"
            f" {answer[:_SHOWN_CHARACTERS]!r}",
            "name a Python of the head: --python PATH",
        )

"""`berth notebook`."""

from typing import Annotated

import typer

from berth.cli.reach.arguments import Json, Name, OnStack, port_option
from berth.components.core.errors import BadInputError


def run(
    name: Name = None,
    stack: OnStack = None,
    port: Annotated[int | None, port_option("Port of this machine.", 8888)] = None,
    python: Annotated[
        str,
        typer.Option(
            help="Python of the head that has Jupyter, such as one in the home.", metavar="PATH"
        ),
    ] = "python",
    *,
    stop: Annotated[bool, typer.Option("--stop", help="Stop Jupyter and all its kernels.")] = False,
    as_json: Json = False,
) -> int:
    """Open Jupyter in a berth's head from this machine, until Ctrl-C.

    Starts Jupyter in the head, or finds the one that runs, and prints its address with its token.
    The connection goes through the API server: there is no Service and no open port. The notebooks'
    folder is the berth's home, if it has one. Ctrl-C ends the connection; Jupyter and its kernels
    run on until --stop, or until the head stops. When the head restarts, Jupyter starts again. An
    open connection counts as work: the keeper does not suspend the berth meanwhile.

    Exit code 0 at Ctrl-C, or if Jupyter is stopped; 1 if the berth is not ready or its image has no
    Jupyter, 2 for a wrong name or a port that is taken.

    Example: `berth notebook alice`
    """
    if stop and port is not None:
        raise BadInputError("--stop and --port exclude each other; choose one")
    from berth.cli.verbs.notebook.server import open_notebook, stop_notebook

    if stop:
        return stop_notebook(name, stack, python, as_json=as_json)
    return open_notebook(name, stack, port, python, as_json=as_json)

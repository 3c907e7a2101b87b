"""`berth connect`."""

from typing import Annotated

import typer

from berth.cli.reach.arguments import Json, Name, OnStack, port_option


def run(
    name: Name = None,
    stack: OnStack = None,
    dashboard: Annotated[int | None, port_option("Port for the dashboard.", 8265)] = None,
    client: Annotated[int | None, port_option("Port for Ray Client.", 10001)] = None,
    *,
    print_only: Annotated[
        bool, typer.Option("--print", help="Print the commands that do the same without berth.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Forward a berth's dashboard and client ports to this machine, until Ctrl-C.

    Prints a `ray job submit` command. Ray's token is in a file that only you can read, and that
    is deleted at the end. When the head restarts, the ports are forwarded to the new one. Exit
    code 0 at Ctrl-C, 1 if the berth is not ready (with the reasons), is suspended, or cannot be
    asked, 2 for a wrong name or a port that is taken.

    Example: `berth connect alice`
    """
    from berth.cli.verbs.connect.commands import print_commands
    from berth.cli.verbs.connect.connection import connect_berth

    if print_only:
        return print_commands(name, stack, dashboard, client, as_json=as_json)
    return connect_berth(name, stack, dashboard, client, as_json=as_json)

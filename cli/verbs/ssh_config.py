"""`berth ssh-config`."""

from typing import Annotated

import typer

from berth.cli.reach.arguments import Json, Name, OnStack, User, Worker
from berth.components.core.errors import BadInputError


def run(
    name: Name = None,
    stack: OnStack = None,
    worker: Worker = None,
    user: User = "ray",
    *,
    only_print: Annotated[
        bool, typer.Option("--print", help="Print the host's block, and write nothing.")
    ] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the host.")] = False,
    as_json: Json = False,
) -> int:
    """Make a berth a host of ssh, scp, rsync and editors on this machine.

    Writes the host `berth-NAME` into ~/.ssh/berth/config, and one line that includes this file into
    ~/.ssh/config. Then `ssh berth-alice` works from any folder, as long as `berth status` works in
    this one. Exit code 0 if the host is there, 2 for a wrong name.

    Example: `berth ssh-config alice`
    """
    if only_print and remove:
        raise BadInputError("--print and --remove exclude each other; choose one")
    from berth.cli.reach import ssh_config
    from berth.cli.reach.ssh import ssh_target

    target = ssh_target(name, stack, worker, user)
    if only_print:
        return ssh_config.print_host(target)
    if remove:
        return ssh_config.remove_host(target)
    return ssh_config.write_host(target, as_json=as_json)

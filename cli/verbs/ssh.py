"""`berth ssh`."""

from typing import Annotated

import typer

from berth.cli.reach.arguments import Name, OnStack, User, Worker


def run(
    name: Name = None,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="COMMAND", help="Command to run in place of a shell, after --."),
    ] = None,
    stack: OnStack = None,
    worker: Worker = None,
    user: User = "ray",
    *,
    as_proxy: Annotated[
        bool,
        typer.Option(
            "--proxy", help="Be the transport of an SSH client, as `berth ssh-config` sets it up."
        ),
    ] = False,
) -> int:
    """Log in to a berth's head or a worker by SSH, or run a command there.

    The connection goes through the API server to an SSH server that runs for this connection
    alone, as the container's own user: there is no Service, no open port and no key to set up.
    Whoever may run commands in the berth's pods may log in. The image needs openssh-server. An open
    login counts as work: the keeper suspends no berth that somebody is logged in to. Exit code 0,
    or the command's own; 1 if the berth is not ready, 2 for a wrong name, 255 if the connection
    breaks.

    Example: `berth ssh alice -- nvidia-smi`
    """
    from berth.cli.reach import ssh

    target = ssh.ssh_target(name, stack, worker, user)
    return ssh.run_proxy(target) if as_proxy else ssh.run_ssh(target, command or ())

"""`berth code`."""

from typing import Annotated

import typer

from berth.cli.reach.arguments import Name, OnStack, User, Worker


def run(
    name: Name = None,
    stack: OnStack = None,
    worker: Worker = None,
    user: User = "ray",
    folder: Annotated[
        str, typer.Option(help="Folder of the pod to open.", metavar="PATH")
    ] = "/home/ray",
    editor: Annotated[
        str,
        typer.Option(help="Editor's program, with VS Code's option --remote.", metavar="PROGRAM"),
    ] = "code",
) -> int:
    """Open a berth in VS Code, by its extension Remote-SSH.

    Does what `berth ssh-config` does, and starts the editor. Exit code 0, or the editor's own; 1 if
    it is not installed, 2 for a wrong name.

    Example: `berth code alice`
    """
    from berth.cli.reach.remote_editor import open_editor
    from berth.cli.reach.ssh import ssh_target

    return open_editor(ssh_target(name, stack, worker, user), editor, folder)

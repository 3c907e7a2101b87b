"""`berth home`: homes and Filestore volumes of berths, which stay when a berth is removed."""

from typing import Annotated

import typer

from berth.cli.reach import completion
from berth.cli.reach.arguments import Json, Stack, Yes
from berth.cli.shell.verb_group import verb_group

app = verb_group(
    "Homes and Filestore volumes of berths: they stay when a berth is removed from the settings."
)

Of = Annotated[
    str, typer.Argument(metavar="NAME", help="Engineer's id.", autocompletion=completion.names)
]


@app.command("list")
def list_(stack: Stack, *, as_json: Json = False) -> int:
    """List the homes and Filestore volumes on an environment, those of removed berths too.

    Exit code 0, 1 if the cluster cannot be asked, 2 for a wrong stack.

    Example: `berth home list -s lab`
    """
    from berth.cli.reach import homes

    return homes.print_homes(stack, as_json=as_json)


@app.command()
def remove(name: Of, stack: Stack, *, yes: Yes = False, as_json: Json = False) -> int:
    """Delete home and Filestore volumes of a removed berth, with all files in them.

    Asks before it deletes. The home of a berth that is still in the settings goes with the berth:
    set `home: {retain: false}`, and `retain: false` for Filestore volumes, run `berth up`, then
    remove the berth.

    Exit code 0 if they are deleted, 1 if the cluster cannot be asked, 2 if there is no such home
    or the berth is still there, 3 if nobody agreed.

    Example: `berth home remove alice -s lab`
    """
    from berth.cli.reach import homes

    return homes.remove_home(name, stack, yes=yes, as_json=as_json)

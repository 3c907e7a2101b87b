"""`berth doctor`."""

from berth.cli.reach.arguments import Json, Stack
from berth.cli.shell.console import out, print_json
from berth.components.core.errors import FAILED


def run(stack: Stack, *, as_json: Json = False) -> int:
    """Check what an update needs: tools, state, credentials, project, APIs, quotas, versions.

    Changes nothing. Exit code 0 if nothing is missing, 1 if something is, 2 for wrong settings or
    an unknown stack.

    Example: `berth doctor -s prod`
    """
    from berth.cli.verbs.doctor.examine import examine, lines

    examination = examine(stack)
    print_json(examination.as_json()) if as_json else out.print(lines(examination), crop=False)
    return FAILED if examination.missing else 0

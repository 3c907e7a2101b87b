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
    from berth.cli.verbs.doctor.examination import examine_stack
    from berth.cli.verbs.doctor.report import report_lines

    examination = examine_stack(stack)
    if as_json:
        print_json(examination.as_json())
    else:
        out.print(report_lines(examination), crop=False)
    return FAILED if examination.missing else 0

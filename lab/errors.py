"""Error of the lab: what is wrong and what fixes it, reported without a traceback."""

from berth.components.core.errors import BAD_INPUT, BerthError

USAGE = BAD_INPUT
"""Exit code of a request that cannot be carried out as it stands; nothing was started."""


class LabError(BerthError):
    """Failure that the person at the terminal can fix; raised by all that builds or starts."""


def quoted(output: str, lines: int = 8) -> str:
    """Return the last lines of a program's output, indented for an error's text."""
    last = [line[:300] for line in output.splitlines() if line.strip()][-lines:]
    return "\n".join(f"    {line}" for line in last) or "    (the output is empty)"

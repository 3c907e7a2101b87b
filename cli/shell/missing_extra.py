"""Extras of the package: Python packages that only some verbs need."""

import re
from importlib.metadata import requires

from berth.components.core.distribution import NAME
from berth.components.core.errors import BadInputError


def missing(module: str) -> BadInputError | None:
    """Return the error for a module that is not installed; None for a module of no extra."""
    for line in requires(NAME) or ():
        found = re.fullmatch(r"""([\w.-]+).*extra == ["'](\w+)["'].*""", line)
        if found and found[1] == module:
            extra = found[2]
            return BadInputError(
                f"berth is installed without its extra {extra!r}, and this needs {module} of it; nothing was changed",
                f'run: pip install "{NAME}[{extra}]"',
            )
    return None

"""The Python package of berth, as indexes know it.

The name `berth` on PyPI belongs to another project; the import and the command have it.
"""

from importlib.metadata import version

NAME = "berth-gpu"

WHEEL = NAME.replace("-", "_")
"""Beginning of the names of the wheel and of the source distribution."""


def installed_version() -> str:
    """Return the version of the installed berth."""
    return version(NAME)

"""Error of the lab, and its exit codes."""

from berth.components.core.errors import BAD_INPUT as USAGE
from berth.components.core.errors import FAILED
from berth.components.core.errors import BerthError as LabError

__all__ = ["FAILED", "USAGE", "LabError"]

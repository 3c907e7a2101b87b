"""Programs that Pulumi runs: an environment's, and an engineer's own stack."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from berth.components.core.numbers import whole_numbers

NO_WAIT = "BERTH_NO_WAIT"
"""Variable with which an update does not wait until what it creates is ready."""

NO_DEBUG = "BERTH_NO_DEBUG"
"""Variable with which a program sends no debug messages: none of the runs that berth begins shows
them."""

DIGEST = "BERTH_DIGEST"
"""Variable with which a program has a digest of its secret outputs as an output of its own: events
of the engine show every secret as the same text."""

DIGEST_OUTPUT = "digest"
"""Output with the digest."""


def digest_of(outputs: Mapping[str, Any]) -> str:
    """Return a digest of plain outputs."""
    text = json.dumps(whole_numbers(dict(outputs)), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def run() -> None:
    """Build the stack that Pulumi runs this program for."""
    from berth.stacks.program import main  # noqa: PLC0415 - imports Pulumi's SDK

    main.run()

"""Programs that Pulumi runs: an environment's, and an engineer's own stack."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from berth.components.core.numbers import whole_numbers

NO_WAIT = "BERTH_NO_WAIT"
"""Variable with which an update does not wait until what it creates is ready."""

DIGEST = "BERTH_DIGEST"
"""Variable with which a program has digests as outputs: of its files, and of its secret outputs,
since events of the engine show every secret as the same text."""

DIGEST_OUTPUT = "digest"
"""Output with the digest."""

SETTINGS_OUTPUT = "settings"
"""Output with a digest of the stack's files, beside the other one."""

JUDGED = "BERTH_JUDGED"
"""Variable with that digest of the files that a command has judged: a program refuses others."""


def digest_of(outputs: Mapping[str, Any]) -> str:
    """Return a digest of plain outputs."""
    text = json.dumps(whole_numbers(dict(outputs)), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def run() -> None:
    """Build the stack that Pulumi runs this program for."""
    from berth.stacks.program import main  # noqa: PLC0415 - imports Pulumi's SDK

    main.run()

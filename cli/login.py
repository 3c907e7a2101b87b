"""Whether Pulumi knows where it keeps its state, by what it says."""

from __future__ import annotations

LOGGED_OUT = "Pulumi is not logged in to a state backend"

LOG_IN = "pulumi login gs://YOUR-STATE-BUCKET"
"""What mends it."""

LOGGED_OUT_AND_NOW = f'{LOGGED_OUT}; run: {LOG_IN}, or for the lab: eval "$(.venv/bin/berth lab env)"'


def is_logged_out(said: str) -> bool:
    """Whether Pulumi ended since it is not logged in.

    Args:
        said: what it said on stderr.
    """
    return "PULUMI_ACCESS_TOKEN" in said or "not logged in" in said.lower() or "pulumi login" in said

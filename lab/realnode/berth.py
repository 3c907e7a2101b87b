"""Settings of the berth on the real node."""

from pathlib import Path

from berth.stacks.files import stack_file

STACK = "real"
_SETTINGS = Path(__file__).with_name(f"Pulumi.{STACK}.yaml")


def provide_settings() -> None:
    """Write the berth's settings to the project's stacks, unless the file is there."""
    path = stack_file.stack_path(STACK)
    if not path.exists():
        path.write_bytes(_SETTINGS.read_bytes())

"""`berth schema`."""

import sys


def run() -> None:
    """Print the JSON Schema of a stack's config file, for editors.

    Exit code 0.

    Example: `berth schema > stacks/schema.json`
    """
    from berth.stacks.load.schema import schema_text

    sys.stdout.write(schema_text())

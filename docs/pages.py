"""Every generated file of the repository: `python -m docs.pages` writes them all."""

import sys
from collections.abc import Callable, Mapping

from berth.lab.home import CLONE
from berth.stacks.load.schema import schema_text
from docs import commands, house, pictures, policies, proven, security, settings, supported_versions

GENERATED: Mapping[str, Callable[[], str]] = {
    "stacks/schema.json": schema_text,
    "docs/settings.md": settings.page,
    "docs/commands.md": commands.page,
    "docs/policies.md": policies.page,
    "docs/proven.md": proven.page,
    "docs/security.md": security.page,
    "docs/project/house.md": house.page,
    "docs/own-repository.md": supported_versions.page,
    **pictures.GENERATED,
}
"""Text of a file as it has to be, by its path in the clone."""


def main() -> int:
    """Write all files whose text changes; the exit status."""
    for path, text_of in GENERATED.items():
        file = CLONE / path
        text = text_of()
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
            sys.stderr.write(f"written: {path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

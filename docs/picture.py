"""Writer of docs/fleet.svg: `berth status -s lab` of the lab that runs, as rich exports it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console

from berth.cli.status import fleet_of, table
from berth.components.core.errors import BerthError


def main() -> int:
    """Write the picture."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--stack", default="lab")
    arguments.add_argument("--to", type=Path, default=Path(__file__).with_name("fleet.svg"))
    given = arguments.parse_args()
    console = Console(record=True, width=110, file=sys.stderr)
    try:
        console.print(table(fleet_of(given.stack)))
    except BerthError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    given.to.write_text(console.export_svg(title=f"berth status -s {given.stack}"), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

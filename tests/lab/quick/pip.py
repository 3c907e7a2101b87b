"""`pip list` as Pulumi asks for it before each run of a program, without most of a second of pip's
CPU. Everything else is pip's.
"""

import json
import runpy
import sys
from pathlib import Path

_ASKED = ["list", "-v", "--format", "json"]


def _installed() -> list[dict[str, str]]:
    found = []
    for folder in sys.path:
        for path in Path(folder).glob("*.dist-info"):
            name, _, version = path.stem.partition("-")
            found.append({"name": name, "version": version, "location": folder})
    return found


if __name__ == "__main__":
    if sys.argv[1:] == _ASKED:
        sys.stdout.write(json.dumps(_installed()))
    else:
        sys.path.remove(str(Path(__file__).parent))
        runpy.run_module("pip", run_name="__main__", alter_sys=True)

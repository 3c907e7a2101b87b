"""Stacks that a run of CI previews and applies, by the files that changed.

`python -m berth.cli.ci.changed_stacks FILE` reads the names of changed files, one on a line. It
prints outputs of a job: the environments, the engineers' own stacks that changed, and both
together. A line `*` stands for all files. The lab's environment is simulated and left out.
"""

import json
import sys
from pathlib import Path

from berth.stacks.files import stack_file

_LAB = "lab"


def stacks_of(changed: set[str]) -> dict[str, list[str]]:
    """Return the stacks; a change of engineers' own stacks alone leaves the environments alone."""
    environments = []
    own = {}
    for stack, settings in stack_file.all_settings().items():
        engineer = settings.get("engineer")
        if "environment" in settings and stack != _LAB:
            environments.append(stack)
        if isinstance(engineer, dict) and engineer.get("environment") != _LAB:
            own[f"stacks/Pulumi.{stack}.yaml"] = stack
    changed_own = [stack for file, stack in own.items() if file in changed or "*" in changed]
    if changed and changed <= own.keys():
        environments = []
    return {
        "environments": environments,
        "engineers": changed_own,
        "stacks": [*environments, *changed_own],
    }


def main(file: str) -> None:
    """Print the outputs."""
    changed = set(Path(file).read_text(encoding="utf-8").splitlines())
    for name, stacks in stacks_of(changed).items():
        sys.stdout.write(f"{name}={json.dumps(stacks)}\n")


if __name__ == "__main__":
    main(sys.argv[1])

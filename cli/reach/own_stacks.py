"""Engineers' own stacks on an environment, by the stacks' files."""

from typing import Literal

from berth.stacks.files import stack_file


def own_stacks(environment: str, *, without: Literal["cluster", "isolation"]) -> dict[str, str]:
    """Return engineers' own stacks on an environment, by the engineer's id.

    Stacks that create only the part `without` of a berth are left out.
    """
    stacks = {}
    for stack, settings in stack_file.all_settings().items():
        engineer = settings.get("engineer")
        if not isinstance(engineer, dict) or engineer.get("environment") != environment:
            continue
        if engineer.get("part") != without:
            stacks[str(engineer.get("name") or stack)] = stack
    return stacks

"""Digest of what a stack's files say, by which a program knows what a command has judged."""

import json
import os

from berth.components.core.errors import BadInputError
from berth.stacks.load.stack import EngineerBerth, EngineerStack, Environment
from berth.stacks.program import JUDGED, digest_of


def digest_of_files(loaded: Environment | EngineerBerth | EngineerStack) -> str:
    """Return a digest of a stack's settings, and of all files that they name."""
    said: dict[str, object] = {"settings": loaded.file.settings if loaded.file else {}}
    if isinstance(loaded, Environment):
        services = loaded.resolved.services
        said["code"] = {service.name: dict(service.files) for service in services}
        said["manifests"] = loaded.manifests
    return digest_of(json.loads(json.dumps(said, default=str)))


def refuse_unjudged(loaded: Environment | EngineerStack) -> None:
    """Refuse files that are not as the command judged them that runs this program, if one does.

    Raises:
        BadInputError: they were edited since.
    """
    judged = os.environ.get(JUDGED)
    if judged and judged != digest_of_files(loaded):
        raise edited(loaded.stack)


def edited(stack: str) -> BadInputError:
    """Return the error of a stack whose files were edited while a command ran."""
    return BadInputError(
        f"the settings of stack {stack}, or a file that they name, were edited after this command"
        " had judged them; nothing of the edit was done",
        f"look at it as it is now: berth preview -s {stack}",
    )

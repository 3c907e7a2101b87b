"""Refusal of an update whose stack is locked, before the engine plans for half a minute."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from berth.cli.pulumi.failures import lock_error
from berth.cli.pulumi.stack import backend_url
from berth.components.core.project import project_folder
from berth.components.core.yaml_document import read_yaml
from berth.stacks.files.locks import locks_in


def refuse_locked(stack: str) -> None:
    """Refuse to go on while another update holds a stack, or one that was killed did.

    Only a backend in a folder is looked at. Of a bucket, the engine says the same after its plan.

    Raises:
        BerthError: the stack is locked.
    """
    url = urlsplit(backend_url())
    if url.scheme != "file":
        return
    backend = Path(unquote(url.netloc + url.path)).expanduser()
    project = read_yaml((project_folder() / "Pulumi.yaml").read_text(encoding="utf-8"))
    for lock in locks_in(backend, stack, str(project["name"])):
        raise lock_error(stack, lock)

"""Editor on this machine that works in a pod, by SSH."""

import subprocess

from berth.cli.reach.ssh import SshTarget
from berth.cli.reach.ssh_config import add_host
from berth.components.core.errors import BerthError


def open_editor(target: SshTarget, editor: str, folder: str) -> int:
    """Open a folder of a pod in an editor on this machine; return the editor's exit code.

    Raises:
        BerthError: the editor or OpenSSH is not installed.
    """
    add_host(target)
    address = f"ssh-remote+{target.host}"
    try:
        return subprocess.run([editor, "--remote", address, folder], check=False).returncode
    except FileNotFoundError:
        raise BerthError(
            f"{editor} is not on PATH",
            f"in the editor's Remote-SSH, choose host {target.host}, or open"
            f" vscode://vscode-remote/{address}{folder}",
        ) from None

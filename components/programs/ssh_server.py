"""SSH server for one connection, over the standard input and output of `kubectl exec`.

berth sends this text to the Python of a berth's container, with the public key of the person who
connects. `sshd -i` serves the connection as the container's own user, without further rights, and
listens nowhere. Before, the API server has authenticated the person and allowed `pods/exec`. Python
3.9 and later; only the standard library.

Answers to (read): OpenSSH 9.2, sshd(8) and sshd_config(5); servconf.c takes the first `SetEnv` line
alone, and misc.c, `argv_split`, undoes a backslash before a quote and a backslash.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

MISSING = 127
"""Exit code where the container has no sshd."""

# Variables of the session itself, which sshd sets.
_OF_THE_SESSION = {
    "HOME",
    "LOGNAME",
    "MAIL",
    "OLDPWD",
    "PWD",
    "SHELL",
    "SHLVL",
    "TERM",
    "USER",
    "_",
}


def sshd_configuration(folder: Path, variables: Mapping[str, str]) -> str:
    """Return sshd's configuration.

    Args:
        folder: folder with the host's key and the authorized key.
        variables: environment of the container, which sessions get, too: PATH, Ray's token.
    """
    given = " ".join(
        f'"{name}={_escaped(value)}"'
        for name, value in sorted(variables.items())
        if name not in _OF_THE_SESSION and "\n" not in value
    )
    lines = [
        f"HostKey {folder}/host",
        f"AuthorizedKeysFile {folder}/authorized_keys",
        # The folder is in /tmp, which everybody may write to; it belongs to this user alone.
        "StrictModes no",
        "AuthenticationMethods publickey",
        "UsePAM no",
        "PidFile none",
        "X11Forwarding no",
        "PrintMotd no",
        "LogLevel ERROR",
        "Subsystem sftp internal-sftp",
    ]
    if given:
        lines.append(f"SetEnv {given}")
    return "\n".join([*lines, ""])


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


def serve_connection(key: str) -> int:
    """Serve one connection of the owner of a public key; return the exit code."""
    paths = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    sshd = shutil.which("sshd", path=paths)
    keygen = shutil.which("ssh-keygen", path=paths)
    if sshd is None or keygen is None:
        sys.stderr.write("berth: the image has no sshd: install openssh-server in it\n")
        return MISSING
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        sys.stderr.write(
            f"berth: the image has no user with id {os.getuid()}, so nobody can log in\n"
        )
        return MISSING
    # A signal that ends this program lets it remove its folder.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="berth-ssh-") as name:
        folder = Path(name)
        subprocess.run(
            [keygen, "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "host")], check=True
        )
        (folder / "authorized_keys").write_text(key + "\n")
        file = folder / "config"
        file.touch(mode=0o600)
        file.write_text(sshd_configuration(folder, os.environ))
        with contextlib.suppress(KeyboardInterrupt):
            return subprocess.run([sshd, "-i", "-e", "-f", str(file)], check=False).returncode
    return 0


if __name__ == "__main__":
    sys.exit(serve_connection(sys.argv[1]))

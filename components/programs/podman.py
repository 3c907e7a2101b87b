#!/usr/bin/env python3
"""Wrapper of podman, first in PATH: adds this container's GPUs to `podman run` and `create`.

Ray runs `podman` without `--device` (ray 2.60.0, python/ray/_private/runtime_env/image_uri.py). The
wrapper writes the specification of the devices before each run, so that no other process is needed.

It also maps only the user's own identity: `--userns=keep-id`, which Ray passes, and podman's
default both need newuidmap with privileges that this container lacks, and the map of one identity
needs none.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

WRITER = "cdi.py"
"""Program that writes the specification, in the same folder."""

KIND = "nvidia.com/gpu"
DEVICES = f"{KIND}=all"
"""Podman's name for all devices of the specification."""

FAILED = 125
"""Exit code of podman for an error before the container starts."""
NOT_FOUND = 127

# Options of `podman` with a value in the next argument, and options of `podman run` and `podman
# create` without a value (https://docs.podman.io/en/stable/markdown/podman.1.html,
# podman-run.1.html).
_GLOBAL_WITH_VALUE = frozenset(
    """
    -c --connection --cdi-spec-dir --cgroup-manager --config --conmon --db-backend
    --events-backend --hooks-dir --identity --imagestore --log-level --module --namespace
    --network-cmd-path --network-config-dir --out --root --runroot --runtime --runtime-flag
    --ssh --storage-driver --storage-opt --tmpdir --url --volumepath
    """.split()
)
_WITHOUT_VALUE = frozenset(
    """
    --detach --disable-content-trust --env-host --help --http-proxy --init --interactive
    --no-healthcheck --no-hostname --no-hosts --oom-kill-disable --passwd --privileged
    --publish-all --quiet --read-only --read-only-tmpfs --replace --rm --rmi --rootfs
    --sig-proxy --tls-verify --tty --unsetenv-all
    """.split()
)
_SHORT_WITHOUT_VALUE = "dhiPqt"


def changed(arguments: list[str], user: int, group: int) -> list[str]:
    """Return podman's arguments with the GPUs and the identity of this container.

    Args:
        arguments: podman's arguments.
        user: id of the user that runs podman.
        group: id of the user's group.
    """
    command = _command(arguments)
    if command is None:
        return arguments
    before, after = arguments[:command], arguments[command:]
    options = _options(after)
    ours: list[str] = []
    if not any(_names_gpus(name, value) for name, value, _ in options):
        ours += ["--device", DEVICES]
    given = {name: value for name, value, _ in options}
    own_identity = not {"--uidmap", "--gidmap", "--subuidname", "--subgidname"} & given.keys()
    if user and own_identity and (given.get("--userns") or "keep-id") == "keep-id":
        dropped = {number for name, _, span in options if name == "--userns" for number in span}
        after = [argument for number, argument in enumerate(after) if number not in dropped]
        if not {"--user", "-u"} & given.keys():
            ours += [
                "--uidmap",
                f"{user}:0:1",
                "--gidmap",
                f"{group}:0:1",
                "--user",
                f"{user}:{group}",
            ]
    return [*before, *ours, *after]


def _command(arguments: list[str]) -> int | None:
    """Return the index of the first option of `run` or `create`; None for another command."""
    number = 0
    while number < len(arguments):
        argument = arguments[number]
        if argument.startswith("-"):
            number += 2 if argument in _GLOBAL_WITH_VALUE else 1
        elif argument == "container":
            number += 1
        else:
            return number + 1 if argument in ("run", "create") else None
    return None


def _options(arguments: list[str]) -> list[tuple[str, str, range]]:
    """Return the options before the image: name, value, and range of arguments."""
    found = []
    number = 0
    while (
        number < len(arguments) and arguments[number].startswith("-") and arguments[number] != "--"
    ):
        argument, length = arguments[number], 1
        name, equals, value = argument.partition("=")
        if argument.startswith("--"):
            if not equals and name not in _WITHOUT_VALUE:
                length, value = 2, "".join(arguments[number + 1 : number + 2])
        else:
            letters = argument[1:].lstrip(_SHORT_WITHOUT_VALUE)
            name, value = f"-{letters[:1]}", letters[1:]
            if letters and not value:
                length, value = 2, "".join(arguments[number + 1 : number + 2])
        found.append((name, value, range(number, number + length)))
        number += length
    return found


def _names_gpus(name: str, value: str) -> bool:
    return name == "--gpus" or (
        name == "--device" and value.startswith((f"{KIND}=", "/dev/nvidia"))
    )


def podman(environ: Mapping[str, str]) -> str | None:
    """Return the path of the real podman: the first in PATH that is not this program."""
    own = Path(__file__).resolve()
    for folder in environ.get("PATH", os.defpath).split(os.pathsep):
        found = shutil.which("podman", path=folder)
        if found and Path(found).resolve() != own:
            return found
    return None


def main() -> NoReturn:
    """Write the specification and become podman."""
    real = podman(os.environ)
    if real is None:
        sys.stderr.write(
            "error: this image has no podman, which Ray's image_uri and container need; add podman"
            " (4.1 or newer) and crun to it\n"
        )
        sys.exit(NOT_FOUND)
    given = sys.argv[1:]
    if _command(given) is not None:
        writer = [sys.executable, str(Path(__file__).resolve().with_name(WRITER))]
        # The caller reads podman's stdout; the writer reports errors on stderr.
        if subprocess.run(writer, stdout=subprocess.DEVNULL, check=False).returncode:
            sys.exit(FAILED)
    os.execv(real, [real, *changed(given, os.geteuid(), os.getegid())])  # noqa: S606 - podman, by what its caller gave


if __name__ == "__main__":
    main()

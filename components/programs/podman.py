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
from typing import NamedTuple, NoReturn

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


def arguments_with_gpus(arguments: list[str], user: int, group: int) -> list[str]:
    """Return podman's arguments with the GPUs and the identity of this container.

    Args:
        arguments: podman's arguments.
        user: id of the user that runs podman.
        group: id of the user's group.
    """
    command = _command(arguments)
    if command is None:
        return arguments
    before = arguments[:command]
    after = arguments[command:]
    options = _options(after)
    ours: list[str] = []
    if not any(map(_names_gpus, options)):
        ours += ["--device", DEVICES]
    given = {option.name: option.value for option in options}
    if user and _keeps_identity(given):
        after = _without("--userns", after, options)
        if not given.keys() & {"--user", "-u"}:
            ours += ["--uidmap", f"{user}:0:1", "--gidmap", f"{group}:0:1"]
            ours += ["--user", f"{user}:{group}"]
    return [*before, *ours, *after]


def _keeps_identity(given: Mapping[str, str]) -> bool:
    """Return whether options ask for the user's own identity, or for none."""
    maps = {"--uidmap", "--gidmap", "--subuidname", "--subgidname"}
    return not given.keys() & maps and (given.get("--userns") or "keep-id") == "keep-id"


def _without(name: str, arguments: list[str], options: list[_Option]) -> list[str]:
    """Return arguments without an option and its value."""
    dropped: set[int] = set()
    for option in options:
        if option.name == name:
            dropped.update(option.span)
    return [argument for number, argument in enumerate(arguments) if number not in dropped]


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


class _Option(NamedTuple):
    """Option before the image.

    Attributes:
        name: name of the option, such as `--device` or `-u`.
        value: value of the option; "" without one.
        span: positions of its arguments.
    """

    name: str
    value: str
    span: range


def _options(arguments: list[str]) -> list[_Option]:
    """Return the options before the image."""
    options: list[_Option] = []
    number = 0
    while number < len(arguments):
        argument = arguments[number]
        if not argument.startswith("-") or argument == "--":
            break
        name, value, takes_next = _parsed_option(argument)
        length = 2 if takes_next else 1
        if takes_next:
            value = "".join(arguments[number + 1 : number + 2])
        options.append(_Option(name, value, range(number, number + length)))
        number += length
    return options


def _parsed_option(argument: str) -> tuple[str, str, bool]:
    """Return name and value of an option, and whether the value is the next argument."""
    if argument.startswith("--"):
        name, equals, value = argument.partition("=")
        return name, value, not equals and name not in _WITHOUT_VALUE
    letters = argument[1:].lstrip(_SHORT_WITHOUT_VALUE)
    return f"-{letters[:1]}", letters[1:], len(letters) == 1


def _names_gpus(option: _Option) -> bool:
    if option.name == "--gpus":
        return True
    return option.name == "--device" and option.value.startswith((f"{KIND}=", "/dev/nvidia"))


def real_podman(environ: Mapping[str, str]) -> str | None:
    """Return the path of the real podman: the first in PATH that is not this program."""
    own = Path(__file__).resolve()
    for folder in environ.get("PATH", os.defpath).split(os.pathsep):
        program = shutil.which("podman", path=folder)
        if program and Path(program).resolve() != own:
            return program
    return None


def main() -> NoReturn:
    """Write the specification and become podman."""
    real = real_podman(os.environ)
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
    os.execv(real, [real, *arguments_with_gpus(given, os.geteuid(), os.getegid())])  # noqa: S606 - podman, by what its caller gave


if __name__ == "__main__":
    main()

"""Build of an image without a container engine: a Dockerfile's instructions, applied to a root file
system.

The instructions are those of the Dockerfiles in images/: ARG, FROM, ENV, USER, WORKDIR, COPY and
RUN. A RUN runs as written, as the Dockerfile's user, in a root file system that stands for the base
image.

Reference: https://docs.docker.com/reference/dockerfile/
"""

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from berth.lab.errors import LabError
from berth.lab.realnode import debian

USERS = {"root": (0, 0), "0": (0, 0), "1000": (1000, 100)}
"""User and group ids by the argument of USER; 1000 is user `ray` of Ray's images, whose group is
`users`."""

_VARIABLE = re.compile(r"\$\{(\w+)\}|\$(\w+)")


@dataclass(frozen=True)
class Instruction:
    """Instruction of a Dockerfile: its name, and its arguments with continued lines joined."""

    name: str
    rest: str


@dataclass
class Built:
    """Image that was built: its base and user as the Dockerfile names them, environment and working
    directory.
    """

    base: str = ""
    env: dict[str, str] = field(default_factory=dict)
    user: str = "root"
    folder: str = "/"


def parse(text: str) -> list[Instruction]:
    """Return the instructions of a Dockerfile, without comments."""
    lines = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE)
    joined = re.sub(r"\s*\\\n\s*", " ", lines)
    found = (line.partition(" ") for line in joined.splitlines() if line.strip())
    return [Instruction(name, rest.strip()) for name, _, rest in found]


def build(
    folder: Path,
    root: Path,
    *,
    base: Built | None = None,
    environment: Mapping[str, str] | None = None,
) -> Built:
    """Apply a Dockerfile's instructions to a root file system.

    Args:
        folder: the build context, with the Dockerfile.
        root: root file system that stands for the base image; it is changed.
        base: environment, user and working directory of that image.
        environment: variables of the commands, not of the image.

    Raises:
        LabError: an instruction failed, or is unknown.
    """
    image = Built(env=dict(base.env), user=base.user, folder=base.folder) if base else Built()
    arguments: dict[str, str] = {}
    for instruction in parse((folder / "Dockerfile").read_text(encoding="utf-8")):
        rest = instruction.rest
        match instruction.name:
            case "ARG":
                name, _, default = rest.partition("=")
                arguments[name] = default
            case "FROM":
                image.base = _expanded(rest, arguments)
            case "ENV":
                name, _, value = rest.partition("=")
                image.env[name] = _expanded(value, image.env)
            case "USER" if rest in USERS:
                image.user = rest
            case "WORKDIR":
                image.folder = rest
                (root / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
            case "COPY":
                source, target = rest.split()
                place = root / target.lstrip("/")
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(folder / source, place)
            case "RUN":
                run(root, image, rest, f"RUN {rest[:60]}… of {folder.name}/Dockerfile", environment)
            case _:
                raise LabError(
                    f"{folder.name}/Dockerfile: {instruction.name} {rest} is not an instruction"
                    " that is known here",
                    "add it to tests/containers/dockerfile.py, or write the Dockerfile without it",
                )
    return image


def run(
    root: Path, image: Built, script: str, what: str, environment: Mapping[str, str] | None = None
) -> str:
    """Run a shell script as a container of the image would; return its output.

    Raises:
        LabError: it failed.
    """
    user, group = USERS[image.user]
    variables = {**debian.environment(), **image.env, **(environment or {})}
    command = ["env", "-i", *(f"{name}={value}" for name, value in variables.items())]
    command += ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups"]
    return debian.inside(root, [*command, "sh", "-c", f"cd {image.folder} && {script}"], what)


def _expanded(text: str, values: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda found: values.get(found[1] or found[2], ""), text)

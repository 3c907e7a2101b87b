"""Request that submits a job: its command, its id and its runtime environment, from options."""

import os
import re
import secrets
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

import yaml

from berth.components.core.errors import BadInputError
from berth.components.core.types import parse_quantity

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONGEST_WORD = 20
_OF_FILES = ("-r", "-c", "-e", "--requirement", "--constraint", "--editable", ".", "/")
"""Starts of a requirement that is a file of this machine."""


@dataclass(frozen=True)
class JobRequest:
    """Job to submit."""

    id: str
    body: dict[str, Any] = field(repr=False)
    """Fields of Ray's `JobSubmitRequest`."""
    folder: Path | None = None
    """Folder to upload as the working directory; None for none."""

    def in_package(self, uri: str) -> dict[str, Any]:
        """Return the fields of a request whose working directory is a package."""
        return {**self.body, "runtime_env": {**self.body["runtime_env"], "working_dir": uri}}


def request_of(  # noqa: PLR0913 - each is an option of the verb
    command: Sequence[str],
    *,
    name: str | None = None,
    working_dir: Path | None = None,
    env: Iterable[str] = (),
    pip: Iterable[str] = (),
    requirements: Path | None = None,
    runtime_env: Path | None = None,
    cpus: float | None = None,
    gpus: float | None = None,
    memory: str | None = None,
    environment: Mapping[str, str] = os.environ,
) -> JobRequest:
    """Return the request of a job, by the verb's options and the variables of this process.

    Raises:
        BadInputError: options are wrong; all problems at once.
    """
    problems: list[str] = []
    # One word is a line for the shell, as in `ray job submit -- "a && b"`.
    entrypoint = command[0] if len(command) == 1 else shlex.join(command)
    if not entrypoint.strip():
        problems.append("name a command after --: berth submit NAME -- python train.py")
    if name is not None and not _ID.fullmatch(name):
        problems.append(f"--name: {name!r} is not 1 to 63 letters, digits, '-', '_' and '.'")
    variables = dict(_variables(env, environment, problems))
    packages = [*pip, *_requirements(requirements, problems)]
    ray_env = _runtime_env(runtime_env, variables, packages, problems)
    in_file = ray_env.get("working_dir")
    if isinstance(in_file, str) and "://" not in in_file:
        problems.append(
            f"--runtime-env: working_dir {in_file!r} is a folder of this machine; name it with"
            " --working-dir"
        )
    elif in_file is not None:
        working_dir = None
    size = _memory(memory, problems)
    if problems:
        raise BadInputError("\n".join(problems))
    job = name or f"{_word(command)}-{secrets.token_hex(3)}"
    body: dict[str, Any] = {"entrypoint": entrypoint, "submission_id": job, "runtime_env": ray_env}
    reserved = {"entrypoint_num_cpus": cpus, "entrypoint_num_gpus": gpus, "entrypoint_memory": size}
    body |= {key: value for key, value in reserved.items() if value}
    return JobRequest(job, body, working_dir)


def _runtime_env(
    file: Path | None, variables: dict[str, str], packages: list[str], problems: list[str]
) -> dict[str, Any]:
    """Return the runtime environment: the file, and variables and packages over it."""
    runtime_env = _runtime_env_in(file, problems)
    problems += [
        f"--runtime-env: py_modules has {module!r} of this machine; put it in the working directory"
        for module in runtime_env.get("py_modules") or []
        if "://" not in str(module)
    ]
    if variables:
        in_file = runtime_env.get("env_vars")
        runtime_env["env_vars"] = variables
        if isinstance(in_file, dict):
            runtime_env["env_vars"] = in_file | variables
    if packages:
        if runtime_env.keys() & {"pip", "conda", "uv"}:
            problems.append(
                "--pip and --requirements go into `pip` of the runtime environment, which its file"
                " has too"
            )
        runtime_env["pip"] = packages
    return runtime_env


def _runtime_env_in(file: Path | None, problems: list[str]) -> dict[str, Any]:
    """Return the runtime environment in a file; an empty one without a file."""
    try:
        document = yaml.safe_load(_text(file, "--runtime-env", problems))
    except (yaml.YAMLError, RecursionError) as error:
        reason = str(error).splitlines()[0]
        problems.append(f"--runtime-env: {file} is neither YAML nor JSON: {reason}")
        return {}
    if document is None:
        return {}
    if not isinstance(document, dict):
        problems.append(f"--runtime-env: {file} is not a mapping, such as `env_vars: {{A: b}}`")
        return {}
    return {str(key): value for key, value in document.items()}


def _variables(
    env: Iterable[str], environment: Mapping[str, str], problems: list[str]
) -> Iterator[tuple[str, str]]:
    for entry in env:
        key, given, value = entry.partition("=")
        if not _VARIABLE.fullmatch(key):
            problems.append(
                f"--env: {key!r} is not a variable's name; write KEY=VALUE, or KEY for its value"
                " here"
            )
        elif given:
            yield key, value
        elif key in environment:
            yield key, environment[key]
        else:
            problems.append(f"--env: {key} is not set here; write {key}=VALUE, or set it first")


def _requirements(file: Path | None, problems: list[str]) -> Iterator[str]:
    for number, line in enumerate(_text(file, "--requirements", problems).splitlines(), 1):
        requirement = re.sub(r"(^|\s)#.*$", "", line).strip()
        if requirement.startswith(_OF_FILES):
            problems.append(
                f"{file}:{number}: {requirement!r} names a file, which Ray's nodes do not have;"
                " write the packages here"
            )
        elif requirement:
            yield requirement


def _text(file: Path | None, option: str, problems: list[str]) -> str:
    if file is None:
        return ""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        problems.append(
            f"{option}: {file} cannot be read: {getattr(error, 'strerror', None) or error}"
        )
        return ""


def _memory(text: str | None, problems: list[str]) -> int:
    if text is None:
        return 0
    try:
        return int(parse_quantity(text))
    except ValueError as error:
        problems.append(f"--memory: {error}")
        return 0


def _word(command: Sequence[str]) -> str:
    """Return the word that names a job: `train` for `python train.py`."""
    words = command if len(command) > 1 else command[0].split()
    scripts = [word for word in words if word.endswith((".py", ".sh"))]
    named = scripts[0] if scripts else words[0]
    word = re.sub(r"[^A-Za-z0-9]+", "-", PurePath(named).stem).strip("-")
    return word[:_LONGEST_WORD].strip("-").lower() or "job"

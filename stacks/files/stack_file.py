"""Config file of a stack: its `berth:` settings, and their lines."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from berth.components.core.errors import BadInputError
from berth.components.core.nearest import did_you_mean
from berth.components.core.project import project_folder, shown_path
from berth.components.core.yaml_document import DocumentError, plain_value, read_yaml

if (
    TYPE_CHECKING
):  # the module of problems takes pydantic along, which a shell's completion need not wait for
    from berth.components.core.problems import SettingPath

NAMESPACE = "berth"
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")
"""Names of stacks that Pulumi takes."""
_LONGEST_NAME = 100
LARGEST = 1 << 20
"""Most bytes of a file of settings, which a person writes."""
_PREFIX = "Pulumi."
_SUFFIX = ".yaml"


class StackFileError(BadInputError):
    """A stack's file that is missing or is not the YAML that Pulumi takes."""


class NoStackFileError(StackFileError):
    """Stack without a file; `stack` is its name. Pulumi's backend may have it all the same."""

    def __init__(self, stack: str) -> None:
        self.stack = stack
        path = shown_path(stack_path(stack))
        known = did_you_mean(stack, stack_names())
        super().__init__(f"there is no stack {stack!r}: {path} does not exist{known}")


@dataclass(frozen=True)
class StackFile:
    """Parsed `Pulumi.<stack>.yaml`, with its `berth:` settings by key without that prefix."""

    path: Path
    settings: dict[str, Any]
    _config: CommentedMap

    @property
    def shown_path(self) -> str:
        """The path as a user in the project's folder would write it."""
        return shown_path(self.path)

    def line(self, path: SettingPath) -> int | None:
        """Return the line, from 1, of a setting, or of its nearest parent in the file."""
        if not path:
            return None
        node: Any = self._config
        line: int | None = None
        for part in (f"{NAMESPACE}:{path[0]}", *path[1:]):
            if isinstance(node, CommentedMap) and part in (node.lc.data or {}):
                line = int(node.lc.key(part)[0]) + 1
            elif isinstance(node, CommentedSeq) and isinstance(part, int) and part < len(node):
                line = int(node.lc.item(part)[0]) + 1
            else:
                break  # no such entry, or one that a merge key brings from elsewhere
            node = node[part]
        return line


def stack_path(stack: str) -> Path:
    """Return the path of a stack's config file, in Pulumi.yaml's `stackConfigDir`."""
    return project_folder() / "stacks" / f"{_PREFIX}{stack}{_SUFFIX}"


def stack_names() -> list[str]:
    """Return the names of all stacks with a config file."""
    pattern = stack_path("*")
    return sorted(
        path.name[len(_PREFIX) : -len(_SUFFIX)] for path in pattern.parent.glob(pattern.name)
    )


def stack_name_of(stack: str) -> str:
    """Return the name of a stack that is given by the path of its file; another text as it is.

    Raises:
        NoProjectError: no project is here, and so no stack by any name.
    """
    folder = stack_path("").parent
    path = Path(stack)
    name = path.name[len(_PREFIX) : -len(_SUFFIX)]
    if not (path.name.startswith(_PREFIX) and path.name.endswith(_SUFFIX) and name):
        return stack
    is_the_file = path.resolve() == (folder / path.name).resolve()
    return name if is_the_file or str(path) == path.name else stack


def file_of_stack(stack: str) -> StackFile:
    """Read a stack's config file by the stack's name.

    Raises:
        NoStackFileError: there is no such file.
        StackFileError: the name is none of a stack, or the file cannot be read.
    """
    path = stack_path(stack)
    if not _NAME.fullmatch(stack):
        shown_name = repr(stack if len(stack) <= _LONGEST_NAME else f"{stack[:20]}…")
        inside = re.fullmatch(r"(?:.*/)?Pulumi\.([\w.-]+)\.ya?ml", stack)
        remedy = (
            f"did you mean {inside[1]!r}?" if inside else f"known are {', '.join(stack_names())}"
        )
        raise StackFileError(
            f"{shown_name} is not a stack's name: at most {_LONGEST_NAME} letters, digits, '-', '_'"
            f" and '.'; {remedy}"
        )
    if not path.exists():
        raise NoStackFileError(stack)
    return read_stack_file(path)


def pulumi_keys(stack: str) -> dict[str, str]:
    """Return Pulumi's own keys in a stack's file: `secretsprovider`, `encryptionsalt`."""
    document = read_yaml(stack_path(stack).read_text(encoding="utf-8"))
    entries = document.items() if isinstance(document, CommentedMap) else ()
    return {str(key): str(value) for key, value in entries if key != "config" and value}


def all_settings() -> dict[str, dict[str, Any]]:
    """Return the settings of every stack whose file can be read, by the stack's name."""
    settings = {}
    for stack in stack_names():
        with suppress(StackFileError):
            settings[stack] = file_of_stack(stack).settings
    return settings


def read_stack_file(path: Path) -> StackFile:
    """Read a stack's config file.

    Raises:
        StackFileError: it is missing, unreadable, or not the YAML that Pulumi takes.
    """
    name = shown_path(path)
    if path.exists() and not path.is_file():
        raise StackFileError("is not a file; name a file, not a folder or a device", place=name)
    try:
        if path.stat().st_size > LARGEST:
            raise StackFileError(
                f"is larger than {LARGEST >> 20} MiB, which no stack's file is; name the stack's"
                " own file",
                place=name,
            )
        return parse_stack_file(path, path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StackFileError("there is no such file; correct the name", place=name) from None
    except UnicodeDecodeError:
        raise StackFileError(
            "is not text: a stack's file is YAML in UTF-8; save it as UTF-8", place=name
        ) from None
    except OSError as error:
        raise StackFileError(
            f"cannot be read: {error.strerror}; look at the file and its permissions", place=name
        ) from None


def parse_stack_file(path: Path, text: str) -> StackFile:
    """Parse the text of a stack's config file.

    Raises:
        StackFileError: it is not the YAML that Pulumi takes.
    """
    name = shown_path(path)
    try:
        document = read_yaml(text)
    except DocumentError as error:
        raise StackFileError(
            error.problem, place=f"{name}:{error.line}" if error.line else name
        ) from None
    config = document.get("config") if isinstance(document, CommentedMap) else None
    if not isinstance(config, CommentedMap):
        remedy = (
            f"write `config:` and under it `{NAMESPACE}:environment:` or `{NAMESPACE}:engineer:`"
        )
        raise StackFileError(f"has no `config:`; {remedy}", place=name)
    settings = {str(key): value for key, value in config.items()}
    prefix = f"{NAMESPACE}:"
    for kind in ("environment", "engineer"):
        if kind in settings:
            line = int(config.lc.key(kind)[0]) + 1
            raise StackFileError(
                f"`{kind}:` lacks its namespace; write `{prefix}{kind}:`", place=f"{name}:{line}"
            )
    mine = {
        key[len(prefix) :]: plain_value(value)
        for key, value in settings.items()
        if key.startswith(prefix)
    }
    return StackFile(path, mine, config)

"""File of a stack's state in a folder that is a state backend, and the state as Pulumi exports it.

Layout of a folder or bucket: pulumi, pkg/backend/diy/store.go and meta.go. Content of the file:
pulumi, sdk/go/common/apitype/core.go, VersionedCheckpoint.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def read(folder: Path, project: str, stack: str) -> dict[str, Any]:
    """Return a stack's state as Pulumi exports it, secrets encrypted.

    Raises:
        OSError: there is no such file.
        ValueError, TypeError, KeyError: it is of another layout.
    """
    versioned = json.loads(_path(folder, project, stack).read_text(encoding="utf-8"))
    deployment = versioned["checkpoint"]["latest"]
    return {**_without(versioned, "checkpoint"), "deployment": deployment}


def write(folder: Path, project: str, stack: str, state: Mapping[str, Any]) -> None:
    """Make an empty folder a backend with one stack, which has an exported state."""
    checkpoint = {"stack": stack, "latest": state["deployment"]}
    path = _path(folder, project, stack)
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({**_without(state, "deployment"), "checkpoint": checkpoint}), encoding="utf-8")
    (folder / ".pulumi" / "meta.yaml").write_text("version: 1\n", encoding="utf-8")


def _path(folder: Path, project: str, stack: str) -> Path:
    return folder / ".pulumi" / "stacks" / project / f"{stack}.json"


def _without(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != name}

"""File of Kubernetes objects, as kubectl applies it: YAML documents of one object each."""

from pathlib import Path
from typing import Any

import yaml

from berth.components.core.errors import BadInputError
from berth.components.core.manifest import Manifest
from berth.components.core.project import shown_path
from berth.components.plan.paths import value_at


def read_manifests(path: Path) -> list[Manifest]:
    """Return the objects of a file, in order; empty documents are left out."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BadInputError(
            f"there is no file {shown_path(path)}; paths count from the project's folder"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(
            f"{shown_path(path)} cannot be read: {error}; look at the file and its permissions"
        ) from None
    manifests: list[Manifest] = []
    seen: dict[tuple[str, ...], int] = {}
    try:
        loader = yaml.SafeLoader(text)
        while loader.check_node():
            node: Any = loader.get_node()
            line = node.start_mark.line + 1
            document = loader.construct_document(node)
            if document is None:
                continue
            wrong = _wrong(document)
            if wrong:
                raise BadInputError(wrong, place=f"{shown_path(path)}:{line}")
            first = seen.setdefault(_identity(document), line)
            if first != line:
                name = f"{document['kind']} {document['metadata']['name']}"
                raise BadInputError(
                    f"{name} is in line {first} already; take one out",
                    place=f"{shown_path(path)}:{line}",
                )
            manifests.append(document)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{shown_path(path)}:{mark.line + 1}" if mark else shown_path(path)
        raise BadInputError(
            f"{place}: this is not YAML: {getattr(error, 'problem', None) or error}; correct it"
        ) from None
    if not manifests:
        raise BadInputError(
            f"{shown_path(path)} has no object in it; name a file with Kubernetes objects"
        )
    return manifests


def _wrong(document: Any) -> str:
    """Return why a document is not an object; empty where it is one."""
    if not isinstance(document, dict):
        return (
            "this document is not a Kubernetes object, which is a mapping with apiVersion, kind and"
            " metadata"
        )
    lacking = [key for key in ("apiVersion", "kind") if not isinstance(document.get(key), str)]
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        lacking.append("metadata.name")
    if lacking:
        return f"this document is not a Kubernetes object: it lacks {', '.join(lacking)}"
    if document["kind"] == "DaemonSet" and not isinstance(
        value_at(document, "spec.template.spec"), dict
    ):
        return "this DaemonSet lacks spec.template.spec"
    return ""


def _identity(document: Manifest) -> tuple[str, ...]:
    metadata = document["metadata"]
    return (
        document["apiVersion"],
        document["kind"],
        str(metadata.get("namespace") or ""),
        metadata["name"],
    )

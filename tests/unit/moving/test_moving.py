"""Files that people bring (brought/), and the settings of docs/moving.md that say the same.

Each field is in the objects of the settings with its value, or the page's table names it with the
reason. The settings and the tables are the page's own; cases.yaml says where the fields of files
that are no Kubernetes objects are in Google's resources.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.components.core.merge import merged
from berth.lab.home import CLONE
from berth.stacks.program.environment import register_environment
from tests.unit.cases import table
from tests.unit.loaded import environment_of
from tests.unit.recording import run
from tests.unit.stacks.test_fabric_program import serves
from tests.unit.test_docs import ENVIRONMENT

CASES: dict[str, dict[str, Any]] = table(__file__, "cases.yaml")
SECTIONS = dict(
    re.findall(
        r"^## (.+)\n((?:(?!^## ).*\n)*)", (CLONE / "docs/moving.md").read_text(), re.MULTILINE
    )
)
_ROW = re.compile(r"^\| (`.+?) \| (.+) \|$", re.MULTILINE)

_TEXTS = re.compile(r"ConfigMap\[[^]]+\]\.data\.\S+|\S+\.serveConfigV2")
"""Paths of texts that are YAML."""

Object = dict[str, Any]


def facts(value: Any, path: str = "") -> dict[str, Any]:
    """Return fields with their values, by path. Entries of lists go by their name or key, if they
    have one, else by their place; YAML in a text is read.
    """
    if isinstance(value, str) and _TEXTS.fullmatch(path):
        value = yaml.safe_load(value)
    if isinstance(value, dict) and value:
        items = [(f"{path}.{key}".removeprefix("."), inner) for key, inner in value.items()]
    elif isinstance(value, list) and value:
        items = [
            (f"{path}[{_identity(inner) or place}]", inner) for place, inner in enumerate(value)
        ]
    else:
        return {path: int(value) if isinstance(value, float) and value.is_integer() else value}
    return {key: fact for inner in items for key, fact in facts(inner[1], inner[0]).items()}


def _identity(entry: Any) -> str:
    return str(entry.get("name") or entry.get("key") or "") if isinstance(entry, dict) else ""


def brought(file: str) -> dict[str, Any]:
    """Return the fields of a file, by their object's kind and name or by their path in the file."""
    found: dict[str, Any] = {}
    for document in yaml.safe_load_all((Path(__file__).parent / "brought" / file).read_text()):
        found |= facts(
            document,
            f"{document['kind']}[{document['metadata']['name']}]" if "kind" in document else "",
        )
    return {path: value for path, value in found.items() if not path.endswith("].kind")}


def objects(settings: Object) -> Iterator[tuple[str, Object]]:
    """Yield what an environment of these settings registers, by kind and name."""
    values = merged(ENVIRONMENT, settings["config"]["berth:environment"])
    for item in run(
        lambda: register_environment(environment_of("dev", values)), "dev"
    ).registrations:
        if "kind" in item.inputs:
            yield f"{item.inputs['kind']}[{item.inputs['metadata']['name']}]", item.inputs
        elif item.type.startswith("gcp:"):
            yield f"{item.type.rpartition(':')[2]}[{item.name}]", item.inputs
        elif made := item.inputs.get("values", {}).get("devicePlugin", {}).get("config"):
            metadata = {"name": made["name"]}
            yield (
                f"ConfigMap[{made['name']}]",
                {"apiVersion": "v1", "metadata": metadata, "data": made["data"]},
            )


def rendered(settings: Object, api: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the fields of the registered objects; a hash at the end of a name is not in paths."""
    serves(monkeypatch, api)
    found = {re.sub(r"-[0-9a-f]{8}\]$", "]", key): item for key, item in objects(settings)}
    return {path: value for key, item in found.items() for path, value in facts(item, key).items()}


def place(path: str, at: dict[str, str]) -> str:
    """Return the path of a field in the registered objects: that of its longest beginning."""
    start = max(
        (key for key in at if path == key or path.startswith((f"{key}.", f"{key}["))),
        key=len,
        default="",
    )
    # Terraform writes machine_type where Pulumi's plugin has machineType.
    rest = re.sub("_([a-z])", lambda found: found[1].upper(), path.removeprefix(start))
    return at[start] + rest if start else path


def said(path: str, value: Any, ours: dict[str, Any]) -> bool:
    """Return whether objects have a field with a value; what is empty may have more in it."""
    if value in ({}, []):
        return any(other == path or other.startswith((f"{path}.", f"{path}[")) for other in ours)
    return str(ours.get(path)) == str(value)


def names(path: str) -> str:
    """Return a path as the page's tables have it: names alone, with a dot around each."""
    dotted = path.replace(".[", "[").replace("[", ".").replace("]", "")
    return f".{dotted}."


@pytest.mark.parametrize("section", CASES)
def test_what_is_brought_is_said_or_listed_with_its_reason(
    section: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[section]
    text = SECTIONS[section]
    (settings,) = re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    ours = rendered(yaml.safe_load(settings), case.get("api", "v1"), monkeypatch)
    at = case.get("at", {})
    theirs = brought(case["brought"])
    differing = {path for path, value in theirs.items() if not said(place(path, at), value, ours)}
    listed = {
        name: reason
        for cell, reason in _ROW.findall(text)
        for name in re.findall(r"`([^`]+)`", cell)
    }
    unlisted = {
        path: (theirs[path], ours.get(place(path, at)))
        for path in sorted(differing)
        if not any(f".{name}." in names(path) for name in listed)
    }
    assert unlisted == {}
    assert [
        name for name in listed if not any(f".{name}." in names(path) for path in differing)
    ] == []


def test_every_file_and_every_section_with_settings_is_compared() -> None:
    assert {case["brought"] for case in CASES.values()} == {
        path.name for path in (Path(__file__).parent / "brought").iterdir()
    }
    assert [
        section for section, text in SECTIONS.items() if ("```yaml" in text) != (section in CASES)
    ] == []

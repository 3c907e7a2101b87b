"""Writer of `tests/google/discovery.json`, from Google's own documents about its APIs.

`python -m docs.discovery WHEEL`, where WHEEL is a wheel of google-api-python-client
(`pip download --no-deps google-api-python-client`), or the folder of documents in one. The wheel is
17 MB, installed 114 MB: what is needed of it stands in the table.

The table has the fields of all objects that are in requests (`tests/google/requests.json`), and of
those under `ALSO`.
Of a field it has the type, and where Google says so: `choices`, `old` ones among them, whether the
field is deprecated, and whether it is output only; limits are those of `LIMITS`.
"""

import json
import re
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from berth.lab.home import CLONE

FILE = CLONE / "tests/google/discovery.json"
REQUESTS = CLONE / "tests/google/requests.json"

ALSO = {"container.v1beta1": ("GPUSharingConfig", "HostMaintenancePolicy")}
"""Objects that no recorded request has, whose choices are compared with those of settings."""

LIMITS = {
    ("container.v1beta1", "Cluster", "name", "longest", 40): "can be up to 40 characters",
    ("container.v1beta1", "NodeConfig", "diskSizeGb", "least", 12): (
        "15 GB for node pools running GKE versions 1.36.2-gke.2933000 or later. Or, for earlier"
        " versions, the smallest allowed disk size is 12 GB"
    ),
    ("container.v1beta1", "NodeConfig", "labels", "longest", 1024): "up to 1,024 total characters",
    ("compute.beta", "Network", "mtu", "least", 1300): "minimum value for this field is 1300",
    ("compute.beta", "Network", "mtu", "most", 8896): "the maximum value is 8896",
}
"""Limits that the documents have in sentences only, each with its words there."""

_OUTPUT = re.compile(r"\[?output.only\]?", flags=re.IGNORECASE)
_FOLDER = "googleapiclient/discovery_cache/documents"

Schemas = Mapping[str, Mapping[str, Any]]


def distilled(documents: Mapping[str, Mapping[str, Any]], requests: Mapping[str, Any]) -> Any:
    """Return what the documents say about the fields of requests.

    Args:
        documents: Google's documents, by API.
        requests: fields of bodies, by API and by `METHOD path`.

    Raises:
        KeyError: a request that a document does not have.
        ValueError: a document no longer has the words of a limit.
    """
    table = {}
    for api, document in documents.items():
        schemas = with_names(document["schemas"])
        bodies = {
            request: found
            for request, found in bodies_of(document).items()
            if request in requests[api]
        }
        entered = set(ALSO.get(api, ()))
        for request, fields in requests[api].items():
            for path in fields:
                entered |= set(objects_on(schemas, bodies[request], path))
        table[api] = {
            "revision": document["revision"],
            "requests": bodies,
            "objects": {name: _fields(api, name, schemas[name]) for name in sorted(entered)},
        }
    return table


def with_names(schemas: Schemas) -> dict[str, Mapping[str, Any]]:
    """Return the objects with those that stand inside another one as `Firewall.allowed`."""
    named: dict[str, Mapping[str, Any]] = {}
    for name, schema in schemas.items():
        properties = dict(schema.get("properties", {}))
        for field, spec in properties.items():
            inner = spec.get("items", spec)
            if "properties" in inner:
                reference = {"$ref": f"{name}.{field}"}
                named[reference["$ref"]] = inner
                properties[field] = {"items": reference} if "items" in spec else reference
        named[name] = {**schema, "properties": properties} if properties else schema
    return named


def bodies_of(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the type of each request's body by `METHOD path`, with `{}` for names."""
    bodies = {}
    for method in _methods(document):
        path = re.sub(r"\{[^}]+\}", "{}", method.get("flatPath", method["path"]))
        path = path.removeprefix(f"{document['version']}/")
        if "request" in method:
            bodies[f"{method['httpMethod']} {path}"] = method["request"]["$ref"]
    return bodies


def _methods(resource: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from resource.get("methods", {}).values()
    for inner in resource.get("resources", {}).values():
        yield from _methods(inner)


def objects_on(schemas: Schemas, body: str, path: str) -> Iterator[str]:
    """Yield the names of the objects on the way along a path; it ends where a name is unknown."""
    kind: Mapping[str, Any] = {"$ref": body}
    for part in ("", *path.replace("[]", ".[]").split(".")):
        if part == "[]":
            kind = kind.get("items", {})
        elif part and "properties" in kind:
            kind = kind["properties"].get(part, {})
        elif part:
            kind = kind.get("additionalProperties", {})
        if "$ref" in kind:
            yield kind["$ref"]
            kind = schemas[kind["$ref"]]


def _fields(api: str, name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {field: _facts(api, name, field, spec) for field, spec in schema["properties"].items()}


def _facts(api: str, name: str, field: str, spec: Mapping[str, Any]) -> Any:
    """Return a field's type, or its facts with the type where there are more."""
    description = " ".join(spec.get("description", "").split())
    items = spec.get("items", {})
    facts: dict[str, Any] = {"type": type_of(spec)}
    if choices := spec.get("enum") or items.get("enum"):
        facts["choices"] = choices
        old = spec.get("enumDeprecated") or items.get("enumDeprecated") or []
        if any(old):
            facts["old"] = [value for value, is_old in zip(choices, old, strict=True) if is_old]
    if spec.get("deprecated"):
        facts["deprecated"] = True
    if spec.get("readOnly") or _OUTPUT.match(description):
        facts["output"] = True
    for (of_api, of_name, of_field, limit, value), words in LIMITS.items():
        if (of_api, of_name, of_field) == (api, name, field):
            if words not in description:
                raise ValueError(f"{api} {name}.{field} no longer says {words!r}: read it again")
            facts[limit] = value
    return facts if len(facts) > 1 else facts["type"]


def type_of(spec: Mapping[str, Any]) -> str:
    """Return a type in short: `string`, `NodeConfig`, `[string]` of a list, `{string}` of a map."""
    if "$ref" in spec:
        return str(spec["$ref"])
    if "items" in spec:
        return f"[{type_of(spec['items'])}]"
    if "additionalProperties" in spec:
        return f"{{{type_of(spec['additionalProperties'])}}}"
    return str(spec.get("type", "any"))


def text(table: Mapping[str, Any]) -> str:
    """Return the table as text: one line for each field, so that a change can be read."""
    parts = []
    for api, of_api in table.items():
        objects = [
            f"{json.dumps(name)}: {_lines(rows)}" for name, rows in of_api["objects"].items()
        ]
        parts.append(
            f'{json.dumps(api)}: {{\n"revision": {json.dumps(of_api["revision"])},\n'
            f'"requests": {_lines(of_api["requests"])},\n'
            '"objects": {\n' + ",\n".join(objects) + "\n}}"
        )
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _lines(rows: Mapping[str, Any]) -> str:
    lines = [f"  {json.dumps(key)}: {json.dumps(row)}" for key, row in rows.items()]
    return "{\n" + ",\n".join(lines) + "\n}"


def documents_in(place: Path, apis: Iterable[str]) -> dict[str, Any]:
    """Return Google's documents about APIs, from a wheel or a folder."""
    if place.is_dir():
        return {api: json.loads((place / f"{api}.json").read_bytes()) for api in apis}
    with zipfile.ZipFile(place) as wheel:
        return {api: json.loads(wheel.read(f"{_FOLDER}/{api}.json")) for api in apis}


if __name__ == "__main__":
    sent = json.loads(REQUESTS.read_text(encoding="utf-8"))
    FILE.write_text(text(distilled(documents_in(Path(sys.argv[1]), sent), sent)), encoding="utf-8")

"""Fields of a pod template in KubeRay's definition, as in components/ray/pod_fields.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def fields_of(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of pods in the definition of RayClusters.

    An object is a mapping of its fields, or of `*` for any key. A list has the keys that merge its
    entries, and the form of an entry. A value has its type. `#container` is the form of a
    container.
    """
    (version,) = [version for version in definition["spec"]["versions"] if version["name"] == "v1"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    template = _form(spec["headGroupSpec"]["properties"]["template"])
    pod = template["spec"]
    container = pod["containers"][-1]
    assert pod["initContainers"] == pod["containers"]
    pod["containers"] = pod["initContainers"] = ["name", "#container"]
    return {"container": container, **template}


def _form(schema: Mapping[str, Any]) -> Any:
    if schema.get("x-kubernetes-int-or-string"):
        return "int-or-string"
    if schema["type"] == "array":
        return [*schema.get("x-kubernetes-list-map-keys", []), _form(schema["items"])]
    if schema["type"] != "object":
        return schema["type"]
    if "properties" in schema:
        return {name: _form(inner) for name, inner in sorted(schema["properties"].items())}
    return {"*": _form(schema["additionalProperties"])}

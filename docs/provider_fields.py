"""Writer of `components/gke/provider_fields.json`, from facts about Google's provider.

`python -m docs.provider_fields FIELDS_JSON`, where FIELDS_JSON has each field of the provider's
resources under its Terraform name (the folder google-provider of the reference data). Pulumi's
names are those of the installed pulumi_gcp; its sources are parsed, since an import takes seconds.
"""

import ast
import importlib.util
import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

from berth.components.gke.provider_fields import FILE

# Type token: the SDK's module, file and class.
SOURCES = {
    "gcp:compute/firewall:Firewall": ("compute", "firewall", "FirewallArgs"),
    "gcp:compute/network:Network": ("compute", "network", "NetworkArgs"),
    "gcp:compute/router:Router": ("compute", "router", "RouterArgs"),
    "gcp:compute/routerNat:RouterNat": ("compute", "router_nat", "RouterNatArgs"),
    "gcp:compute/subnetwork:Subnetwork": ("compute", "subnetwork", "SubnetworkArgs"),
    "gcp:container/cluster:Cluster": ("container", "cluster", "ClusterArgs"),
    "gcp:container/nodePool:NodePool": ("container", "node_pool", "NodePoolArgs"),
}

_SECONDS = {"m": 60, "h": 3600}
_REFERENCE = ("name, path and self link are equal", "self links compared by relative path")
_STICKS = re.compile(r"removing the (?:last label|block) sends no")
_EMPTY = re.compile(r"empty equals (\w+)")


def distilled(facts: dict[str, Any]) -> dict[str, Any]:
    """Facts under Pulumi's names, without what is the same for most fields.

    Args:
        facts: the content of FIELDS_JSON, or of a part of it.

    Raises:
        KeyError: for a field that can be given, and that pulumi_gcp does not have.
    """
    resources = {}
    for token, name in terraform_names().items():
        given = {
            path: row for path, row in facts["resources"].get(name, {}).items() if _is_input(row)
        }
        resources[token] = {
            pulumi_path(token, path): _row(token, row) for path, row in given.items()
        }
    return {
        "source": {
            key: facts["source"][key] for key in ("repository", "commit", "date", "version")
        },
        "timeouts": {
            token: _timeouts(facts["timeouts"], name) for token, name in terraform_names().items()
        },
        "resources": resources,
    }


def text(content: dict[str, Any]) -> str:
    """The table as text: one line for each field, so that a change can be read."""
    parts = [
        f'"source": {json.dumps(content["source"])}',
        f'"timeouts": {_lines(content["timeouts"])}',
    ]
    resources = [
        f"{json.dumps(token)}: {_lines(rows)}" for token, rows in content["resources"].items()
    ]
    return (
        "{\n" + ",\n".join([*parts, '"resources": {\n' + ",\n".join(resources) + "\n}"]) + "\n}\n"
    )


def terraform_names() -> dict[str, str]:
    """Terraform's name of each type that the simulated Google Cloud has, by Pulumi's token."""
    return {token: f"google_{module}_{file}" for token, (module, file, _) in SOURCES.items()}


def pulumi_path(token: str, path: str) -> str:
    """A field's path in Pulumi's inputs.

    Raises:
        KeyError: when pulumi_gcp has no such input.
    """
    kind: Any = inputs_of(token)
    found = []
    for part in path.split("."):
        while isinstance(kind, list):
            kind = kind[0]
        first, *others = part.split("_")
        name = first + "".join(other[:1].upper() + other[1:] for other in others)
        # Pulumi gives lists the plural.
        names = (name, f"{name}s", f"{name}es", re.sub("y$", "ies", name))
        match = next(
            (candidate for candidate in names if isinstance(kind, dict) and candidate in kind), None
        )
        if match is None:
            raise KeyError(f"{token} has no input {path}")
        found.append(match)
        kind = kind[match]
    return ".".join(found)


@cache
def inputs_of(token: str) -> dict[str, Any]:
    """Return a type's inputs: objects, lists of one thing, `{"*": …}` for a map, or "value".

    Raises:
        ModuleNotFoundError: without pulumi_gcp.
    """
    spec = importlib.util.find_spec("pulumi_gcp")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("No module named 'pulumi_gcp'")
    module, file, name = SOURCES[token]
    folder = Path(spec.origin).parent / module
    return _inputs(_classes(folder / f"{file}.py")[name], _classes(folder / "_inputs.py"))


@cache
def _classes(file: Path) -> dict[str, ast.ClassDef]:
    tree = ast.parse(file.read_text())
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def _inputs(node: ast.ClassDef, nested: dict[str, ast.ClassDef]) -> dict[str, Any]:
    """The inputs of an `…Args` class by the engine's names."""
    constructor = next(
        item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "__init__"
    )
    names = _engine_names(node)
    return {
        names.get(argument.arg, argument.arg): _accepted(argument.annotation, nested)
        for argument in constructor.args.kwonlyargs
        if argument.annotation is not None
    }


def _engine_names(node: ast.ClassDef) -> dict[str, str]:
    """`@pulumi.getter(name="machineType")` of each property whose name differs."""
    names = {}
    for item in node.body:
        if not isinstance(item, ast.FunctionDef):
            continue
        for decorator in item.decorator_list:
            if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pulumi.getter":
                names[item.name] = str(ast.literal_eval(decorator.keywords[0].value))
    return names


def _accepted(annotation: ast.expr, nested: dict[str, ast.ClassDef]) -> Any:
    """Return what an annotation such as `pulumi.Input[Optional[Sequence[…]]]` accepts."""
    if isinstance(annotation, ast.Constant):
        return _inputs(nested[str(annotation.value)], nested)
    if isinstance(annotation, ast.Subscript):
        container = ast.unparse(annotation.value)
        if container == "Sequence":
            return [_accepted(annotation.slice, nested)]
        if container == "Mapping":
            parts = annotation.slice
            return {
                "*": _accepted(parts.elts[1], nested) if isinstance(parts, ast.Tuple) else "value"
            }
        return _accepted(annotation.slice, nested)
    return "value"


def _is_input(row: dict[str, Any]) -> bool:
    return bool(row.get("optional") or row.get("required"))


def _row(token: str, row: dict[str, Any]) -> dict[str, Any]:
    note = row.get("note", "")
    empty = _EMPTY.search(note)
    facts = {
        "replaces": row["forceNew"],
        "keeps": bool(row.get("optional") and row.get("computed")),
        "nodes": None if row["forceNew"] else row.get("recreatesNodes"),
        # The resource, or the block around the field, cannot be without it.
        "required": row.get("required"),
        "kind": _kind(row),
        # Type of a single value that is not text.
        "type": {"bool": "bool", "int": "int", "float": "number"}.get(row["type"]),
        "default": row.get("default"),
        # The only values that the provider lets through, and of an element the only ones.
        "allowed": row.get("allowed"),
        "elements": row.get("each", {}).get("allowed"),
        "least": row.get("min"),
        "most": row.get("max"),
        # Most elements; left out without a limit.
        "items": row.get("maxItems") if row.get("maxItems") != 1 else None,
        # Paths that cannot be given beside this one.
        "conflicts": _paths(token, row.get("conflictsWith")),
        # Paths of which exactly one is given.
        "one_of": _paths(token, row.get("exactlyOneOf")),
        # Paths of which at least one is given, where the block around them is.
        "some_of": _paths(token, row.get("atLeastOneOf")),
        # A name, a path and a self link of the same thing are equal.
        "reference": any(text in note for text in _REFERENCE),
        # Upper and lower case are equal.
        "caseless": "case ignored" in note,
        # The value that an empty one is equal to.
        "empty": empty[1] if empty else None,
        # Name of the provider's check of the value.
        "format": row.get("validate"),
        "sticks": _STICKS.search(note) is not None,
    }
    return {
        key: value
        for key, value in facts.items()
        if value is not None and value is not False and value not in ([], "no")
    }


def _kind(row: dict[str, Any]) -> str | None:
    if row["type"] not in ("list", "set", "map") or row.get("maxItems") == 1:
        return None
    return "set" if "rather than order" in row.get("note", "") else str(row["type"])


def _paths(token: str, paths: list[str] | None) -> list[str]:
    """Return other fields that a rule names; a rule that names them in words only is left out."""
    return [pulumi_path(token, path) for path in paths or [] if " " not in path]


def _timeouts(timeouts: dict[str, dict[str, str]], name: str) -> dict[str, int]:
    own = timeouts.get(name) or timeouts["google_compute_*"]
    return {
        key: int(own[key][:-1]) * _SECONDS[own[key][-1]] for key in ("create", "update", "delete")
    }


def _lines(rows: dict[str, Any]) -> str:
    return (
        "{\n"
        + ",\n".join(f"  {json.dumps(key)}: {json.dumps(row)}" for key, row in rows.items())
        + "\n}"
    )


if __name__ == "__main__":
    FILE.write_text(
        text(distilled(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))), encoding="utf-8"
    )

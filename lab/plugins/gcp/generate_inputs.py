"""Write `inputs.json`: the inputs that the installed pulumi_gcp accepts, for the types that the simulated GKE has.

Run after an update of pulumi_gcp, or when a type is added: `python -m berth.lab.plugins.gcp.generate_inputs`. The plugin
itself reads the table: importing pulumi_gcp takes seconds, and the engine waits for a plugin to start.

Simulates nothing: it writes a table of names.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

TABLE = Path(__file__).parent / "inputs.json"

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

_SCALARS = {"str": "string", "bool": "boolean", "int": "integer", "float": "number"}


def generate() -> str:
    """The table as text.

    Returns:
        JSON: for each type token its inputs by name, where a value is the name of a scalar type, an object of
        inputs, a list of one of these, or `{"*": …}` for a map.

    Raises:
        ModuleNotFoundError: without pulumi_gcp.
    """
    spec = importlib.util.find_spec("pulumi_gcp")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("No module named 'pulumi_gcp'")
    package = Path(spec.origin).parent
    nested: dict[str, dict[str, ast.ClassDef]] = {}
    table = {}
    for token, (module, file, name) in SOURCES.items():
        if module not in nested:
            nested[module] = _classes(package / module / "_inputs.py")
        table[token] = _inputs(_classes(package / module / f"{file}.py")[name], nested[module])
    rows = [f"{json.dumps(token)}: {_rows(inputs)}" for token, inputs in table.items()]
    return "{\n" + ",\n".join(rows) + "\n}\n"


def _rows(inputs: dict[str, Any]) -> str:
    """One line for each input of a type, so that a change of the table can be read."""
    rows = [f"  {json.dumps(key)}: {json.dumps(value, sort_keys=True)}" for key, value in sorted(inputs.items())]
    return "{\n" + ",\n".join(rows) + "\n}"


def _classes(file: Path) -> dict[str, ast.ClassDef]:
    tree = ast.parse(file.read_text())
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def _inputs(node: ast.ClassDef, nested: dict[str, ast.ClassDef]) -> dict[str, Any]:
    """The inputs of an `…Args` class by the engine's names."""
    constructor = next(item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "__init__")
    names = _engine_names(node)
    return {
        names.get(argument.arg, argument.arg): _kind(argument.annotation, nested)
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


def _kind(annotation: ast.expr, nested: dict[str, ast.ClassDef]) -> Any:
    """What an annotation such as `pulumi.Input[Optional[Sequence[…]]]` accepts."""
    if isinstance(annotation, ast.Constant):
        return _inputs(nested[str(annotation.value)], nested)
    if isinstance(annotation, ast.Subscript):
        container = ast.unparse(annotation.value)
        if container == "Sequence":
            return [_kind(annotation.slice, nested)]
        if container == "Mapping":
            parts = annotation.slice
            return {"*": _kind(parts.elts[1], nested) if isinstance(parts, ast.Tuple) else "any"}
        return _kind(annotation.slice, nested)
    return _SCALARS.get(ast.unparse(annotation).removeprefix("_builtins."), "any")


if __name__ == "__main__":
    TABLE.write_text(generate())
    sys.stdout.write(f"{TABLE.name}: {len(SOURCES)} types\n")

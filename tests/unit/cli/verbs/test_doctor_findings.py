"""findings.yaml has every finding that a check of berth doctor names, and no other."""

import ast
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

from berth.cli.verbs.doctor import findings


def calls() -> Iterator[tuple[str, str]]:
    """Each key that a check may name, with its topic; `no-…` for one with a name in it."""
    for file in Path(findings.__file__).parent.glob("*.py"):
        module = ast.parse(file.read_text(encoding="utf-8"))
        topics = dict(pair for node in module.body if isinstance(node, ast.Assign) for pair in topics_of(node))
        for node in ast.walk(module):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "found":
                assert isinstance(node.func.value, ast.Name)
                for key in keys_of(node.args[0], module):
                    yield topics[node.func.value.id], key


def topics_of(node: ast.Assign) -> Iterator[tuple[str, str]]:
    """Names of topics in a module: `CLUSTER, ROAD = Topic("cluster"), Topic("road")`."""
    names = node.targets[0].elts if isinstance(node.targets[0], ast.Tuple) else node.targets
    values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
    for name, value in zip(names, values, strict=False):
        if isinstance(value, ast.Call) and ast.unparse(value.func) == "Topic" and isinstance(name, ast.Name):
            yield name.id, ast.literal_eval(value.args[0])


def keys_of(node: ast.expr, module: ast.Module) -> Iterator[str]:
    """Texts that an expression can be: a constant, a choice of two, or a name of one of these."""
    if isinstance(node, ast.IfExp):
        yield from keys_of(node.body, module)
        yield from keys_of(node.orelse, module)
    elif isinstance(node, ast.Name):
        for assigned in ast.walk(module):
            if isinstance(assigned, ast.Assign) and ast.unparse(assigned.targets[0]) == node.id:
                yield from keys_of(assigned.value, module)
    elif isinstance(node, ast.JoinedStr):
        yield from (f"no-{name}" for name in ("gke-gcloud-auth-plugin", "gcloud", "kubectl"))
    elif isinstance(node, ast.Constant):
        yield str(node.value)
    else:
        assert ast.unparse(node) == "feature.absent"
        yield from ("no-buckets", "no-shares", "no-secret-sync")


def test_every_finding_has_its_text_and_every_text_its_check() -> None:
    assert set(calls()) == {(topic, key) for topic, keys in findings.TEXTS.items() for key in keys}


def test_a_finding_has_one_state_and_perhaps_a_remedy() -> None:
    for keys in findings.TEXTS.values():
        for parts in keys.values():
            assert len(parts.keys() & {"fine", "warning", "missing", "unchecked"}) == 1
            assert parts.keys() <= {"fine", "warning", "missing", "unchecked", "remedy"}
            assert not ("fine" in parts and "remedy" in parts)
            for text in parts.values():
                assert all(field is None or field.isidentifier() for _, field, _, _ in Formatter().parse(text))

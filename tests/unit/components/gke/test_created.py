"""Arguments of berth beside what Google's own tests of its provider create on GKE."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from berth.components.core import fast_yaml
from berth.components.gke.cluster_arguments import cluster_arguments
from tests.google.discovery import FILE
from tests.unit.components.gke import environment_of
from tests.unit.components.gke.test_node_pool import arguments

CREATED = fast_yaml.load_file(FILE.with_name("created.yaml"))
CASES = [(kind, name) for kind in ("pools", "clusters") for name in CREATED[kind]]


def flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the paths of arguments with their values, without numbers of list items; no None."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from flat(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        for item in value:
            yield from flat(item, path)
    elif value is not None:
        yield path, value


def sent(kind: str, case: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that berth sends for a case's settings, by path."""
    if kind == "clusters":
        return dict(flat(cluster_arguments(environment_of(cluster=case["settings"]))))
    return dict(flat(arguments(case["settings"], case.get("environment"), case.get("policy"))))


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_each_difference_from_what_google_created_has_its_reason(kind: str, name: str) -> None:
    case = CREATED[kind][name]
    ours = sent(kind, case)
    differing = {path for path, value in case["creates"].items() if ours.get(path) != value}
    assert differing == case.get("differs", {}).keys(), {path: ours.get(path) for path in differing}
    beside = [path for path in ours if path not in case["creates"] and not reason(kind, path)]
    assert beside == []


def reason(kind: str, path: str) -> str:
    """Return why berth sends an argument that Google's test does not; "" without a reason."""
    reasons = CREATED["beside"][kind]
    return next((text for key, text in reasons.items() if f"{path}.".startswith(f"{key}.")), "")


def test_every_reason_is_needed() -> None:
    for kind, reasons in CREATED["beside"].items():
        added = {
            path
            for case in CREATED[kind].values()
            for path in sent(kind, case).keys() - case["creates"].keys()
        }
        needed = {key for key in reasons if any(f"{path}.".startswith(f"{key}.") for path in added)}
        assert needed == reasons.keys()

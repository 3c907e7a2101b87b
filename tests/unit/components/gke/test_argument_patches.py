"""Arguments of clusters and pools that users add to berth's."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from berth.components.gke.argument_patches.fields import CLUSTERS, POOLS, PatchedType
from berth.components.gke.provider_fields import CLUSTER, NODE_POOL, resource_fields
from tests.unit.cases import table
from tests.unit.components.gke import CPU, environment_of
from tests.unit.components.gke.registered import recorded, registered_fields

TABLE = table(__file__, "argument_patches.yaml")


def inputs(token: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs of the only resource of a type that an environment registers."""
    environment = environment_of(**values)
    registered = recorded("some", environment).of_type(token)
    (found,) = (registration.inputs for registration in registered)
    return found


@pytest.mark.parametrize("case", TABLE["registered"])
def test_arguments_are_among_those_that_are_registered(
    golden: Callable[[str, Any], None], case: str
) -> None:
    values = TABLE["registered"][case]
    patches = {
        CLUSTER: values.get("cluster", {}).get("arguments", {}),
        NODE_POOL: values.get("pools", {}).get("cpu", {}).get("arguments", {}),
    }
    registered = {}
    for token, patch in patches.items():
        given = inputs(token, values)
        registered[token] = {field: given[field] for field in patch}
    golden(f"gke/arguments-{case}", registered)


def holds(whole: Any, part: Any) -> bool:
    """Whether a value has all of a patch."""
    if not isinstance(part, dict):
        return bool(whole == part)
    return isinstance(whole, dict) and all(holds(whole.get(key), part[key]) for key in part)


def test_names_arrive_as_they_are_written() -> None:
    patches = TABLE["names"]
    values = {
        "cluster": {"arguments": patches["cluster"]},
        "pools": {"cpu": {**CPU, "arguments": patches["pool"]}},
    }
    assert holds(inputs(CLUSTER, values), patches["cluster"])
    assert holds(inputs(NODE_POOL, values), patches["pool"])


@pytest.mark.parametrize("patched", [CLUSTERS, POOLS], ids=lambda patched: patched.words)
def test_every_field_that_berth_sends_is_refused_in_a_patch(patched: PatchedType) -> None:
    sent = registered_fields()[patched.token]
    leaves = {path for path in sent if not any(other.startswith(f"{path}.") for other in sent)}
    assert leaves
    free = {path for path in leaves if not any(own in patched.own for own in prefixes(path))}
    assert free <= {"placementPolicy.policyName"}


@pytest.mark.parametrize("patched", [CLUSTERS, POOLS], ids=lambda patched: patched.words)
def test_every_field_that_is_refused_is_one_of_the_provider(patched: PatchedType) -> None:
    assert patched.own.keys() <= resource_fields()[patched.token].fields.keys()


def prefixes(path: str) -> list[str]:
    """A path, and all paths above it."""
    parts = path.split(".")
    return [".".join(parts[: index + 1]) for index in range(len(parts))]

"""The simulated Google Cloud does with every field what Google's provider does with it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pulumi.runtime.rpc import UNKNOWN

from berth.components.gke.field_rules import FieldPlace, refusals
from berth.components.gke.provider_fields import Field, resource_fields
from berth.lab.plugins.gcp.differences import with_kept
from berth.lab.plugins.gcp.errors import ProviderError
from berth.lab.plugins.gcp.kinds import Kind
from berth.lab.plugins.gcp.provider import TYPES
from tests.unit.cases import table
from tests.unit.components.gke.test_provider_fields import PART

from .conftest import CLUSTER, POOL, Simulated, cluster_inputs, pool_inputs


def values(fact: Field) -> tuple[Any, Any]:
    """Return two values of a field, of which neither is equal to none."""
    if fact.kind == "map":
        return {"k": "a"}, {"k": "b"}
    if fact.kind:
        return ["a"], ["b"]
    # EmptyOrDefaultStringSuppress(STANDARD): the value is equal to none.
    allowed = [value for value in fact.allowed if value and f"({value})" not in fact.suppress]
    if len(allowed) > 1:
        return allowed[0], allowed[1]
    return (True, False) if isinstance(fact.default, bool) else ("a", "b")


def inside(token: str, path: str, value: Any) -> dict[str, Any]:
    """Return inputs that have a value at a path; None leaves it out."""
    *way, last = path.split(".")
    result: dict[str, Any] = {} if value is None else {last: value}
    blocks = [".".join(way[: number + 1]) for number in range(len(way))]
    for name, block in zip(reversed(way), reversed(blocks), strict=True):
        result = {name: [result]} if resource_fields()[token].fields[block].kind else {name: result}
    return result


def found(token: str, path: str, old: Any, new: Any) -> set[bool]:
    """Whether each difference between two values of a field replaces the resource; empty without
    a difference.
    """
    states = (inside(token, path, old), inside(token, path, new))
    return {kind.replaces for kind in TYPES[token].differences(*states).values()}


def of(token: str, *, blocks: bool) -> Iterator[tuple[str, Field]]:
    """Paths and facts of a type's fields that are blocks, or that are none."""
    facts = resource_fields()[token]
    # The simulated GKE refuses pools inside a cluster's inputs, so that there are no facts about
    # their fields.
    # test_what_cannot_be_switched_off_replaces_the_cluster has the other fields.
    others = ("nodePools", "enableFqdnNetworkPolicy", "enableK8sBetaApis.enabledApis")
    known = ((path, fact) for path, fact in facts.fields.items() if path not in others)
    return ((path, fact) for path, fact in known if (path in facts.blocks) is blocks)


@pytest.mark.parametrize("token", resource_fields())
def test_another_value_replaces_or_changes_in_place(token: str) -> None:
    for path, fact in of(token, blocks=False):
        one, other = values(fact)
        # An encryption state is equal to the other one (DatabaseEncryptionSuppress).
        if fact.suppress != "DatabaseEncryptionSuppress":
            assert found(token, path, one, other) == {fact.replaces}, path
        assert found(token, path, one, one) == set(), path


@pytest.mark.parametrize("token", resource_fields())
def test_a_value_that_is_left_out_stays_or_goes(token: str) -> None:
    for path, fact in of(token, blocks=False):
        one = next(
            value for value in values(fact) if value != fact.default and (value or fact.default)
        )
        assert found(token, path, one, None) == (set() if fact.keeps else {fact.replaces}), path
        remaining = with_kept(
            inside(token, path, one), inside(token, path, None), resource_fields()[token]
        )
        assert (remaining == inside(token, path, one)) is (fact.keeps or fact.sticks), path


@pytest.mark.parametrize("token", resource_fields())
def test_a_block_that_comes_or_goes(token: str) -> None:
    for path, fact in of(token, blocks=True):
        if path == "networkConfig.additionalNodeNetworkConfigs":
            continue  # test_further_networks_that_are_left_out_replace_the_pool
        # A block that says `enabled: false`, or nothing, may go without a difference.
        on = "enablePrivateNodes" if path == "privateClusterConfig" else "enabled"
        fields = {on if fact.suppress else "made-up": True}
        block: Any = [fields] if fact.kind else fields
        assert found(token, path, None, block) == {fact.replaces}, path
        stays = fact.keeps and not is_in_set(token, path)
        assert found(token, path, block, None) == (set() if stays else {fact.replaces}), path


def is_in_set(token: str, path: str) -> bool:
    """Whether a set is around a field: its elements are known by their fields."""
    above = path.rpartition(".")[0]
    fields = resource_fields()[token].fields
    return bool(above) and (fields[above].kind == "set" or is_in_set(token, above))


@pytest.mark.parametrize("token", resource_fields())
def test_the_order_of_a_set_means_nothing(token: str) -> None:
    facts = resource_fields()[token]
    for path in (path for path, fact in facts.fields.items() if fact.kind == "set"):
        if path in facts.blocks:
            plain = (name for name in facts.blocks[path] if not facts.fields[f"{path}.{name}"].kind)
            name = next(name for name in plain if f"{path}.{name}" not in facts.blocks)
            one, other = ({name: value} for value in values(facts.fields[f"{path}.{name}"]))
        else:
            (one,), (other,) = values(facts.fields[path])
        assert found(token, path, [one, other], [other, one]) == set(), path
        assert found(token, path, [one, other], [other]) != set(), path


def refused(token: str, inputs: dict[str, Any]) -> str:
    return "; ".join(found.provider_text for found in refusals(inputs, resource_fields()[token]))


def bounds(fact: Field) -> str:
    """Return the provider's sentence about a number out of bounds."""
    if fact.most is None:
        return "to be at least"
    return "to be at most" if fact.least is None else "to be in the range"


@pytest.mark.parametrize("token", resource_fields())
def test_values_out_of_the_providers_lists_and_bounds_are_refused(token: str) -> None:
    for path, fact in resource_fields()[token].fields.items():
        at = terraform_path(token, path)
        wrong: dict[str, tuple[list[Any], list[Any]]] = {
            f"expected {at} to be one of": (
                ["SOMETHING-ELSE"] if fact.allowed else [],
                list(fact.allowed),
            ),
            f"expected {at}.0 to be one of": (
                [["SOMETHING-ELSE"]] if fact.elements else [],
                [list(fact.elements)],
            ),
            f"expected {at} {bounds(fact)}": (
                [value for value in (_less(fact.least), _more(fact.most)) if value is not None],
                [value for value in (fact.least, fact.most) if value is not None],
            ),
            f"Attribute {at} supports": (
                [["a"] * (fact.items + 1)] if fact.items else [],
                [["a"] * fact.items],
            ),
            f'The argument "{at}" is required': ([None] if fact.required else [], []),
        }
        for text, (bad, good) in wrong.items():
            assert all(text in refused(token, inside(token, path, value)) for value in bad), text
            assert not any(text in refused(token, inside(token, path, value)) for value in good), (
                text
            )


def _less(number: float | None) -> float | None:
    return None if number is None else number - 1


def _more(number: float | None) -> float | None:
    return None if number is None else number + 1


def terraform_path(token: str, path: str) -> str:
    """A path by Terraform's names, with the first element of each block around it."""
    *way, last = path.split(".")
    place = FieldPlace()
    for name in way:
        fact = resource_fields()[token].fields[f"{place.plain}.{name}".lstrip(".")]
        place = place.field(name, fact).element(0, fact)
    return place.field(last, resource_fields()[token].fields[path]).terraform


@pytest.mark.parametrize("token", resource_fields())
def test_fields_that_exclude_each_other(token: str) -> None:
    for path, fact in resource_fields()[token].fields.items():
        for other in fact.conflicts:
            inputs = _merged(inside(token, path, "x"), inside(token, other, "y"))
            names = (terraform_path(token, path), terraform_path(token, other))
            assert f'"{names[0]}": conflicts with {names[1]}' in refused(token, inputs)
            assert "conflicts with" not in refused(token, inside(token, path, "x"))


@pytest.mark.parametrize("token", resource_fields())
def test_fields_of_which_a_block_needs_one(token: str) -> None:
    for fact in resource_fields()[token].fields.values():
        for group in filter(None, (fact.some_of, fact.one_of)):
            block = group[0].rpartition(".")[0]
            empty = inside(token, block, {}) if block else {}
            for path in group:
                text = f'"{terraform_path(token, path)}": one of `'
                assert text in refused(token, empty)
                assert "must be specified" not in refused(token, inside(token, path, {"x": "y"}))


def _merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    both = one.keys() & other.keys()
    return (
        one
        | other
        | {key: _merged(one[key], other[key]) for key in both if isinstance(one[key], dict)}
    )


CODE = table(__file__, "code_rules.yaml")


@pytest.mark.parametrize("rules", CODE)
def test_every_rule_of_the_providers_code_is_known(rules: str) -> None:
    part = json.loads(PART.read_text(encoding="utf-8"))
    assert {line for lines in part["facts"][rules].values() for line in lines} == CODE[rules].keys()


def test_further_networks_that_are_left_out_replace_the_pool(simulated: Simulated) -> None:
    cluster = simulated.cluster()
    second = simulated.network("second")
    extra = [
        {"network": second, "subnetwork": simulated.subnetwork(second, "second", "10.9.0.0/24")}
    ]
    inputs = pool_inputs(
        cluster, networkConfig={"enablePrivateNodes": True, "additionalNodeNetworkConfigs": extra}
    )
    pool = simulated.create(POOL, **inputs)
    without = inputs | {"networkConfig": {"enablePrivateNodes": True}}
    found = simulated.diff(POOL, pool, **without)
    assert found["networkConfig.additionalNodeNetworkConfigs"] == Kind.DELETE_REPLACE


BETA = {"enabledApis": ["resource.k8s.io/v1beta1/deviceclasses"]}


@pytest.mark.parametrize(
    ("before", "after", "replaced"),
    [
        ({"enableL4IlbSubsetting": True}, {"enableL4IlbSubsetting": False}, True),
        ({"enableL4IlbSubsetting": True}, {}, False),
        ({"enableFqdnNetworkPolicy": True}, {}, True),
        ({"enableFqdnNetworkPolicy": False}, {}, False),
        ({"enableK8sBetaApis": BETA}, {}, True),
        ({}, {"enableK8sBetaApis": BETA}, False),
    ],
)
def test_what_cannot_be_switched_off_replaces_the_cluster(
    simulated: Simulated, before: dict[str, Any], after: dict[str, Any], replaced: bool
) -> None:
    network = simulated.network()
    inputs = cluster_inputs(network, simulated.subnetwork(network))
    cluster = simulated.create(CLUSTER, **inputs | before)
    kinds = simulated.diff(CLUSTER, cluster, **inputs | after).values()
    assert any(kind.replaces for kind in kinds) is replaced


@pytest.mark.parametrize("part", [UNKNOWN, {"additionalNodeNetworkConfigs": UNKNOWN}])
def test_an_unknown_list_of_networks_ends_the_comparison_of_a_pool(
    simulated: Simulated, part: Any
) -> None:
    inputs = pool_inputs(simulated.cluster())
    pool = simulated.create(POOL, **inputs)
    with pytest.raises(ProviderError, match="can't use ElementIterator on unknown value"):
        simulated.diff(POOL, pool, **inputs | {"networkConfig": part})

"""The simulated Google Cloud does with every field what Google's provider does with it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from berth.components.gke.provider_fields import CLUSTER, Field, resources
from berth.lab.plugins.gcp.differences import differences, with_kept
from berth.lab.plugins.gcp.field_rules import field_problems
from berth.lab.plugins.gcp.inputs import table
from berth.lab.plugins.provider import Kind, ProviderError
from tests.unit.components.registered import registrations
from tests.unit.components.test_provider_fields import PART

from .conftest import POOL, Simulated, cluster_inputs, pool_inputs

if TYPE_CHECKING:
    from collections.abc import Iterator

# Values of each type: one, and another one.
_VALUES = {"string": ("a", "b"), "boolean": (True, False), "integer": (3, 4), "number": (0.5, 0.75), "any": ("a", "b")}


def kind_of(token: str, path: str) -> Any:
    """The type of an input, as pulumi_gcp has it."""
    kind = table()[token]
    for name in path.split("."):
        kind = (kind[0] if isinstance(kind, list) else kind)[name]
    return kind


def values(fact: Field, kind: Any) -> tuple[Any, Any]:
    """Two values of a field."""
    if isinstance(kind, list):
        one, other = values(fact, kind[0])
        return [one], [other]
    if isinstance(kind, dict):
        return ({"k": "a"}, {"k": "b"}) if "*" in kind else ({"x": 1}, {"x": 2})
    if len(fact.allowed) > 1:
        return fact.allowed[0], fact.allowed[1]
    return _VALUES[kind]


def inside(token: str, path: str, value: Any) -> dict[str, Any]:
    """Inputs that have a value at a path; None leaves it out."""
    *way, last = path.split(".")
    result: dict[str, Any] = {} if value is None else {last: value}
    kinds = [".".join(way[: number + 1]) for number in range(len(way))]
    for name, at in zip(reversed(way), reversed(kinds), strict=True):
        result = {name: [result]} if isinstance(kind_of(token, at), list) else {name: result}
    return result


def found(token: str, path: str, old: Any, new: Any) -> set[bool]:
    """Whether each difference between two values of a field replaces the resource; empty without a difference."""
    facts = resources()[token]
    states = (inside(token, path, old), inside(token, path, new))
    return {kind.replaces for kind in differences(*states, facts).values()}


def of(token: str, *, blocks: bool) -> Iterator[tuple[str, Field]]:
    """Paths and facts of a type's fields that are blocks, or that are none."""
    facts = resources()[token]
    # The simulated GKE refuses pools inside a cluster's inputs, so that there are no facts about their fields.
    known = ((path, fact) for path, fact in facts.fields.items() if path != "nodePools")
    return ((path, fact) for path, fact in known if (path in facts.blocks) is blocks)


@pytest.mark.parametrize("token", resources())
def test_another_value_replaces_or_changes_in_place(token: str) -> None:
    for path, fact in of(token, blocks=False):
        one, other = values(fact, kind_of(token, path))
        assert found(token, path, one, other) == {fact.replaces}, path
        assert found(token, path, one, one) == set(), path


@pytest.mark.parametrize("token", resources())
def test_a_value_that_is_left_out_stays_or_goes(token: str) -> None:
    for path, fact in of(token, blocks=False):
        pair = values(fact, kind_of(token, path))
        one = next(value for value in pair if value not in (fact.default, fact.empty) and (value or fact.default))
        assert found(token, path, one, None) == (set() if fact.keeps else {fact.replaces}), path
        kept = with_kept(inside(token, path, one), inside(token, path, None), resources()[token])
        assert (kept == inside(token, path, one)) is (fact.keeps or fact.sticks), path


@pytest.mark.parametrize("token", resources())
def test_a_block_that_comes_or_goes(token: str) -> None:
    for path, fact in of(token, blocks=True):
        block: Any = [{}] if isinstance(kind_of(token, path), list) else {}
        assert found(token, path, None, block) == {fact.replaces}, path
        assert found(token, path, block, None) == (set() if fact.keeps else {fact.replaces}), path


@pytest.mark.parametrize("token", resources())
def test_the_order_of_a_set_means_nothing(token: str) -> None:
    facts = resources()[token]
    for path in (path for path, fact in facts.fields.items() if fact.kind == "set"):
        if path in facts.blocks:
            name = next(
                name for name in facts.blocks[path] if kind_of(token, f"{path}.{name}") in ("string", "integer")
            )
            one, other = ({name: value} for value in _VALUES[kind_of(token, f"{path}.{name}")])
        else:
            (one,), (other,) = values(facts.fields[path], kind_of(token, path))
        assert found(token, path, [one, other], [other, one]) == set(), path
        assert found(token, path, [one, other], [other]) != set(), path


def refused(token: str, inputs: dict[str, Any]) -> str:
    return "; ".join(f"{path}: {reason}" for path, reason in field_problems(inputs, resources()[token]))


@pytest.mark.parametrize("token", resources())
def test_values_out_of_the_providers_lists_and_bounds_are_refused(token: str) -> None:
    for path, fact in resources()[token].fields.items():
        at = _indexed(token, path)
        wrong: dict[str, tuple[list[Any], list[Any]]] = {
            f"expected {at} to be one of": (["SOMETHING-ELSE"] if fact.allowed else [], list(fact.allowed)),
            f"expected {at}[0] to be one of": ([["SOMETHING-ELSE"]] if fact.each else [], [list(fact.each)]),
            f"expected {at} to be at least": ([] if fact.least is None else [fact.least - 1], [fact.least]),
            f"expected {at} to be at most": ([] if fact.most is None else [fact.most + 1], [fact.most]),
            f"Attribute {at} supports": ([["a"] * (fact.items + 1)] if fact.items else [], [["a"] * fact.items]),
            f'The argument "{at}" is required': ([None] if fact.required else [], []),
        }
        for text, (bad, good) in wrong.items():
            assert all(text in refused(token, inside(token, path, value)) for value in bad), text
            assert not any(text in refused(token, inside(token, path, value)) for value in good), text


def _indexed(token: str, path: str) -> str:
    """A path with the index of the first element of each list."""
    *way, last = path.split(".")
    steps = [".".join(way[: number + 1]) for number in range(len(way))]
    names = [f"{at.rsplit('.', 1)[-1]}{'[0]' if isinstance(kind_of(token, at), list) else ''}" for at in steps]
    return ".".join([*names, last])


@pytest.mark.parametrize("token", resources())
def test_fields_that_exclude_each_other(token: str) -> None:
    for path, fact in resources()[token].fields.items():
        for other in fact.conflicts:
            inputs = _merged(inside(token, path, "x"), inside(token, other, "y"))
            assert f'"{path}": conflicts with {other}' in refused(token, inputs)
            assert "conflicts with" not in refused(token, inside(token, path, "x"))


def _merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    both = one.keys() & other.keys()
    return one | other | {key: _merged(one[key], other[key]) for key in both if isinstance(one[key], dict)}


def test_a_firewall_allows_or_denies() -> None:
    token = "gcp:compute/firewall:Firewall"  # noqa: S105 (a type token)
    rule = [{"protocol": "tcp"}]
    assert "one of `allows,denies` must be specified" in refused(token, {"name": "f", "network": "n"})
    assert "only one of `allows,denies`" in refused(
        token, {"name": "f", "network": "n", "allows": rule, "denies": rule}
    )
    assert refused(token, {"name": "f", "network": "n", "denies": rule}) == ""


def test_a_private_cluster_config_says_something() -> None:
    inputs = {"name": "c", "privateClusterConfig": {}}
    assert "one of `privateClusterConfig.enablePrivateEndpoint," in refused(CLUSTER, inputs)


# What the provider decides by code of its own, sentence by sentence of the facts; a new sentence needs a test.

CODE: dict[str, dict[str, str | None]] = {
    "customizeDiff": {
        "count=0 guest_accelerator blocks are dropped": None,
        "additional_node_network_configs is cleared with or without an accelerator profile": "further_networks",
        "enable_l4_ilb_subsetting true to false replaces": "switched_off",
        "enable_fqdn_network_policy true to false replaces": "switched_off",
        "taking a Kubernetes beta API out replaces": "switched_off",
        "node_version is refused with remove_default_node_pool on create, and unless equal to min_master_version": "versions",
        "skip_node_pool_refresh is refused with inline node_pool": "versions",
        "ip_cidr_range that does not contain the old one replaces": "test_provider",
        "secondary ranges are matched by name": "order_of_a_set",
        "ingress needs one of source_ranges, source_tags, source_service_accounts": "test_networks",
    },
    "createErrors": {
        "initial_node_count (not 0) with node_count (not 0)": "arguments",
        "name with name_prefix": "arguments",
        "max_surge or max_unavailable without SURGE": "arguments",
        "blue_green_settings without BLUE_GREEN": "arguments",
        "standard with autoscaled rollout policy": "arguments",
        "a pool that is there in status ERROR or RUNNING_WITH_ERROR is recorded and reported as failed": "test_supply",
        "node_locations with the cluster's own zone": "test_rules",
    },
}
"""Where each is tested; None for what berth never sends, and the lab does not play."""


@pytest.mark.parametrize("rules", CODE)
def test_every_rule_of_the_providers_code_is_known(rules: str) -> None:
    part = json.loads(PART.read_text(encoding="utf-8"))
    assert {line for lines in part[rules].values() for line in lines} == CODE[rules].keys()


@pytest.mark.parametrize(
    ("upgrade", "text"),
    [
        ({"strategy": "BLUE_GREEN", "maxSurge": 1}, "Surge upgrade settings may not be used"),
        ({"blueGreenSettings": {"nodePoolSoakDuration": "1s"}}, "Blue-green upgrade settings may not be used"),
        (
            {
                "strategy": "BLUE_GREEN",
                "blueGreenSettings": {
                    "standardRolloutPolicy": {"batchNodeCount": 1},
                    "autoscaledRolloutPolicy": {"waitForDrainDuration": "1s"},
                },
            },
            "cannot both be set",
        ),
    ],
)
def test_arguments_of_a_pool_that_the_provider_refuses_when_it_applies_them(
    simulated: Simulated, upgrade: dict[str, Any], text: str
) -> None:
    cluster = simulated.cluster()
    with pytest.raises(ProviderError, match=text):
        simulated.create(POOL, **pool_inputs(cluster, upgradeSettings=upgrade))
    pool = simulated.create(POOL, **pool_inputs(cluster))
    with pytest.raises(ProviderError, match=text):
        simulated.update(POOL, pool, **pool_inputs(cluster, upgradeSettings=upgrade))


def test_a_pool_has_one_number_of_nodes_and_one_name(simulated: Simulated) -> None:
    cluster = simulated.cluster()
    with pytest.raises(ProviderError, match="Cannot set both initial_node_count and node_count"):
        simulated.create(POOL, **pool_inputs(cluster, initialNodeCount=1))
    simulated.create(POOL, **pool_inputs(cluster, initialNodeCount=0))
    _, failures = simulated.check(POOL, **pool_inputs(cluster, name="other", namePrefix="o"))
    assert failures == [("namePrefix", "Cannot specify both name and name_prefix for a node_pool")]
    inputs, failures = simulated.check(POOL, **pool_inputs(cluster, name=None, namePrefix="o"))
    assert (inputs["name"][0], failures) == ("o", [])


def test_further_networks_that_are_left_out_replace_the_pool(simulated: Simulated) -> None:
    cluster = simulated.cluster()
    second = simulated.network("second")
    extra = [{"network": second, "subnetwork": simulated.subnetwork(second, "second", "10.9.0.0/24")}]
    inputs = pool_inputs(cluster, networkConfig={"enablePrivateNodes": True, "additionalNodeNetworkConfigs": extra})
    pool = simulated.create(POOL, **inputs)
    without = inputs | {"networkConfig": {"enablePrivateNodes": True}}
    assert simulated.diff(POOL, pool, **without).detailed == {
        "networkConfig.additionalNodeNetworkConfigs": Kind.DELETE_REPLACE
    }


def test_what_is_switched_off_replaces_the_cluster(simulated: Simulated) -> None:
    network = simulated.network()
    inputs = cluster_inputs(network, simulated.subnetwork(network))
    on = {
        "enableL4IlbSubsetting": True,
        "enableFqdnNetworkPolicy": True,
        "enableK8sBetaApis": {"enabledApis": ["a/v1beta1", "b/v1beta1"]},
    }
    off = {
        "enableL4IlbSubsetting": False,
        "enableFqdnNetworkPolicy": False,
        "enableK8sBetaApis": {"enabledApis": ["b/v1beta1"]},
    }
    cluster = simulated.create(CLUSTER, **inputs, **on)
    detailed = simulated.diff(CLUSTER, cluster, **inputs, **off).detailed
    assert {path for path, kind in detailed.items() if kind.replaces} == off.keys()
    cluster_as_it_is = simulated.diff(CLUSTER, cluster, **inputs, **on).detailed
    assert cluster_as_it_is == {}


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ({"nodeVersion": "1.35"}, "nodeVersion"),
        ({"nodeVersion": "1.35", "removeDefaultNodePool": None}, "nodeVersion"),
        ({"skipNodePoolRefresh": True, "nodePools": [{}]}, "skipNodePoolRefresh"),
    ],
)
def test_versions_and_pools_that_a_cluster_cannot_have(simulated: Simulated, more: dict[str, Any], path: str) -> None:
    _, failures = simulated.check(CLUSTER, **cluster_inputs("gpu", "gpu") | more)
    assert [where for where, _ in failures] == [path]


def test_the_provider_refuses_nothing_that_berth_registers() -> None:
    for each in registrations():
        assert refused(each.type, each.inputs) == "", each.name

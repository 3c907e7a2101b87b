from typing import Any

from berth.components.sharing import lines_of_configs, lines_of_labels, node_labels
from tests.unit.components.operators.test_gpu_operator import TIME_SLICING, fleet

MIG: dict[str, Any] = {"kind": "mig", "strategy": "single", "profile": "1g.23gb"}


def plugin_config(profile: dict[str, Any]) -> dict[str, Any]:
    return dict(fleet({"sharing": "any"}, profile)[1].values()["devicePlugin"]["config"])


def test_other_replicas_disturb_the_pools_that_use_the_profile_and_name_who_is_there() -> None:
    pools = fleet({"sharing": "any"})[0].pools
    old = plugin_config(TIME_SLICING)
    new = plugin_config(TIME_SLICING | {"replicas": 2})
    (line,) = lines_of_configs(old, new, pools, {"dev": ["bob", "carol"]})
    assert line.startswith(
        "pool dev: sharing profile 'any' changes; the device plugin restarts on its nodes; running"
        " pods keep"
    )
    assert line.endswith("(on them: bob, carol, and what engineers' own stacks have there)")


def test_an_unchanged_profile_disturbs_nobody() -> None:
    pools = fleet({"sharing": "any"})[0].pools
    assert (
        lines_of_configs(plugin_config(TIME_SLICING), plugin_config(TIME_SLICING), pools, {}) == []
    )


def test_another_mig_layout_stops_pods() -> None:
    old = node_labels(fleet({"sharing": "any"}, MIG)[0].pools["dev"])
    new = node_labels(fleet({"sharing": "any"}, MIG | {"profile": "3g.90gb"})[0].pools["dev"])
    (line,) = lines_of_labels("dev", old, new, ["bob"])
    assert line.startswith("pool dev: the MIG layout changes from all-1g.23gb to all-3g.90gb;")
    assert "the MIG manager stops every pod with a GPU" in line


def test_a_pool_that_leaves_gkes_plugin_is_named() -> None:
    new = node_labels(fleet({"sharing": "any"})[0].pools["dev"])
    (line,) = lines_of_labels("dev", {}, new, [])
    assert "the sharing profile changes from GKE's own device plugin to any" in line
    assert "no berth of this stack is on them" in line
    assert lines_of_labels("dev", new, new, []) == []

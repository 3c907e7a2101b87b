"""Plans from the engine's events."""

from typing import Any

import pytest

from berth.components.core.plain_secrets import SECRET
from berth.components.plan.paths import MISSING, below, differing, revealed, value_at
from berth.components.plan.plan import Property, plan_of
from tests.unit.components.plan.plans import CLUSTER, POOL, edited, event, pool, same
from tests.unit.components.plan.recordings import recorded

SECRET_VALUE = {
    "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270",
    "ciphertext": "AAABAG",
}
DRIVER = "nodeConfig.guestAccelerators[0].gpuDriverInstallationConfig.gpuDriverVersion"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.b", 1),
        ("labels.nvidia.com/mig.config", "all-1g.23gb"),
        ('labels["nvidia.com/mig.config"]', "all-1g.23gb"),
        ("list[1].x", 3),
        ("list[2]", MISSING),
        ("a.c", MISSING),
        ("a.b.c", MISSING),
    ],
)
def test_a_path_leads_to_its_value(path: str, expected: Any) -> None:
    value = {
        "a": {"b": 1},
        "labels": {"nvidia.com/mig.config": "all-1g.23gb", "nvidia": {}},
        "list": [{"x": 2}, {"x": 3}],
    }
    assert value_at(value, path) == expected


def test_a_path_is_below_another_whatever_its_indices() -> None:
    assert below("spec.workerGroupSpecs[0].replicas", "spec.workerGroupSpecs.replicas")
    assert below('nodeConfig.labels["a.b/c"]', "nodeConfig.labels")
    assert not below("nodeConfig.labelsToo", "nodeConfig.labels")


def test_differences_are_found_as_deep_as_they_are() -> None:
    old = {"a": 1, "b": {"x": [1, 2]}, "gone": True}
    new = {"a": 1, "b": {"x": [1, 3]}, "new.key": True}
    assert differing(old, new) == ["b.x[1]", "gone", '["new.key"]']


def test_secrets_and_what_is_not_known_yet_are_masked() -> None:
    unknown = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
    assert revealed({"a": SECRET_VALUE, "b": [unknown], "__defaults": []}) == {
        "a": SECRET,
        "b": ["(known later)"],
    }


def test_a_kubernetes_secret_is_masked_even_where_the_engine_shows_it() -> None:
    old = {"metadata": {"name": "token"}, "data": {"token": "aHVudGVyMg=="}}
    detailed = {"data.token": {"diffKind": "update-replace"}}
    step = event(
        "replace",
        "kubernetes:core/v1:Secret",
        "token",
        old,
        old | {"data": {"token": "bmV3"}},
        detailedDiff=detailed,
    )
    plan = plan_of([step])
    assert "aHVudGVyMg" not in repr(plan)
    (change,) = plan.changes
    assert change.properties == [
        Property("data.token", "update", SECRET, SECRET, forces_replacement=True)
    ]


def test_a_secret_value_that_changes_is_told_without_its_values() -> None:
    old = {"values": {"password": SECRET_VALUE}}
    detailed = {"values.password": {"diffKind": "update"}}
    step = event("update", "kubernetes:helm.sh/v3:Release", "x", old, old, detailedDiff=detailed)
    (change,) = plan_of([step]).changes
    assert change.properties == [Property("values.password", "update", SECRET, SECRET)]


def test_a_replacement_is_one_step_with_the_property_that_forces_it() -> None:
    plan = plan_of(recorded("driver"))
    (change,) = plan.changes
    assert (change.operation, change.type, change.name, change.deleted_first) == (
        "replace",
        POOL,
        "train",
        True,
    )
    assert change.properties == [
        Property(DRIVER, "update", "DEFAULT", "LATEST", forces_replacement=True)
    ]


def test_components_and_providers_are_no_changes() -> None:
    plan = plan_of(recorded("engineer-removed"))
    assert sorted(step.type for step in plan.changes) == [
        "kubernetes:core/v1:Namespace",
        "kubernetes:ray.io/v1:RayCluster",
    ]
    assert all(step.custom for step in plan.changes)


def test_what_was_so_before_is_no_change() -> None:
    """The value is written now, and was the default."""
    old = pool()
    new = pool(diskType="hyperdisk-balanced")
    diff = {"nodeConfig.diskType": {"diffKind": "add"}}
    step = event("update", POOL, "train", old, new, old_outputs=new, detailedDiff=diff)
    (change,) = plan_of([step]).changes
    assert change.properties == []


def test_elements_of_a_list_come_and_go_by_themselves() -> None:
    old = pool() | {"nodeLocations": ["b", "c"]}
    new = pool() | {"nodeLocations": ["a", "b"]}
    diff = {"nodeLocations[0]": {"diffKind": "add"}, "nodeLocations[1]": {"diffKind": "delete"}}
    (change,) = plan_of([event("update", POOL, "train", old, new, detailedDiff=diff)]).changes
    assert change.properties == [
        Property("nodeLocations[0]", "add", None, "a"),
        Property("nodeLocations[1]", "delete", "c", None),
    ]


def test_fields_of_the_bridge_are_not_shown_and_pass_their_reason_on() -> None:
    inputs = {"ipCidrRange": "10.0.0.0/20"}
    diff = {
        "__meta": {"diffKind": "update-replace"},
        "ipCidrRange": {"diffKind": "update"},
        'pulumiLabels["a-b"]': {"diffKind": "add"},
    }
    kind = "gcp:compute/subnetwork:Subnetwork"
    new = {"ipCidrRange": "10.1.0.0/20"}
    step = event("replace", kind, "x", inputs, new, keys=["__meta"], detailedDiff=diff)
    (change,) = plan_of([step]).changes
    assert change.properties == [
        Property("ipCidrRange", "update", "10.0.0.0/20", "10.1.0.0/20", forces_replacement=True)
    ]


def test_nothing_that_comes_is_no_change() -> None:
    diff = {"nodeConfig.resourceManagerTags": {"diffKind": "add"}}
    (change,) = plan_of([event("update", POOL, "x", pool(), pool(), detailedDiff=diff)]).changes
    assert change.properties == []


def test_without_details_the_inputs_tell_what_changes() -> None:
    old = pool()
    (change,) = plan_of(
        [event("update", POOL, "train", old, edited(old, nodeConfig__machineType="a3-ultragpu-8g"))]
    ).changes
    assert change.properties == [
        Property("nodeConfig.machineType", "update", "a4-highgpu-8g", "a3-ultragpu-8g")
    ]


def test_of_a_mapping_the_parts_that_differ_are_told() -> None:
    old = {"management": {"autoRepair": True, "autoUpgrade": True}}
    new = {"management": {"autoRepair": False, "autoUpgrade": True}}
    (change,) = plan_of(
        [
            event(
                "update",
                CLUSTER,
                "x",
                old,
                new,
                detailedDiff={"management": {"diffKind": "update"}},
            )
        ]
    ).changes
    assert change.properties == [Property("management.autoRepair", "update", old=True, new=False)]


def test_what_a_killed_update_left_to_be_deleted_is_a_deletion() -> None:
    plan = plan_of([event("delete-replaced", POOL, "train", pool(), None)])
    assert [step.operation for step in plan.changes] == ["delete"]


def test_what_a_killed_update_had_deleted_is_made() -> None:
    plan = plan_of([event("create-replacement", POOL, "train", pool(), pool())])
    assert [step.operation for step in plan.changes] == ["create"]


def test_reads_change_nothing() -> None:
    plan = plan_of(
        [
            event("read", "pulumi:pulumi:StackReference", "prod", None, {}),
            same(POOL, "train", pool()),
        ]
    )
    assert (plan.changes, plan.unchanged) == ([], 1)


def test_a_refresh_tells_what_changed_and_what_is_gone() -> None:
    plan = plan_of(recorded("refresh"))
    assert sorted(
        (step.operation, step.type.rsplit(":", 1)[-1], step.name) for step in plan.drift
    ) == [
        ("delete", "RayCluster", "carol"),
        ("delete", "ResourceQuota", "gpu-operator"),
        ("update", "RayCluster", "bob"),
    ]
    assert sorted(step.operation for step in plan.changes) == ["create", "create", "update"]


def test_warnings_are_told_once() -> None:
    warning = {"diagnosticEvent": {"severity": "warning", "message": "careful\n"}}
    assert plan_of([warning, warning]).warnings == ["careful"]

from typing import Any

import pytest

from berth.components.cluster.nodes import untolerated_taint
from berth.lab.devices.scheduling import amounts, requests, selected

GPU = "nvidia.com/gpu"
TAINT = {"key": GPU, "value": "present", "effect": "NoSchedule"}


def affinity(**expression: Any) -> dict[str, Any]:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, True),
        ({"nodeSelector": {"kind": "flex"}}, True),
        ({"nodeSelector": {"kind": "other"}}, False),
        (affinity(key="kind", operator="In", values=["flex"]), True),
        (affinity(key="kind", operator="NotIn", values=["flex"]), False),
        (affinity(key="other", operator="Exists"), False),
        (affinity(key="other", operator="DoesNotExist"), True),
        (affinity(key="count", operator="Gt", values=["4"]), True),
        (affinity(key="count", operator="Lt", values=["4"]), False),
        (affinity(key="kind", operator="Gt", values=["4"]), False),
    ],
)
def test_labels_of_a_node_meet_selector_and_affinity(
    spec: dict[str, Any], *, expected: bool
) -> None:
    assert selected(spec, {"kind": "flex", "count": "8"}) is expected


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        ([], TAINT),
        ([{"operator": "Exists"}], None),
        ([{"key": GPU, "value": "other"}], TAINT),
        ([{"key": GPU, "value": "present"}], None),
        ([{"key": GPU, "operator": "Exists", "effect": "NoExecute"}], TAINT),
    ],
)
def test_tolerations_are_compared_as_the_scheduler_does(
    tolerations: list[Any], expected: Any
) -> None:
    soft = {"key": "soft", "effect": "PreferNoSchedule"}
    assert untolerated_taint([soft, TAINT], tolerations) == expected


def test_a_pod_takes_its_containers_and_the_largest_init_container() -> None:
    large = {"resources": {"requests": {"cpu": "4", "memory": "1Gi"}}}
    small = {"resources": {"requests": {"cpu": "500m", GPU: 8}}}
    found = requests(
        {"containers": [small], "initContainers": [large, large], "overhead": {"cpu": "1"}}
    )
    assert found == amounts({"cpu": "5", "memory": "1Gi", GPU: "8", "pods": "1"})

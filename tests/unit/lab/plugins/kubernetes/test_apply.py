"""Owners of fields that the stand-in takes over, and its words for conflicts."""

from __future__ import annotations

from typing import Any

from berth.components.cluster.api import ConflictError
from berth.lab.plugins.kubernetes.apply import explain, hand_over_patch

MINE = "pulumi-kubernetes-12345678"


def entry(manager: str, operation: str, fields: dict[str, Any], **more: str) -> dict[str, Any]:
    return {"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsV1": fields, **more}


def live(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": "7", "managedFields": list(entries)}}


def test_what_creation_and_kubectl_own_is_taken_over() -> None:
    operator = entry("kuberay-operator", "Update", {"f:spec": {"f:x": {}}})
    status = entry("kubectl-patch", "Update", {"f:status": {}}, subresource="status")
    patch = hand_over_patch(
        live(
            entry(MINE, "Apply", {"f:spec": {"f:a": {}}}),
            entry("pulumi-kubernetes", "Update", {"f:spec": {"f:b": {"f:c": {}}}}),
            operator,
            status,
            entry("kubectl-label", "Update", {"f:metadata": {}}),
        ),
        MINE,
    )
    assert [step["path"] for step in patch] == ["/metadata/managedFields", "/metadata/resourceVersion"]
    assert patch[1]["value"] == "7"
    *remaining, own = patch[0]["value"]
    assert remaining == [operator, status]
    assert (own["manager"], own["operation"]) == (MINE, "Apply")
    assert own["fieldsV1"] == {"f:spec": {"f:a": {}, "f:b": {"f:c": {}}}, "f:metadata": {}}


def test_nothing_to_take_over_is_no_request() -> None:
    others = entry("pulumi-kubernetes-87654321", "Apply", {"f:spec": {}})
    assert hand_over_patch(live(entry(MINE, "Apply", {}), others), MINE) == []


def test_a_changed_object_is_not_a_field_conflict() -> None:
    message = "the object has been modified; please apply your changes to the latest version and try again"
    assert explain(ConflictError(409, {"reason": "Conflict", "message": message}), MINE) == message

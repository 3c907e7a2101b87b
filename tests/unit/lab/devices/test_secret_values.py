"""Pods that name Secrets: the kubelet's words for one that is missing."""

from __future__ import annotations

from typing import Any

import pytest

from berth.lab.devices.kubelet import UNSET, Hold, status_change
from berth.lab.devices.secret_values import hold_of

VARIABLES: list[dict[str, Any]] = [
    {"name": "LOG", "value": "1"},
    {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}},
    {"name": "MAYBE", "valueFrom": {"secretKeyRef": {"name": "none", "key": "none", "optional": True}}},
]
POD: dict[str, Any] = {
    "metadata": {"name": "p", "namespace": "n"},
    "spec": {"containers": [{"name": "main", "image": "i", "env": VARIABLES}]},
    "status": {"podIP": "10.0.0.1"},
}


@pytest.mark.parametrize(
    ("secrets", "hold"),
    [
        ({}, Hold("main", UNSET, 'secret "hf" not found')),
        ({"hf": {"data": {"other": ""}}}, Hold("main", UNSET, "couldn't find key token in Secret n/hf")),
        ({"hf": {"data": {"token": ""}}}, None),
    ],
)
def test_a_pod_waits_for_the_secret_that_it_names(secrets: dict[str, Any], hold: Hold | None) -> None:
    assert hold_of(POD, secrets) == hold


def test_a_pod_that_waits_for_a_secret_is_pending() -> None:
    status = status_change(POD, Hold("main", UNSET, "m"), "now")["status"]
    assert status["phase"] == "Pending"
    assert status["containerStatuses"][0]["state"]["waiting"]["reason"] == "CreateContainerConfigError"

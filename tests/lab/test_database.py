"""Emptied database of a lab: its servers see an empty cluster, and go on with their work."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.lab.conftest import Lab
from tests.lab.project import eventually

pytestmark = pytest.mark.lab

LABELS = {"app": "left"}
POD = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "main", "image": "none"}]}}
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
OBJECTS: list[dict[str, Any]] = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "left"}},
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "left", "finalizers": ["berth.test/never"]}},
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "left", "namespace": "left"},
        "spec": {"replicas": 3, "selector": {"matchLabels": LABELS}, "template": POD},
    },
]


def test_objects_of_a_file_are_gone_for_the_next_one(lab: Lab) -> None:
    def pods() -> int:
        return len(lab.get("pods", "-A")["items"])

    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": OBJECTS})
    for _ in range(2):
        lab.run(["kubectl", "apply", "--server-side", "-f", "-"], stdin=text)
        eventually(lambda: pods() == 3, "the Deployment has its pods")
        # The cluster makes it again, so it is no object of a file.
        lab.run(["kubectl", "delete", "configmap", "kube-root-ca.crt", "-n", "default"])
        lab.forget()
        names = {item["metadata"]["name"] for item in lab.get("namespaces")["items"]}
        assert (names, pods()) == ({"default", "kube-node-lease", "kube-public", "kube-system"}, 0)
        assert lab.run(["kubectl", "get", "configmap", "left"], check=False).returncode == 1
        eventually(lambda: "kube-root-ca.crt" in str(lab.get("configmaps")), "the cluster's own objects are there")


def test_every_deletion_has_a_version_of_its_own(lab: Lab) -> None:
    """A watch that breaks goes on after the version of its last event: it never sees the rest.

    The controller manager then counted pods of an earlier file against the next one's quotas.
    """
    names = {f"left-{number}" for number in range(5)}
    objects = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} for name in names]
    lab.run(["kubectl", "apply", "-f", "-"], stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    asked = ["kubectl", "get", "--raw"]
    before = json.loads(lab.run([*asked, CONFIG_MAPS]).stdout)["metadata"]["resourceVersion"]
    lab.forget()
    shown = lab.run([*asked, f"{CONFIG_MAPS}?watch=true&resourceVersion={before}&timeoutSeconds=1"]).stdout
    events = [json.loads(line) for line in shown.splitlines()]
    deleted = [item["object"]["metadata"] for item in events if item["type"] == "DELETED"]
    versions = {item["name"]: item["resourceVersion"] for item in deleted if item["name"] in names}
    assert set(versions) == names
    assert len(set(versions.values())) == len(names)

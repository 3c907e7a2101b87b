"""Owners of berths by their namespaces, whatever labels the objects in them carry."""

from typing import Any

from berth.components.cluster.api import NAMESPACES, RAY_CLUSTERS
from berth.components.cluster.owned import Owner, owner_of_namespace, owners_of, ray_clusters_of
from tests.unit.recorded_cluster import RecordedCluster

ENV = "berth/environment"
STACK = "berth/stack"
ENGINEER = "berth/engineer"


def labeled(name: str, namespace: str = "", **labels: str) -> dict[str, Any]:
    keys = {f"berth/{key}": value for key, value in labels.items()}
    return {
        "metadata": {"name": name, "labels": keys | {"app": "x"}}
        | ({"namespace": namespace} if namespace else {})
    }


NAMESPACE_OF_ALICE = labeled("berth-alice", environment="env", stack="env", engineer="alice")
NAMESPACE_OF_BOB = labeled("berth-bob", environment="other", stack="bob", engineer="bob")


# Two berths, whose RayClusters say that they are each other's.
API = RecordedCluster(
    {
        NAMESPACES: [
            NAMESPACE_OF_ALICE,
            NAMESPACE_OF_BOB,
            labeled("berth-keeper", environment="env"),
        ],
        RAY_CLUSTERS: [
            labeled("a-job", "berth-alice", engineer="alice"),
            labeled("alice", "berth-alice", engineer="bob"),
        ],
    }
)
SPOOFED = [
    labeled("alice", "berth-alice", environment="other", stack="bob", engineer="bob"),
    labeled("bob", "berth-bob", environment="env", stack="env", cluster="train"),
    labeled("stray", "default", environment="env", stack="env", engineer="alice"),
]


def test_labels_of_the_namespace_replace_those_of_the_object() -> None:
    owners = owners_of(API)
    found = [item["metadata"]["labels"] for item in owners.labeled(SPOOFED)]
    assert found == [
        {"app": "x", ENV: "env", STACK: "env", ENGINEER: "alice"},
        {"app": "x", ENV: "other", STACK: "bob", ENGINEER: "bob"},
        {"app": "x"},
    ]
    assert SPOOFED[0]["metadata"]["labels"][ENGINEER] == "bob", "the objects themselves stay"


def test_an_environment_and_a_stack_have_the_objects_of_their_namespaces() -> None:
    owners = owners_of(API)
    names = {
        key: [item["metadata"]["name"] for item in some.owned_objects(SPOOFED)]
        for key, some in (
            ("environment env", owners.of_environment("env")),
            ("stack bob", owners.of_stack("bob")),
            ("stack nobody", owners.of_stack("nobody")),
        )
    }
    assert names == {"environment env": ["alice"], "stack bob": ["bob"], "stack nobody": []}


def test_a_namespace_of_another_name_is_no_berth() -> None:
    alice = Owner("engineer", "alice", "env", "env")
    assert owner_of_namespace(NAMESPACE_OF_ALICE) == alice
    assert (
        owner_of_namespace(labeled("default", environment="env", stack="env", engineer="alice"))
        is None
    )


def test_the_berths_own_raycluster_comes_first() -> None:
    found = ray_clusters_of(API, Owner("engineer", "alice", "env", "env"))
    assert [(item["metadata"]["name"], item["metadata"]["labels"][ENGINEER]) for item in found] == [
        ("alice", "alice"),
        ("a-job", "alice"),
    ]

"""A stack's name becomes the cluster's or the berth's, where the settings give none."""

from __future__ import annotations

from typing import Any

import pytest

from berth.stacks.load.stack import SettingsError, load

POOLS: dict[str, Any] = {"cpu": {"machineType": "n2-standard-8", "nodes": 1}}
ENVIRONMENT: dict[str, Any] = {"project": "your-project", "zone": "us-central1-b", "pools": POOLS}


def lines(stack: str, **values: Any) -> list[str]:
    try:
        load(stack, values, None)
    except SettingsError as error:
        return error.lines
    return []


@pytest.mark.parametrize(
    ("stack", "settings", "expected"),
    [
        ("dev", ENVIRONMENT, []),
        ("Dev_1", ENVIRONMENT | {"cluster": {"name": "dev-1"}}, []),
        (
            "e" * 41,
            ENVIRONMENT,
            [
                (
                    f"environment.cluster.name: '{'e' * 41}' has 41 characters; GKE allows 40; it is "
                    "the stack's name: give another"
                    " one here"
                )
            ],
        ),
        (
            "dev",
            ENVIRONMENT | {"cluster": {"name": "e" * 41}},
            [f"environment.cluster.name: '{'e' * 41}' has 41 characters; GKE allows 40"],
        ),
        (
            "Dev_1",
            ENVIRONMENT,
            [
                (
                    "environment.cluster.name: 'Dev_1' is a name that Kubernetes would refuse: use "
                    "lowercase letters, digits and"
                    " '-', begin with a letter and end with a letter or digit, for example alice or "
                    "team-a; it is the stack's name:"
                    " give another one here"
                )
            ],
        ),
    ],
)
def test_of_an_environment(stack: str, settings: dict[str, Any], expected: list[str]) -> None:
    assert lines(stack, environment=settings) == expected


def test_of_a_berth() -> None:
    assert lines("alice", engineer={"environment": "dev"}) == []
    assert lines("Alice", engineer={"environment": "dev", "name": "alice"}) == []
    (line,) = lines("Alice.B", engineer={"environment": "dev"})
    assert line.startswith("engineer.name: 'Alice.B' is a name that Kubernetes would refuse")
    assert line.endswith("it is the stack's name: give another one here")

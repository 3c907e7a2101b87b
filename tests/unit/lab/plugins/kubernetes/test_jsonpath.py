from __future__ import annotations

from typing import Any

import pytest

from berth.lab.plugins.kubernetes.jsonpath import parse
from berth.lab.plugins.provider import ProviderError

ITEM: dict[str, Any] = {
    "metadata": {"labels": {"ray.io/cluster": "dev"}},
    "status": {
        "state": "ready",
        "replicas": 3,
        "done": True,
        "conditions": [{"type": "A", "status": "False"}, {"type": "Ready", "status": "True", "n": 2}],
        "nested": {"x": 1},
    },
}


@pytest.mark.parametrize(
    "text",
    [
        "{.status.state}=ready",
        "{ .status.state }=ready",
        "{$.status.state}=ready",
        "{.status.state}",
        "{.status.nested}",
        "{.status.replicas}=3",
        "{.status.done}=true",
        '{.status.conditions[?(@.type=="Ready")].status}=True',
        "{.status.conditions[?(@.type=='Ready')].status}=True",
        '{.status.conditions[?@.type=="Ready"].n}=2',
        "{.status.conditions[?(@.n)].type}=Ready",
        "{.status.conditions[?(@.type!='Ready')].type}=A",
        "{.status.conditions[1].status}=True",
        "{.status.conditions[-1].status}=True",
        "{.status.conditions[*].type}=A",
        '{.metadata.labels["ray.io/cluster"]}=dev',
        "{.metadata.labels['ray.io/cluster']}=dev",
    ],
)
def test_matches(text: str) -> None:
    assert parse(text).matches(ITEM) == (True, f"Found {parse(text)}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{.status.missing}=ready", "{.status.missing} selected nothing"),
        ("{.status.conditions[7].status}", "{.status.conditions[7].status} selected nothing"),
        ("{.status.state}=failed", 'Waiting for {.status.state}=failed (found "ready")'),
    ],
)
def test_does_not_match_and_says_why(text: str, message: str) -> None:
    assert parse(text).matches(ITEM) == (False, message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "wrapped in brackets"),
        (".status.state=ready", "wrapped in brackets"),
        ("{.status.state}=", "requires a value"),
        ("{.a}=b=c", "format should be"),
        ("'{.a}'=b", "omit shell quotes"),
        ("{.a[}=b", "cannot read"),
        ("{.a..b}=c", "cannot read"),
    ],
)
def test_what_cannot_be_read_is_refused(text: str, message: str) -> None:
    with pytest.raises(ProviderError, match=message):
        parse(text)


def test_a_mapping_is_never_a_text() -> None:
    with pytest.raises(ProviderError, match="non-primitive"):
        parse("{.status.nested}=1").matches(ITEM)

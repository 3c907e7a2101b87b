"""Events of the engine that are taken in: few of resources that stay as they are."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from berth.cli import engine

BEFORE, AFTER = "resourcePreEvent", "resOutputsEvent"


def event(kind: str, operation: str) -> Any:
    metadata = {"op": operation, "urn": "urn:pulumi:env::berth::a:b:C::d", "type": "a:b:C", "old": {"type": "a:b:C"}}
    text = json.dumps({"sequence": 7, "timestamp": 1795599997, kind: {"metadata": metadata}}, separators=(",", ":"))
    return SimpleNamespace(event=text)


@pytest.mark.parametrize(
    ("command", "unread"),
    [("preview", {AFTER}), ("preview-destroy", {AFTER}), ("up", {BEFORE, AFTER}), ("destroy", {BEFORE, AFTER})],
)
def test_events_of_unchanged_resources_are_not_read_where_nothing_needs_them(command: str, unread: set[str]) -> None:
    seen: list[tuple[str, str]] = []

    def see(found: Any) -> None:
        kind = BEFORE if found.resource_pre_event else AFTER
        seen.append((kind, (found.resource_pre_event or found.res_outputs_event).metadata.op.value))

    every = [(kind, operation) for operation in ("same", "create", "refresh") for kind in (BEFORE, AFTER)]
    engine.Events(see, command).StreamEvents((event(*found) for found in every), None)
    assert seen == [(kind, operation) for kind, operation in every if operation != "same" or kind not in unread]

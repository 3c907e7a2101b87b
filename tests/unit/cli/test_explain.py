"""`berth explain`."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from berth.cli.check import schema
from berth.cli.explain import everything, find, roots
from berth.cli.main import app
from berth.components.core.errors import BadInputError

SCHEMA = schema()


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("pools.capacity", "environment.pools.NAME.capacity"),
        ("environment.pools.train.capacity.kind", "environment.pools.NAME.capacity.kind"),
        ("engineers.alice.worker.gpus", "environment.engineers.ENGINEER.worker.gpus"),
        ("engineer.workers", "engineer.workers"),
        ("pools.taints.key", "environment.pools.NAME.taints[].key"),
        ("", "environment"),
    ],
)
def test_a_path_finds_its_setting(path: str, found: str) -> None:
    assert find(SCHEMA, path).path == found


@pytest.mark.parametrize(("path", "near"), [("pools.capasity", "capacity"), ("polls", "pools")])
def test_a_misspelled_path_is_refused_with_the_nearest_name(path: str, near: str) -> None:
    with pytest.raises(BadInputError, match=f"did you mean '{near}'"):
        find(SCHEMA, path)


def test_the_verb_shows_type_default_and_description() -> None:
    shown = CliRunner().invoke(app, ["explain", "pools.diskSizeGb"]).stdout
    assert "environment.pools.NAME.diskSizeGb  integer" in shown
    assert "default: 200" in shown
    assert json.loads(CliRunner().invoke(app, ["explain", "pools.diskSizeGb", "--json"]).stdout)["default"] == 200


def test_every_setting_has_a_description() -> None:
    missing = [
        setting.path
        for root in roots(SCHEMA)
        for setting in everything(root)
        # Entries of mappings and lists have the description of the setting that holds them.
        if not setting.description and not setting.name.isupper() and not setting.path.endswith("[]")
    ]
    assert missing == []

"""Shipped environments have pools that GKE's cluster autoscaler always grows."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from berth.components.sharing import scaling
from berth.lab.home import CLONE
from berth.stacks.load.stack import load
from berth.stacks.settings.environment import EnvironmentSettings

SHIPPED = sorted([*(CLONE / "stacks").glob("Pulumi.*.yaml"), *(CLONE / "stacks" / "gallery").glob("Pulumi.*.yaml")])


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.name)
def test_shipped_environments_have_pools_that_scale(file: Path) -> None:
    config = yaml.safe_load(file.read_text(encoding="utf-8"))["config"]
    if "berth:environment" not in config:
        pytest.skip("the stack of an engineer has no pools")
    settings = load("shipped", {"environment": config["berth:environment"]}, None).settings
    assert isinstance(settings, EnvironmentSettings)
    assert [*scaling.problems(settings), *scaling.warnings(settings)] == []

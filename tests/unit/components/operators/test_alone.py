"""Operators in a Pulumi program that is not berth's: the one of docs/advanced.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pulumi
import pytest

from tests.unit.recording import run

PAGE = Path(__file__).resolve().parents[4] / "docs" / "advanced.md"


def test_the_pages_program_installs_three_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    programs = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    (program,) = [text for text in programs if "components.operators" in text]
    monkeypatch.setattr(pulumi.Config, "require_secret", lambda _self, _key: pulumi.Output.secret("kubeconfig"))

    async def body() -> None:
        exec(compile(program, str(PAGE), "exec"), {})  # noqa: S102 - the page's own program

    recorded = run(body, "alone")
    releases: dict[str, Any] = {found.name: found.inputs for found in recorded.of_type("kubernetes:helm.sh/v3:Release")}
    assert set(releases) == {"gpu-operator", "kuberay-operator"}
    entries = releases["gpu-operator"]["values"]["devicePlugin"]["config"]["data"]
    assert "replicas: 4" in entries["any"]
    assert "nvidia-driver-installer" in [found.name for found in recorded.of_type("kubernetes:apps/v1:DaemonSet")]

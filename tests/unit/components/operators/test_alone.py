"""Operators in a Pulumi program that is not berth's: docs/programs/operators.py."""

from pathlib import Path
from typing import Any

import pulumi
import pytest

from tests.unit.recording import run

PROGRAM = Path(__file__).resolve().parents[4] / "docs/programs/operators.py"


def test_the_program_installs_three_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    program = PROGRAM.read_text(encoding="utf-8")
    monkeypatch.setattr(
        pulumi.Config, "require_secret", lambda _self, _key: pulumi.Output.secret("kubeconfig")
    )

    async def body() -> None:
        exec(compile(program, str(PROGRAM), "exec"), {})  # noqa: S102 - the page names it

    recorded = run(body, "alone")
    releases: dict[str, Any] = {
        found.name: found.inputs for found in recorded.of_type("kubernetes:helm.sh/v3:Release")
    }
    assert set(releases) == {"gpu-operator", "kuberay-operator"}
    entries = releases["gpu-operator"]["values"]["devicePlugin"]["config"]["data"]
    assert "replicas: 4" in entries["any"]
    assert "nvidia-driver-installer" in [
        found.name for found in recorded.of_type("kubernetes:apps/v1:DaemonSet")
    ]

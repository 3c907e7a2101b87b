"""Values derived from settings: a check and Pulumi's program derive each of them once."""

from collections import Counter
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import yaml

from berth.cli.repository.check import check_stack
from berth.components.berth import manifests
from berth.lab.home import CLONE
from berth.stacks.load import stack
from berth.stacks.program.environment import register_environment
from berth.stacks.settings import resolve
from tests.unit.loaded import environment_of
from tests.unit.recording import run

PROD = (CLONE / "stacks/Pulumi.prod.yaml").read_text(encoding="utf-8")
SETTINGS = yaml.safe_load(PROD)["config"]["berth:environment"]
OWNERS = len(SETTINGS["engineers"]) + len(SETTINGS["clusters"])

DERIVES: tuple[tuple[ModuleType, str, int], ...] = (
    (stack, "resolve_environment", 1),
    (stack, "judge_environment", 1),
    (resolve, "place_cluster", OWNERS),
    (manifests, "berth_manifests", OWNERS),
)
"""Functions that derive something, with the number of their calls."""


def check() -> None:
    assert check_stack("prod", PROD).lines == []


def program() -> None:
    run(lambda: register_environment(environment_of("prod", SETTINGS)), "prod")


@pytest.mark.parametrize("derive", [check, program], ids=["check", "program"])
def test_a_stack_is_resolved_judged_and_made_into_manifests_once(
    derive: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Counter[str]()
    for module, name, _ in DERIVES:
        monkeypatch.setattr(module, name, counted(calls, name, getattr(module, name)))
    derive()
    assert calls == {name: count for _, name, count in DERIVES}


def counted(calls: Counter[str], name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, whose calls are counted by name."""

    def counting(*arguments: Any, **named: Any) -> Any:
        calls[name] += 1
        return function(*arguments, **named)

    return counting

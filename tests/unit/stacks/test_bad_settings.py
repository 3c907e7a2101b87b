"""Bad settings of a whole file: its kind, its lines, and what is no config at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from berth.stacks.files import stack_file
from berth.stacks.load.stack import SettingsError, load
from tests.unit.loaded import environment_values, places_of_problems

GOOD: dict[str, Any] = environment_values(dev={"machineType": "a4-highgpu-8g", "nodes": 4})


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, "the stack sets neither berth:environment nor berth:engineer; it must set one of them"),
        (
            {"environment": GOOD, "engineer": {"environment": "lab"}},
            "the stack sets both berth:environment and berth:engineer; it must set one of them",
        ),
        ({"enviroment": GOOD}, "unknown key 'berth:enviroment'; did you mean 'environment'?"),
    ],
)
def test_a_stack_is_one_kind(values: dict[str, Any], expected: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load("test", values, None)
    assert any(expected in line for line in caught.value.lines), caught.value.lines


def test_all_problems_come_at_once_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "Pulumi.test.yaml"
    text = """\
config:
  berth:environment:
    project: berth-lab
    zone: nowhere
    pools:
      cpu: {machineType: n2-standard-16, nodes: 1}
      dev:
        machineType: a4-highgpu-8g
        nodez: 4
    engineers:
      alice:
        worker:
          pool: ddev
          gpus: many
"""
    assert places_of_problems(path, text, "test") == [
        ("4", "environment.zone"),
        ("7", "environment.pools.dev.nodes"),
        ("9", "environment.pools.dev.nodez"),
        ("13", "environment.engineers.alice.worker.pool"),
        ("14", "environment.engineers.alice.worker.gpus"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("config:\n  berth:environment: {\n", ":3: "),
        ("config:\n  a: 1\n  a: 2\n", ":3: found duplicate key"),
        ("hello", "has no `config:`"),
        ("", "has no `config:`"),
    ],
)
def test_a_file_that_is_no_config(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "Pulumi.test.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(stack_file.StackFileError) as caught:
        stack_file.read(path)
    assert expected in str(caught.value)
    assert str(path) in str(caught.value)

"""Bad settings of a whole file: its kind, what is no config, and the environment it is held to."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.cli.repository.check import check_stack
from berth.stacks.files import stack_file
from berth.stacks.load.stack import SettingsError, load
from tests.unit.loaded import environment_values

GOOD: dict[str, Any] = environment_values(dev={"machineType": "a4-highgpu-8g", "nodes": 4})


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (
            {},
            "the stack sets neither berth:environment nor berth:engineer; it must set one of them",
        ),
        (
            {"environment": GOOD, "engineer": {"environment": "lab"}},
            "the stack sets both berth:environment and berth:engineer; it must set one of them",
        ),
        ({"environment": None}, "environment.project: is required"),
        ({"enviroment": GOOD}, "unknown key 'berth:enviroment'; did you mean 'environment'?"),
    ],
)
def test_a_stack_is_one_kind(values: dict[str, Any], expected: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load("test", values, None)
    assert any(expected in line for line in caught.value.lines), caught.value.lines


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("config:\n  berth:environment: {\n", ":3: "),
        ("config:\n  a: 1\n  a: 2\n", ":3: found duplicate key"),
        (
            "config:\n  environment: {}\n",
            ":2: `environment:` lacks its namespace; write `berth:environment:`",
        ),
        ("hello", "has no `config:`"),
        ("", "has no `config:`"),
    ],
)
def test_a_file_that_is_no_config(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "Pulumi.test.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(stack_file.StackFileError) as caught:
        stack_file.read_stack_file(path)
    assert expected in str(caught.value)
    assert str(path) in str(caught.value)


def test_an_engineers_stack_is_held_to_its_environment_as_far_as_it_is_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Pulumi.yaml").write_text("name: berth\n")
    (tmp_path / "stacks").mkdir()
    own = {"environment": "env", "gpus": 1, "worker": {"pool": "nope", "memory": "8xGi"}}
    for stack, config in {
        "env": {"berth:environment": GOOD},
        "alice": {"berth:engineer": own},
    }.items():
        (tmp_path / "stacks" / f"Pulumi.{stack}.yaml").write_text(
            yaml.safe_dump({"config": config})
        )
    found = [line.partition(": ")[2] for line in check_stack("alice").lines]
    assert sorted(line.partition(":")[0] for line in found) == [
        "engineer.gpus",
        "engineer.worker.memory",
        "engineer.worker.pool",
    ]


def test_a_stacks_name_is_the_berths_where_the_settings_give_none() -> None:
    for stack, name in (("alice", {}), ("Alice", {"name": "alice"})):
        assert load(stack, {"engineer": {"environment": "dev"} | name}, None)
    with pytest.raises(SettingsError) as caught:
        load("Alice.B", {"engineer": {"environment": "dev"}}, None)
    (line,) = caught.value.lines
    assert line.startswith("engineer.name: 'Alice.B' is a name that Kubernetes would refuse")
    assert line.endswith("it defaults to the stack's name: set `name` to override")

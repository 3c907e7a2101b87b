"""Problems of a file, reported at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.cli.repository.check import Checker
from berth.stacks.load.stack import SettingsError, load
from tests.unit.loaded import environment_values

GOOD: dict[str, Any] = environment_values(dev={"machineType": "a4-highgpu-8g", "nodes": 4})


def problems(environment: Any) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load("test", {"environment": environment}, None)
    return [problem.where for problem in caught.value.problems]


@pytest.mark.parametrize("pools", [{"cpu": {"machineType": "n2-standard-16"}}, {}, None, "many"])
def test_project_zone_and_nodes_are_missed_together(pools: Any) -> None:
    """A pool that is wrong, or no pool at all, hides nothing of the rest."""
    found = problems({"pools": pools, "network": {"cidr": "10.0.0.0/24"}})
    assert {"environment.project", "environment.zone", "environment.network.cidr"} <= set(found)
    assert any(where.startswith("environment.pools") for where in found)


def test_an_empty_environment_lacks_everything() -> None:
    assert sorted(problems({})) == ["environment.pools", "environment.project", "environment.zone"]
    assert sorted(problems(None)) == ["environment.pools", "environment.project", "environment.zone"]


def test_nothing_is_invented_about_pools_that_are_wrong() -> None:
    found = problems({**GOOD, "pools": {"cpu": {"machineType": "n2-standard-16"}}, "engineers": {"alice": {}}})
    assert found == ["environment.pools.cpu.nodes"]


def test_a_misspelled_pool_is_found_among_pools_that_are_wrong() -> None:
    pools = {**GOOD["pools"], "dev": {"machineType": "a4-highgpu-8g"}}
    with pytest.raises(SettingsError) as caught:
        load("test", {"environment": {**GOOD, "pools": pools, "engineers": {"a": {"worker": {"pool": "devv"}}}}}, None)
    assert "environment.engineers.a.worker.pool: there is no pool 'devv'; did you mean 'dev'?" in caught.value.lines


def test_an_engineers_stack_is_held_to_its_environment_as_far_as_it_is_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Pulumi.yaml").write_text("name: berth\n")
    (tmp_path / "stacks").mkdir()
    own = {"environment": "env", "gpus": 1, "worker": {"pool": "nope", "memory": "8xGi"}}
    for stack, config in {"env": {"berth:environment": GOOD}, "alice": {"berth:engineer": own}}.items():
        (tmp_path / "stacks" / f"Pulumi.{stack}.yaml").write_text(yaml.safe_dump({"config": config}))
    found = [line.partition(": ")[2] for line in Checker().check("alice").lines]
    assert sorted(line.partition(":")[0] for line in found) == [
        "engineer.gpus",
        "engineer.worker.memory",
        "engineer.worker.pool",
    ]

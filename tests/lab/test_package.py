"""The Pulumi package: components that the program `pulumi-resource-berth` makes for any program."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.lab.conftest import Lab
from tests.lab.project import CLONE, SMALL, Project, environment_settings

pytestmark = pytest.mark.lab

PLUGIN = Path(sys.executable).with_name("pulumi-resource-berth")
PROGRAM = (CLONE / "docs/programs/package.py").read_text(encoding="utf-8")
ENGINEERS = """
import pulumi

class EngineerBerth(pulumi.ComponentResource):
    namespace: pulumi.Output[str]

    def __init__(self, name):
        worker = {"gpus": 0, "cpu": 1, "memory": "4Gi"}
        super().__init__(
            "berth:index:EngineerBerth",
            name,
            {
                "environment": "organization/research/own",
                "worker": worker,
                "workers": 0,
                "namespace": None,
            },
            remote=True,
        )

for engineer in ("dana", "erin"):
    pulumi.export(engineer, EngineerBerth(engineer).namespace)
"""


def project(lab: Lab, folder: Path, name: str, program: str) -> Project:
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text(yaml.safe_dump({"name": name, "runtime": "python"}))
    (folder / "__main__.py").write_text(program)
    return Project(folder, lab)


def configure(made: Project, settings: dict[str, Any]) -> None:
    config = {"research:settings": settings}
    (made.folder / "Pulumi.own.yaml").write_text(yaml.safe_dump({"config": config}))


@pytest.fixture(scope="module")
def research(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, dict[str, Any]]:
    """An environment with one engineer, as a component of a program without other code of berth."""
    made = project(lab, tmp_path_factory.mktemp("package") / "research", "research", PROGRAM)
    defaults = {"worker": {"pool": "cpu", "gpus": 0, **SMALL["worker"]}, "head": SMALL["head"]}
    settings = environment_settings(lab, {}, defaults=defaults, engineers={"alice": {"workers": 1}})
    configure(made, settings)
    made.up("own")
    return made, settings


def test_the_engine_takes_the_schema(lab: Lab) -> None:
    schema = json.loads(lab.run(["pulumi", "package", "get-schema", str(PLUGIN)]).stdout)
    environment = schema["resources"]["berth:index:Environment"]
    assert environment["inputProperties"]["engineers"]["additionalProperties"]["$ref"].startswith(
        "#/types/berth:"
    )
    assert environment["isComponent"]


@pytest.mark.long
def test_an_environment_is_a_component_of_any_program(
    research: tuple[Project, dict[str, Any]],
) -> None:
    made, _ = research
    assert made.outputs("own")["environment"]["name"] == "own"
    (cluster,) = made.get("rayclusters", "-n", "berth-alice")
    assert cluster["status"]["state"] == "ready"
    below = [
        resource["urn"] for resource in made.resources("own") if "RayCluster" in resource["type"]
    ]
    assert [urn.partition("berth:index:Environment$")[1] != "" for urn in below] == [True]
    assert made.preview("own") == {}


@pytest.mark.long
def test_all_problems_of_the_inputs_are_told_with_their_paths(
    research: tuple[Project, dict[str, Any]],
) -> None:
    made, settings = research
    wrong = {**settings, "pools": {"cpu": {"machineType": "n2-standard-17"}}, "colour": "blue"}
    configure(made, wrong)
    try:
        done = made.run("pulumi", "preview", "-s", "own", check=False)
    finally:
        configure(made, settings)
    shown = done.stdout + done.stderr
    assert done.returncode != 0
    assert "provider.py" not in shown, "no traceback of the package"
    assert "colour" in shown
    assert "pools.cpu.machineType" in shown


@pytest.mark.long
def test_berths_of_engineers_come_by_reference_side_by_side(
    research: tuple[Project, dict[str, Any]], tmp_path: Path
) -> None:
    made, _ = research
    engineers = project(made.lab, tmp_path / "engineers", "engineers", ENGINEERS)
    engineers.up("own")
    assert engineers.outputs("own") == {"dana": "berth-dana", "erin": "berth-erin"}
    assert set(engineers.preview("own").values()) == {"read"}, (
        "what Pulumi reads at every update, and nothing else"
    )
    engineers.destroy("own")
    namespaces = [item["metadata"]["name"] for item in made.get("namespaces")]
    assert "berth-alice" in namespaces
    assert "berth-dana" not in namespaces

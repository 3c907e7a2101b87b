"""The Pulumi package: components that the program `pulumi-resource-berth` makes for any program.

Pulumi's own library generates the SDKs, as its language hosts do for `pulumi package add`. The
lab's language host for Python is too old for that command.
"""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from berth.components.core.distribution import installed_version
from berth.lab.progress import LabProgress
from berth.lab.toolchain.ensure import programs_of
from berth.lab.toolchain.tools import PULUMI_CODEGEN
from tests.lab.conftest import Lab
from tests.lab.project import CLONE, Project

pytestmark = pytest.mark.lab

PLUGIN = Path(sys.executable).with_name("pulumi-resource-berth")
PROGRAM = (CLONE / "docs/programs/package.py").read_text(encoding="utf-8")
ENGINEERS = """
import pulumi
import pulumi_berth as berth

for engineer in ("dana", "erin"):
    made = berth.EngineerBerth(
        engineer,
        environment="organization/research/own",
        workers=0,
        worker={"gpus": 0, "cpu": 1, "memory": "4Gi"},
    )
    pulumi.export(engineer, made.namespace)
"""


@pytest.fixture(scope="module")
def sdks(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the SDKs that Pulumi generates from the schema that its engine gets of berth."""
    folder = tmp_path_factory.mktemp("sdks")
    schema = lab.run(["pulumi", "package", "get-schema", str(PLUGIN)]).stdout
    generate = programs_of([PULUMI_CODEGEN], LabProgress())["generate-sdks"]
    lab.run([str(generate), str(folder)], stdin=schema)
    return folder


def project(lab: Lab, folder: Path, sdks: Path, name: str, program: str) -> Project:
    """A project in Python with berth's SDK."""
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text(yaml.safe_dump({"name": name, "runtime": "python"}))
    (folder / "__main__.py").write_text(program)
    install = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-build-isolation"]
    lab.run([*install, "--no-index", "--target", str(folder), str(sdks / "python")])
    return Project(folder, lab)


@pytest.fixture(scope="module")
def research(lab: Lab, sdks: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """An environment with one engineer, as a component of a program without other code of berth."""
    made = project(lab, tmp_path_factory.mktemp("package") / "research", sdks, "research", PROGRAM)
    made.up("own")
    return made


def test_pulumi_generates_sdks_with_the_types_of_the_settings(sdks: Path) -> None:
    """Pulumi's library has nothing against the schema, or there would be no SDK."""
    python = (sdks / "python/pulumi_berth/environment.py").read_text()
    assert "pools: pulumi.Input[Mapping[str, pulumi.Input['PoolSettingsArgs']]]," in python
    assert f'VERSION = "{installed_version()}"' in (sdks / "python/setup.py").read_text()
    script = (sdks / "nodejs/types/input.ts").read_text()
    assert "rdma?: pulumi.Input<enums.PoolRdma | undefined>;" in script
    assert "type EnvironmentArgs struct" in (sdks / "go/berth/environment.go").read_text()


@pytest.mark.long
def test_an_environment_is_a_component_of_any_program(research: Project) -> None:
    assert research.outputs("own")["environment"]["name"] == "own"
    (cluster,) = research.get("rayclusters", "-n", "berth-alice")
    assert cluster["status"]["state"] == "ready"
    urns = [resource["urn"] for resource in research.resources("own")]
    below = [urn for urn in urns if "berth:index:Environment$" in urn]
    assert len([urn for urn in below if urn.endswith(":RayCluster::research-alice")]) == 1
    named = [urn for urn in below if urn.rpartition("::")[2].startswith("research")]
    assert named == below
    assert research.preview("own") == {}


@contextlib.contextmanager
def edited(made: Project, program: str) -> Iterator[None]:
    """Another program in a project's folder meanwhile."""
    path = made.folder / "__main__.py"
    before = path.read_text()
    path.write_text(program)
    try:
        yield
    finally:
        path.write_text(before)


@pytest.mark.long
def test_a_second_environment_collides_with_nothing_of_the_first(research: Project) -> None:
    _, _, second = PROGRAM.partition("research = ")
    second = second.partition("# Stacks")[0].replace('"research"', '"train"')
    with edited(research, f"{PROGRAM}\n{second}"):
        planned = research.preview("own")
    assert set(planned.values()) == {"create"}
    assert {key.rpartition("::")[2].partition("-")[0] for key in planned} == {"train"}


@pytest.mark.long
def test_all_problems_of_the_inputs_are_told_with_their_paths(research: Project) -> None:
    wrong = PROGRAM.replace("n2-standard-16", "n2-standard-17").replace('"4Gi"', '"4 Gi"')
    with edited(research, wrong):
        done = research.run("pulumi", "preview", "-s", "own", check=False)
    shown = done.stdout + done.stderr
    assert done.returncode != 0
    assert "provider.py" not in shown, "no traceback of the package"
    assert "defaults.worker.memory" in shown
    assert "pools.cpu.machineType" in shown


@pytest.mark.long
def test_berths_of_engineers_come_by_reference_side_by_side(
    research: Project, sdks: Path, tmp_path: Path
) -> None:
    engineers = project(research.lab, tmp_path / "engineers", sdks, "engineers", ENGINEERS)
    engineers.up("own")
    assert engineers.outputs("own") == {"dana": "berth-dana", "erin": "berth-erin"}
    assert set(engineers.preview("own").values()) == {"read"}, (
        "what Pulumi reads at every update, and nothing else"
    )
    engineers.destroy("own")
    namespaces = [item["metadata"]["name"] for item in research.get("namespaces")]
    assert "berth-alice" in namespaces
    assert "berth-dana" not in namespaces

"""Code of a service's applications: what is read, what is refused, and where it is in the pods."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.components.ray.kuberay_form import as_kuberay_writes_it
from berth.components.ray.manifest import ray_cluster
from berth.components.ray.service_code import code_folder
from berth.components.ray.services import CLUSTER_CONFIG, ray_service, with_fingerprint
from berth.lab.home import CLONE
from berth.stacks.load.service_code import LIMIT_BYTES, read_code
from berth.stacks.load.stack import SettingsError, load
from tests.unit.cases import table
from tests.unit.loaded import environment_of

APP = "from ray import serve\n\ndef build(args):\n    pass\n\napp = 1\n"
RECORDED = json.loads((CLONE / "tests/unit/stacks/ray_serve.json").read_text(encoding="utf-8"))[
    "cases"
]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project's folder with an application's code in it."""
    (tmp_path / "Pulumi.yaml").write_text("name: berth\n")
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "main.py").write_text(APP)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def values(
    import_path: str = "main:build", path: str | None = "app", **application: Any
) -> dict[str, Any]:
    service = {
        "worker": {"pool": "cpu", "gpus": 0},
        "serveConfig": {"applications": [{"import_path": import_path, **application}]},
        **({"code": path} if path else {}),
    }
    pools = {"cpu": {"machineType": "n2-standard-16", "nodes": 2}}
    return {
        "project": "berth-lab",
        "zone": "us-central1-b",
        "pools": pools,
        "services": {"chat": service},
    }


def manifest(**given: Any) -> dict[str, Any]:
    resolved = environment_of("test", values(**given)).resolved
    (service,) = resolved.services
    cluster = ray_cluster(service.cluster, resolved.pools, "berth-chat", {"berth/service": "chat"})
    return as_kuberay_writes_it(with_fingerprint(ray_service(service, cluster)))


def refused(**given: Any) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load("test", {"environment": values(**given)}, None)
    return [line.removeprefix("environment.services.chat.") for line in caught.value.lines]


def test_all_modules_are_named_where_one_is_not_found(project: Path) -> None:
    (project / "app" / "pictures.py").write_text(APP)
    (project / "app" / "words.py").write_text(APP)
    (line,) = refused(import_path="mian:build")
    assert line.endswith("did you mean 'main'?; it has main, pictures, words")


def templates(service: dict[str, Any]) -> list[dict[str, Any]]:
    config = service["spec"]["rayClusterConfig"]
    return [config["headGroupSpec"]["template"], config["workerGroupSpecs"][0]["template"]]


def test_head_and_workers_have_the_code_as_files_and_applications_find_it() -> None:
    service = manifest(runtime_env={"env_vars": {"PYTHONPATH": "/mine", "A": "b"}})
    folder = code_folder({"main.py": APP})
    for template in templates(service):
        assert template["metadata"]["annotations"]["berth/code-0"] == APP
        (volume,) = template["spec"]["volumes"]
        item = {
            "path": "main.py",
            "fieldRef": {"fieldPath": "metadata.annotations['berth/code-0']"},
        }
        assert volume["downwardAPI"]["items"] == [item]
        mount = {"name": volume["name"], "mountPath": folder, "readOnly": True}
        assert template["spec"]["containers"][0]["volumeMounts"] == [mount]
    (application,) = yaml.safe_load(service["spec"]["serveConfigV2"])["applications"]
    assert application["runtime_env"]["env_vars"] == {"PYTHONPATH": f"{folder}:/mine", "A": "b"}


def test_an_edit_is_another_version_of_cluster_and_application(project: Path) -> None:
    before = manifest()
    (project / "app" / "main.py").write_text(APP + "# edited\n")
    after = manifest()
    marks = [
        templates(service)[0]["metadata"]["annotations"][CLUSTER_CONFIG]
        for service in (before, after)
    ]
    assert marks[0] != marks[1], "KubeRay makes a second cluster"
    assert before["spec"]["serveConfigV2"] != after["spec"]["serveConfigV2"], (
        "Ray takes it for another version"
    )


def test_a_service_without_code_is_as_it_was() -> None:
    service = manifest(path=None)
    assert all("volumes" not in template["spec"] for template in templates(service))
    assert "runtime_env" not in service["spec"]["serveConfigV2"]


def test_a_folder_is_read_without_what_is_hidden_or_compiled(project: Path) -> None:
    for name in (".env", "__pycache__/main.pyc", ".git/config", "parts/__init__.py", "words.txt"):
        file = project / "app" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("x = 1\n")
    assert set(read_code(project / "app")) == {"main.py", "parts/__init__.py", "words.txt"}
    assert set(read_code(project / "app" / "main.py")) == {"main.py"}


@pytest.mark.parametrize(("path", "import_path", "message"), table(__file__, "service_code.yaml"))
def test_what_ray_would_not_find_is_refused(path: str, import_path: str, message: str) -> None:
    assert refused(path=path, import_path=import_path)[0] == message


def test_files_that_pods_cannot_take_are_refused(project: Path) -> None:
    file = project / "app" / "big.txt"
    file.write_text("x" * LIMIT_BYTES)
    total = LIMIT_BYTES + len(APP)
    assert refused()[0].startswith(
        f"code: app has {total} bytes, of which app/big.txt alone {LIMIT_BYTES}; pods take"
    )
    file.write_bytes(b"\xff\xfe\x00")
    assert refused()[0].startswith("code: app/big.txt is not text (UTF-8); put it into the image")
    file.unlink()
    (project / "app" / "random.py").write_text("")
    assert refused() == [
        "code: module 'random' of app hides the one that Python and Ray import; rename it"
    ]
    (project / "app" / "random.py").unlink()
    (project / "app" / "main.py").write_text("def build(:\n")
    assert refused()[0].startswith(
        "serveConfig.applications[0].import_path: app: main.py:1: Python cannot read this: "
    )
    (project / "app" / "main.py").rename(project / "app" / "main.txt")
    assert refused() == [
        "code: app has no Python file (*.py); name a folder with the application's code"
    ]


def test_a_module_from_elsewhere_is_left_to_ray() -> None:
    manifest(import_path="other:app", runtime_env={"working_dir": "https://example.com/other.zip"})
    manifest(import_path="other:app", path=None)


REFUSED = [name for name in RECORDED if RECORDED[name].get("put", [0])[0] == 400]


@pytest.mark.parametrize("case", [*REFUSED, "min above max"])
def test_what_ray_refuses_berth_refuses_before(case: str) -> None:
    """Recorded of Ray 2.60.0: an HTTP 400, or an application that fails, once the RayService is
    there.
    """
    given = values(path=None)
    given["services"]["chat"]["serveConfig"] = RECORDED[case]["config"]
    with pytest.raises(SettingsError):
        load("test", {"environment": given}, None)

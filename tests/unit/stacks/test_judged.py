"""Files that a program reads, beside those that a command has judged."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from berth.components.core.errors import BadInputError
from berth.stacks.load.stack import EngineerStack, Environment, load_stack
from berth.stacks.program import JUDGED
from berth.stacks.program.judged import digest_of_files, refuse_unjudged
from tests.unit.loaded import environment_values

CODE = "from ray import serve\n\n\n@serve.deployment\nclass App: ...\n\n\napp = App.bind()\n"
OBJECT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: dranet}\n"
POOLS = {
    "dev": {"machineType": "g2-standard-8", "nodes": 3},
    "train": {"machineType": "a4-highgpu-8g", "nodes": 1, "rdma": "networks"},
}
VALUES = environment_values(**POOLS) | {
    "engineers": {"alice": {}},
    "defaults": {"worker": {"pool": "dev"}},
    "services": {
        "app": {
            "code": "app",
            "serveConfig": {"applications": [{"name": "app", "import_path": "main:app"}]},
        }
    },
    "operators": {"dranet": {"source": "manifest", "manifest": "dranet.yaml"}},
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Pulumi.yaml").write_text("name: berth\n")
    (tmp_path / "app").mkdir()
    (tmp_path / "app/main.py").write_text(CODE)
    (tmp_path / "dranet.yaml").write_text(OBJECT)
    (tmp_path / "stacks").mkdir()
    write(tmp_path, "dev", environment=VALUES)
    write(tmp_path, "amy", engineer={"environment": "dev"})
    return tmp_path


def write(project: Path, stack: str, **config: object) -> None:
    settings = {f"berth:{key}": value for key, value in config.items()}
    path = project / f"stacks/Pulumi.{stack}.yaml"
    path.write_text(yaml.safe_dump({"config": settings}))


def appended(path: str, text: str) -> Callable[[Path], None]:
    def edit(project: Path) -> None:
        file = project / path
        file.write_text(file.read_text() + text)

    return edit


@pytest.mark.parametrize(
    ("stack", "edit", "refused"),
    [
        ("dev", lambda _: None, False),
        ("dev", appended("stacks/Pulumi.dev.yaml", "# a comment\n"), False),
        ("dev", lambda at: write(at, "dev", environment=VALUES | {"engineers": {}}), True),
        ("dev", appended("app/main.py", "# other code\n"), True),
        ("dev", appended("dranet.yaml", "data: {key: other}\n"), True),
        ("amy", lambda at: write(at, "amy", engineer={"environment": "dev", "workers": 2}), True),
        ("amy", appended("app/main.py", "# not hers\n"), False),
    ],
)
def test_an_edit_after_the_judgment(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    stack: str,
    edit: Callable[[Path], None],
    refused: bool,
) -> None:
    monkeypatch.setenv(JUDGED, digest_of_files(load_stack(stack)))
    edit(project)
    loaded = load_stack(stack)
    if not refused:
        refuse_unjudged(loaded)
        return
    with pytest.raises(BadInputError, match=f"stack {stack}, or a file that they name, were edit"):
        refuse_unjudged(loaded)
    monkeypatch.delenv(JUDGED)  # as for plain `pulumi up`
    refuse_unjudged(loaded)


def test_a_file_of_objects_is_judged_with_the_settings(project: Path) -> None:
    """Problems of the manifest come with all others, before the engine runs."""
    loaded: Environment | EngineerStack = load_stack("dev")
    assert isinstance(loaded, Environment)
    assert [item["kind"] for item in loaded.manifests["dranet"]] == ["ConfigMap"]
    (project / "dranet.yaml").unlink()
    with pytest.raises(BadInputError, match=r"operators.dranet.manifest: there is no file dranet"):
        load_stack("dev")

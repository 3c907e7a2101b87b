"""Charts that an update of stack lab needs, looked for before the lab starts."""

import shutil
from pathlib import Path

import pytest

from berth.lab.errors import LabError
from berth.lab.home import CLONE, LabHome
from berth.lab.update import require_charts

STACK = Path("stacks/Pulumi.lab.yaml")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Project with the clone's stack lab, and no lab yet."""
    (tmp_path / "stacks").mkdir()
    for file in (Path("Pulumi.yaml"), STACK):
        shutil.copy(CLONE / file, tmp_path / file)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_projects_own_lab_will_have_the_charts(project: Path) -> None:
    require_charts(LabHome(project / ".lab"))


def test_a_lab_elsewhere_has_not_and_the_error_names_a_command(project: Path) -> None:
    other = project / "other"
    with pytest.raises(LabError) as caught:
        require_charts(LabHome(other))
    line = (project / STACK).read_text().splitlines().index(
        "        chart: ./.lab/charts/kuberay-operator"
    ) + 1
    assert (caught.value.code, caught.value.place) == (2, f"{STACK}:{line}")
    assert f"berth lab up --no-update --home {other}" in caught.value.remedy
    for name in ("kuberay-operator", "gpu-operator", "dranet"):
        (project / ".lab/charts" / name).mkdir(parents=True)
    require_charts(LabHome(other))

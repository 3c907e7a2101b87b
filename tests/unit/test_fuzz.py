"""Fuzzed settings, the quick part: the same examples in every run."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.fuzz import files, judge

quick = settings(
    max_examples=10,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return judge.project(tmp_path_factory.mktemp("fuzz"))


@pytest.fixture(autouse=True)
def _inside(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)


@pytest.mark.parametrize("stack", files.shipped())
def test_a_shipped_stack_is_accepted_and_renders(project: Path, stack: str) -> None:
    assert judge.check(project, stack, files.shipped()[stack])


@quick
@given(files.edited())
def test_edited_settings(project: Path, file: tuple[str, str]) -> None:
    judge.check(project, *file)


@settings(quick, max_examples=5)
@given(files.edited(good=True))
def test_good_settings(project: Path, file: tuple[str, str]) -> None:
    judge.check(project, *file)


@quick
@given(files.torn())
def test_torn_text(project: Path, file: tuple[str, bytes]) -> None:
    judge.check(project, *file)

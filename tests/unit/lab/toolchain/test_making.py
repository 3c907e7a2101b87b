"""Builds of several tools, one after the other, and their lines."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from berth.lab.errors import LabError
from berth.lab.progress import Progress
from berth.lab.toolchain import go as compiler
from berth.lab.toolchain.ensure import CHOICE, programs_of
from berth.lab.toolchain.tools import BY_NAME, HELM

ETCD, KUBERNETES = BY_NAME["etcd"], BY_NAME["kubernetes"]


def test_tools_are_named_as_they_are_made_and_summed_up_at_the_end(
    machine: Path, progress: Progress, printed: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    del machine
    monkeypatch.setenv(CHOICE, "source")
    programs_of([ETCD, KUBERNETES, HELM], progress)
    lines = printed().splitlines()
    assert lines[0].startswith(
        "Building 3 tools from source, once for this machine: about 5 minutes of two cores (kept"
    )
    begun = [line.partition(",")[0] for line in lines if "…" in line]
    assert begun == [
        "  … etcd 3.6.8 (0 of 344 MiB)",
        f"  … kubernetes 1.36.3 ({ETCD.mib} of 344 MiB",
        f"  … helm 3.21.4 ({ETCD.mib + KUBERNETES.mib} of 344 MiB",
    ]
    (end,) = [line for line in lines if "✓" in line]
    assert end.startswith("  ✓ 3 tools built, 344 MiB (")


def test_a_second_run_goes_on_where_the_first_stopped(
    machine: Path, progress: Progress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CHOICE, "source")
    programs_of([ETCD], progress)
    programs_of([ETCD, HELM], progress)
    assert (machine / "built").read_text().split() == ["server", "helm"]


def test_caches_of_a_fetched_go_go_with_the_last_build_that_ends_well(tmp_path: Path) -> None:
    go = compiler.Go(tmp_path / "go", "1.99.0", "made for this test", tmp_path / "caches")
    compiled = tmp_path / "caches" / "build" / "package.a"
    environment = go.environment()
    assert environment["GOCACHE"] == str(compiled.parent)
    assert environment["GOMODCACHE"] == str(tmp_path / "caches" / "modules")
    with contextlib.suppress(LabError), go.in_use():
        compiled.parent.mkdir()
        compiled.touch()
        raise LabError("a build that failed")
    assert compiled.exists(), "the next run goes on with it"
    with go.in_use():
        with go.in_use():
            pass
        assert compiled.exists(), "another build uses it"
    assert not compiled.exists()


def test_caches_that_the_user_chose_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOCACHE", str(tmp_path / "theirs"))
    (tmp_path / "theirs").mkdir()
    go = compiler.Go(tmp_path / "go", "1.99.0", "made for this test", tmp_path / "caches")
    assert go.environment()["GOCACHE"] == str(tmp_path / "theirs")
    with go.in_use():
        pass
    assert (tmp_path / "theirs").is_dir()

"""Choice of a lab's kubernetes plugin, and its place where the engine looks (tests/lab has the
engine's own view).
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from berth.lab import programs
from berth.lab.errors import LabError
from berth.lab.home import Home
from berth.lab.kubernetes_plugin import CHOICE, PROGRAM, Plugin, choose, folder_name, placed
from berth.lab.progress import Progress

FETCHES = f"""
folder=$PULUMI_HOME/plugins/resource-kubernetes-v{version("pulumi-kubernetes")}
mkdir -p $folder && echo real > $folder/{PROGRAM}
"""
REFUSED = "echo 'warning: try 5' >&2; echo 'error: no such host' >&2; exit 1"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any plugin."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "user"))
    monkeypatch.delenv(CHOICE, raising=False)
    return tmp_path


def engine(machine: Path, script: str) -> Path:
    """A `pulumi` that notes its calls and then does as the script says."""
    path = machine / "pulumi"
    path.write_text(f'#!/bin/sh\necho "$@" >> {machine}/calls\n{script}\n')
    path.chmod(0o755)
    return path


def calls(machine: Path) -> list[str]:
    file = machine / "calls"
    return file.read_text().splitlines() if file.exists() else []


def install(machine: Path) -> Path:
    """A plugin as the engine installs it."""
    folder = machine / "user" / "plugins" / folder_name()
    (folder / "more").mkdir(parents=True)
    for name in (PROGRAM, "LICENSE", "more/data"):
        (folder / name).write_text(name)
    (folder / PROGRAM).chmod(0o755)
    return folder


def lab_of(machine: Path) -> Home:
    return Home(machine / "lab")


def chosen(machine: Path, script: str = REFUSED, silence: float = 15.0) -> Plugin:
    return choose(lab_of(machine), engine(machine, script), Progress(), silence)


def test_an_installed_plugin_is_taken_without_asking_the_network(machine: Path) -> None:
    folder = install(machine)
    assert chosen(machine) == Plugin(folder)
    assert calls(machine) == []


def test_an_installation_that_has_not_ended_is_not_taken(machine: Path) -> None:
    folder = install(machine)
    folder.with_name(f"{folder.name}.partial").touch()
    assert chosen(machine).folder is None


def test_a_plugin_that_the_engine_can_fetch_is_fetched_once(machine: Path) -> None:
    first = chosen(machine, FETCHES)
    assert first.folder == machine / "cache" / "berth" / "pulumi" / "plugins" / folder_name()
    assert chosen(machine, FETCHES) == first
    assert calls(machine) == [
        f"plugin install resource kubernetes {version('pulumi-kubernetes')} --color never",
    ]


def test_a_refusal_is_remembered_and_told(machine: Path) -> None:
    first = chosen(machine)
    assert (first.folder, first.reason.split(";")[0]) == (None, "no such host")
    assert "`pulumi plugin install resource kubernetes" in str(first)
    assert chosen(machine) == first
    assert len(calls(machine)) == 1, "a lab that comes up again does not wait for the network again"


def test_another_engine_is_asked_again(machine: Path) -> None:
    chosen(machine)
    other = machine / "other"
    other.mkdir()
    (other / "pulumi").write_text(engine(machine, FETCHES).read_text())
    (other / "pulumi").chmod(0o755)
    assert choose(lab_of(machine), other / "pulumi", Progress()).folder is not None


def test_a_network_that_does_not_answer_ends_the_try(machine: Path) -> None:
    found = chosen(machine, "exec sleep 600", silence=0.3)
    assert (found.folder, found.reason.split(";")[0]) == (None, "no data arrived within 0.3 seconds")


def test_a_download_may_take_longer_than_the_silence(machine: Path) -> None:
    slow = "for n in 1 2 3 4 5 6 7 8; do echo $n >> $TMPDIR/tar; sleep 0.25; done"
    assert chosen(machine, f"{slow}\n{FETCHES}", silence=1.5).folder is not None


def test_the_stand_in_can_be_asked_for(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(machine)
    monkeypatch.setenv(CHOICE, "stand-in")
    assert chosen(machine).folder is None
    assert calls(machine) == []


def test_the_real_one_can_be_insisted_on(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen(machine)
    monkeypatch.setenv(CHOICE, "real")
    with pytest.raises(LabError, match="cannot be downloaded") as failure:
        chosen(machine)
    assert "no such host" in failure.value.problem
    assert chosen(machine, FETCHES).folder is not None, "an earlier refusal does not count"


def test_another_choice_is_refused(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHOICE, "fake")
    with pytest.raises(LabError, match="'fake'") as failure:
        chosen(machine)
    assert failure.value.code == 2


def test_the_engine_finds_a_real_folder_with_every_file_of_the_plugin(machine: Path) -> None:
    home, plugin = lab_of(machine), Plugin(install(machine))
    for _ in range(2):
        programs.write_plugins(home, plugin)
        folder = home.pulumi_home / "plugins" / folder_name()
        assert not folder.is_symlink()
        assert {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} == {
            PROGRAM,
            "LICENSE",
            "more/data",
        }
        assert not folder.with_name(f"{folder.name}.partial").exists()
        assert placed(home) == plugin


def test_a_lab_whose_folder_is_a_link_is_put_right(machine: Path) -> None:
    home, real = lab_of(machine), install(machine)
    folder = home.pulumi_home / "plugins" / folder_name()
    folder.parent.mkdir(parents=True)
    folder.symlink_to(real)
    programs.write_plugins(home, Plugin(real))
    assert not folder.is_symlink()
    assert (real / PROGRAM).read_text() == PROGRAM, "the installed plugin stays as it is"


def test_a_lab_goes_from_the_stand_in_to_the_real_one_and_back(machine: Path) -> None:
    home, real = lab_of(machine), install(machine)
    folder = home.pulumi_home / "plugins" / folder_name()
    programs.write_plugins(home, Plugin(None))
    assert "berth.lab.plugins.kubernetes" in (folder / PROGRAM).read_text()
    assert placed(home) == Plugin(None)
    programs.write_plugins(home, Plugin(real))
    assert placed(home) == Plugin(real)
    programs.write_plugins(home, Plugin(None))
    assert [path.name for path in folder.iterdir()] == [PROGRAM]
    assert "berth.lab.plugins.kubernetes" in (folder / PROGRAM).read_text()
    assert (real / PROGRAM).read_text() == PROGRAM

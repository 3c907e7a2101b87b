"""A machine that can't have a real node is told why, in one line, before anything is made."""

from __future__ import annotations

import pytest

from berth.lab.realnode import debian, requirements


def test_who_is_not_root_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert requirements.obstacle() == "a real node needs root, for containers, interfaces and mounts of its own"


def test_a_release_that_apt_does_not_know_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    if debian.obstacle() is not None:
        pytest.skip("this machine has no packages of Debian's")
    monkeypatch.setattr(debian, "RELEASE", "potato")
    told = debian.obstacle()
    assert told is not None
    assert "apt's sources on this machine don't have Debian's release potato" in told
    assert "\n" not in told


def test_a_machine_without_a_program_is_told_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(requirements, "PROGRAMS", ("sh", "no-such-program"))
    assert "a real node needs no-such-program" in str(requirements.obstacle())

"""Reason, in one line, why a machine cannot have a real node."""

import pytest

from berth.lab.realnode import debian, requirements


def test_a_release_that_apt_does_not_know_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    if debian.obstacle() is not None:
        pytest.skip("this machine has no packages of Debian's")
    monkeypatch.setattr(debian, "RELEASE", "potato")
    problem = str(debian.obstacle())
    assert "apt's sources on this machine do not have Debian's release potato" in problem
    assert "\n" not in problem


def test_a_missing_program_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(requirements, "PROGRAMS", ("sh", "no-such-program"))
    assert "a real node needs no-such-program" in str(requirements.obstacle())

"""The control plane's configuration of the way to pods."""

from __future__ import annotations

from pathlib import Path

import pytest

from berth.lab.controlplane import SOCKET_LIMIT, egress
from berth.lab.errors import USAGE, LabError
from berth.lab.home import Home


def test_pods_are_reached_by_the_labs_socket(tmp_path: Path) -> None:
    home = Home(tmp_path / "lab")
    (selection,) = egress(home)["egressSelections"]
    assert selection["name"] == "cluster", "pods and kubelets; not the database"
    assert selection["connection"]["transport"]["uds"]["udsName"] == str(home.egress)


def test_a_folder_whose_path_no_socket_can_have_is_refused(tmp_path: Path) -> None:
    home = Home(tmp_path / ("x" * SOCKET_LIMIT))
    with pytest.raises(LabError) as caught:
        egress(home)
    assert caught.value.code == USAGE
    assert "Linux allows a socket's path 107" in str(caught.value)

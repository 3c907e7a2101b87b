"""The control plane's configuration of the way to pods."""

from pathlib import Path

import pytest

from berth.lab.controlplane import SOCKET_LIMIT, egress
from berth.lab.errors import USAGE, LabError
from berth.lab.home import LabHome


def test_a_folder_whose_path_no_socket_can_have_is_refused(tmp_path: Path) -> None:
    home = LabHome(tmp_path / ("x" * SOCKET_LIMIT))
    with pytest.raises(LabError, match="Linux allows 107 in the path of a socket") as caught:
        egress(home)
    assert caught.value.code == USAGE

"""Ways to simulated heads, by their addresses."""

from pathlib import Path
from typing import Any, cast

import pytest

from berth.components.cluster.api import ClusterApi
from berth.lab.api import Api
from berth.lab.home import LabHome
from berth.lab.ray.heads import RayHeads


class Nothing:
    """A cluster that takes all objects and has none."""

    def request(self, *_call: Any, **_options: Any) -> None:
        pass

    def get(self, _path: str) -> None:
        pass


def test_a_head_is_found_at_the_address_that_it_has_now(tmp_path: Path) -> None:
    heads = RayHeads(LabHome(tmp_path), Api(cast("ClusterApi", Nothing())))
    metadata = {
        "name": "bob-head-1",
        "namespace": "berth-bob",
        "uid": "1",
        "labels": {"ray.io/node-type": "head"},
    }
    for address in (
        "10.0.0.1",
        "10.0.0.2",
    ):  # another one after a wait for a Secret (lab/devices/kubelet.py)
        heads.see({"metadata": metadata, "status": {"podIP": address}}, gone=False)
    with pytest.raises(
        ConnectionRefusedError, match="berth-bob/bob-head-1 does not listen on port 8265 yet"
    ):
        heads.dial_pod("10.0.0.2", 8265)
    with pytest.raises(ConnectionRefusedError, match="a simulated pod"):
        heads.dial_pod("10.0.0.1", 8265)
    heads.see({"metadata": metadata, "status": {"podIP": "10.0.0.2"}}, gone=True)
    with pytest.raises(ConnectionRefusedError, match="a simulated pod"):
        heads.dial_pod("10.0.0.2", 8265)

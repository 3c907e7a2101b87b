"""Real node that joins, breaks, comes back and leaves; the machine is then unchanged."""

import os
import signal

import pytest

from berth.lab.realnode import cleanup, processes
from tests.real.conftest import RealNode, machine_state

pytestmark = [pytest.mark.real, pytest.mark.long]


def test_a_second_up_starts_nothing(real: RealNode) -> None:
    before = real.lab.pids()
    assert "all processes work" in real.command("up", "--no-berth")
    assert real.lab.pids() == before


def test_a_crashed_node_is_repaired_and_then_leaves_nothing(real: RealNode) -> None:
    pids = real.lab.pids()
    for name in (processes.NAMESPACES, processes.KUBELET, processes.CONTAINERD):
        os.kill(pids[name], signal.SIGKILL)
    assert "is real (started" in real.command("up", "--no-berth")
    pids = real.lab.pids()
    os.kill(pids[processes.NAMESPACES], signal.SIGKILL)
    node = real.node["metadata"]["name"]
    assert "it is simulated now" in real.lab.up()
    assert cleanup.leftovers(real.lab.home) == []
    assert machine_state() == real.before
    assert real.lab.get("node", node)["metadata"]["annotations"]["kwok.x-k8s.io/node"] == "fake"
    real.command("up", "--no-berth")
    assert real.node["metadata"]["name"] == node

"""Limit of locked memory, in which RDMA registers memory: containers inherit it from containerd,
and IPC_LOCK does not lift it.

docs/project/decisions.md rests on it, and docs/fabric.md says how to raise it.
"""

from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from berth.lab.processes import Supervisor
from berth.lab.realnode import processes
from tests.real.conftest import RealNode, eventually, pod

pytestmark = [pytest.mark.real, pytest.mark.long]

LOW = 2**20
"""A limit in bytes that is below what any machine has."""

REPORT = ["bash", "-c", "ulimit -l; grep CapEff /proc/self/status"]


@pytest.fixture
def containerd(real: RealNode) -> Iterator[psutil.Process]:
    """Real node's containerd; its limit is restored afterward."""
    started = Supervisor(real.lab.home).running(processes.CONTAINERD)
    assert started is not None
    process = next(
        item for item in (started, *started.children(recursive=True)) if item.name() == "containerd"
    )
    before = process.rlimit(psutil.RLIMIT_MEMLOCK)
    yield process
    process.rlimit(psutil.RLIMIT_MEMLOCK, before)


def report(real: RealNode, name: str, *capabilities: str) -> tuple[str, int]:
    """Limit of locked memory in KiB, and effective capabilities, of Ray's user in a new pod."""
    context: dict[str, Any] = {
        "runAsUser": 1000,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"], "add": list(capabilities)},
    }
    real.apply(pod(name, REPORT, container={"securityContext": context}))
    eventually(
        lambda: real.kubectl("get", "pod", name, "-o", "jsonpath={.status.phase}") == "Succeeded",
        f"{name} ran",
    )
    limit, effective = real.kubectl("logs", name).splitlines()
    return limit, int(effective.split()[1], 16)


def test_containers_have_the_limit_of_their_nodes_containerd(
    real: RealNode, containerd: psutil.Process
) -> None:
    # The hard limit stays: not every root may raise it again.
    _, hard = containerd.rlimit(psutil.RLIMIT_MEMLOCK)
    containerd.rlimit(psutil.RLIMIT_MEMLOCK, (LOW, hard))
    assert report(real, "limited") == (str(LOW // 1024), 0)
    # What docs/fabric.md has an administrator do on a node.
    containerd.rlimit(psutil.RLIMIT_MEMLOCK, (hard, hard))
    assert report(real, "raised") == (
        "unlimited" if hard == psutil.RLIM_INFINITY else str(hard // 1024),
        0,
    )


def test_ipc_lock_has_no_effect_on_rays_user(real: RealNode, containerd: psutil.Process) -> None:
    _, hard = containerd.rlimit(psutil.RLIMIT_MEMLOCK)
    containerd.rlimit(psutil.RLIMIT_MEMLOCK, (LOW, hard))
    assert report(real, "with-ipc-lock", "IPC_LOCK") == (str(LOW // 1024), 0)

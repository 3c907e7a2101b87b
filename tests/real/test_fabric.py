"""`berth verify fabric` on running containers: its report of the traffic, against the node's own
counters.
"""

import json
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from berth.lab.realnode.layout import GATEWAY, NICS
from tests.real.conftest import POOL, RealNode, berth, eventually

pytestmark = [pytest.mark.real, pytest.mark.long]

OWNER = "dana"
NAMESPACE = f"berth-{OWNER}"
HALF = len(NICS) // 2

GATEWAYS = {GATEWAY.format(number) for number in range(len(NICS))}


def bring_up(real: RealNode, nics: int) -> None:
    """Bring up two workers with a stand-in GPU and this number of NICs each, without NCCL."""
    worker = {"pool": POOL, "gpus": 1, "nics": nics, "cpu": 1, "memory": "2Gi"}
    real.project.write(OWNER, engineer=berth(workers=2, worker=worker, nccl={"profile": "none"}))
    real.project.up(OWNER)


@pytest.fixture(scope="module")
def dana(real: RealNode) -> Iterator[RealNode]:
    """The node with a RayCluster whose two workers hold all its NICs."""
    bring_up(real, HALF)
    yield real
    real.project.destroy(OWNER)


def received(real: RealNode) -> dict[str, int]:
    """Bytes that the node received from its pods' interfaces: NICs by their gateways, pods'
    networks by their pairs.
    """
    links = json.loads(real.inside("ip", "-json", "-statistics", "link"))
    pods = {link["ifname"] for link in links if link["ifname"].startswith("veth")}
    return {
        link["ifname"]: link["stats64"]["rx"]["bytes"]
        for link in links
        if link["ifname"] in GATEWAYS | pods
    }


def verify(real: RealNode) -> tuple[int, dict[str, Any], dict[str, int]]:
    """Run `berth verify fabric`; return exit code, report, and bytes that the node counted
    meanwhile.
    """
    before = received(real)
    command = [
        "berth",
        "verify",
        "fabric",
        "-s",
        OWNER,
        "--max-size",
        "16Mi",
        "--timeout",
        "3m",
        "--json",
    ]
    done = real.project.run(*command, check=False)
    # The submitter's pod is gone by now, and its pair of interfaces with it.
    moved = {name: count - before.get(name, 0) for name, count in received(real).items()}
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout), moved


def checks(proof: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {check["name"]: (check["verdict"], check["evidence"]) for check in proof["checks"]}


def swept(proof: dict[str, Any]) -> int:
    """Bytes that each of two workers must have sent, whatever the algorithm: half of each tensor,
    twice.
    """
    evidence = proof["evidence"]
    return int(
        sum(
            point["bytes"] * evidence["operations"][str(point["bytes"])]
            for point in evidence["sweep"]
        )
    )


def test_the_all_reduce_takes_the_claimed_nics(dana: RealNode) -> None:
    code, proof, moved = verify(dana)
    assert code == 0, proof["checks"]
    found = checks(proof)
    for name in ("claims", "scheduling", "all-reduce", "sums", "transport", "NICs used", "traffic"):
        assert found[name][0] == "pass", found
    assert proof["evidence"]["seed"] == {"want": 3.0, "got": [[3.0] * 4] * 2}
    assert found["claims"][1] == f"{HALF} NICs of class dranet in each of 2 workers"
    # One worker has the first half of the NICs, and sent all its tensors by them; each carried its
    # part, in both directions.
    over_nics = [moved[GATEWAY.format(number)] for number in range(len(NICS))]
    assert min(sum(over_nics[:HALF]), sum(over_nics[HALF:])) >= swept(proof)
    assert min(over_nics) > sum(over_nics) / len(NICS) / 2
    assert sum(moved.values()) - sum(over_nics) < sum(over_nics) / 10


def test_an_interrupted_run_leaves_nothing(dana: RealNode) -> None:
    project = dana.project
    process = subprocess.Popen(
        ["berth", "verify", "fabric", "-s", OWNER],
        cwd=project.folder,
        env=dana.lab.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

    def states() -> list[str]:
        listed = dana.on_head(
            OWNER, "ray", "job", "list", "--address=http://127.0.0.1:8265", "--log-style=record"
        ).stdout
        return [state for state in ("PENDING", "RUNNING") if f"JobStatus.{state}" in listed]

    try:
        eventually(lambda: bool(states()), "Ray has the job")
    finally:
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr
    assert stdout == ""
    assert "Traceback" not in stderr
    assert project.get("rayjobs", "-n", NAMESPACE) == []
    eventually(lambda: states() == [], "Ray has stopped the job")
    eventually(
        lambda: project.get("pods", "-n", NAMESPACE, "-l", "berth/verify-run") == [],
        "its submitter is gone",
    )


def test_a_missing_claim_is_caught(dana: RealNode) -> None:
    bring_up(dana, 0)
    code, proof, moved = verify(dana)
    assert code == 1
    found = checks(proof)
    assert found["sums"][0] == "pass", found
    failed = {name: evidence for name, (verdict, evidence) in found.items() if verdict == "fail"}
    assert set(failed) >= {"claims", "transport"}
    assert "not using the fabric" in failed["claims"]
    assert "not using the fabric" in failed["transport"]
    over_nics = sum(count for name, count in moved.items() if name in GATEWAYS)
    assert over_nics < swept(proof) / 100 < sum(moved.values()) - over_nics

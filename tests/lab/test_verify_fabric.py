"""`berth verify fabric` on nodes without containers, end to end: claims, pairs and scheduling are
real and proven, the rest is said. Long: an environment with three more operators; test_prod has the
shipped one's proof.
"""

import json
from typing import Any

import pytest

from tests.lab.conftest import Lab
from tests.lab.project import HEAD, Project, Settings, brought_up, environment_settings, eventually

pytestmark = [pytest.mark.lab, pytest.mark.long]

NOT_RUN = {
    "environment",
    "locked memory",
    "sums",
    "transport",
    "NICs used",
    "traffic",
    "algorithm",
    "bandwidth",
}
NOT_RUN |= {"NCCL versions", "Ray's collective"}


def environment(lab: Lab) -> Settings:
    whole = {"machineType": "a4-highgpu-8g", "nodes": 2, "rdma": "networks", "gpuAllocation": "dra"}
    return environment_settings(
        lab,
        {
            "pairs": whole,
            "shared": {"machineType": "g2-standard-4", "nodes": 1, "sharing": "slices"},
        },
        *("gpu", "dranet", "gpuDra"),
        network={},
        sharing={"slices": {"kind": "time-slicing", "replicas": 4}},
        defaults={"head": HEAD},
        engineers={"bob": {"worker": {"pool": "shared", "gpus": 1, "cpu": 1, "memory": "2Gi"}}},
        clusters={
            "train": {
                "workers": 2,
                "worker": {"pool": "pairs", "gpus": 4, "cpu": 8, "memory": "64Gi"},
            }
        },
    )


@pytest.fixture(scope="module")
def fleet(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """An environment that is up, named `reduced`; each test leaves it as it found it."""
    return brought_up(tmp_path_factory.mktemp("verify-fabric"), lab, "reduced", environment(lab))


def verify(
    fleet: Project, *options: str, stack: str = "reduced"
) -> tuple[int, dict[str, Any], str]:
    """Exit code, JSON and what else was said of a run."""
    done = fleet.run("berth", "verify", "fabric", "-s", stack, "--json", *options, check=False)
    assert "Traceback" not in done.stderr
    assert done.stdout, done.stderr
    return done.returncode, dict(json.loads(done.stdout)), done.stderr


def checks(proof: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {check["name"]: (check["verdict"], check["evidence"]) for check in proof["checks"]}


def test_claims_pairs_and_scheduling_are_proven_and_skipped_checks_are_named(
    fleet: Project,
) -> None:
    before = fleet.versions()
    code, proof, output = verify(fleet)
    found = checks(proof)
    assert code == 0
    assert (proof["cluster"], proof["namespace"]) == ("train", "berth-train")
    assert found["claims"] == ("pass", "4 NICs of class dranet in each of 2 workers")
    assert found["pairs"] == ("pass", "each of 8 GPUs has the NIC of its PCIe root")
    assert found["scheduling"][0] == "pass"
    assert found["all-reduce"] == ("simulated", "simulated: this node runs no containers (KWOK)")
    assert {name: found[name] for name in NOT_RUN} == dict.fromkeys(
        NOT_RUN, ("skipped", "the all-reduce was not run")
    )
    assert proof["causes"] == []
    assert proof["threshold"] == {
        "bus": 140.0,
        "source": "70% of 4 × 400 Gbit/s (a4-highgpu-8g)",
        "always": False,
    }
    # No job is left waiting for containers that never run.
    assert fleet.get("rayjobs", "-A") == []
    assert fleet.versions() == before
    evidence, report = (
        fleet.folder / line.removeprefix("written: ")
        for line in output.splitlines()
        if "written" in line
    )
    assert json.loads(evidence.read_text()) == proof
    assert "each of 8 GPUs has the NIC of its PCIe root" in report.read_text()


def test_the_table_is_for_people_and_the_files_go_to_the_given_folder(fleet: Project) -> None:
    done = fleet.run(
        "berth", "verify", "fabric", "-s", "reduced", "--cluster", "train", "--output", "proof/here"
    )
    assert "4 NICs of class dranet" in done.stdout
    assert done.stdout.strip().splitlines()[-1] == "3 pass, 0 fail, 1 simulated, 10 skipped"
    assert sorted(path.name for path in (fleet.folder / "proof" / "here").iterdir()) == [
        "evidence.json",
        "report.html",
    ]


def test_a_cluster_without_claims_fails_with_the_cause(fleet: Project) -> None:
    shape = {"worker": {"pool": "pairs", "gpus": 1, "nics": 0, "cpu": 1, "memory": "2Gi"}}
    fleet.write("carol", engineer={"environment": "reduced", **shape})
    fleet.up("carol")
    code, proof, _ = verify(fleet, stack="carol")
    fleet.destroy("carol")
    verdict, evidence = checks(proof)["claims"]
    assert (code, verdict) == (1, "fail")
    assert evidence == "not using the fabric: its workers claim no NICs, since worker.nics is 0"
    assert proof["causes"][0]["look"] == "berth check"


def test_a_worker_that_waits_for_its_claim_has_the_schedulers_message(fleet: Project) -> None:
    nodes = [
        node["metadata"]["name"]
        for node in fleet.get("nodes", "-l", "cloud.google.com/gke-nodepool=pairs")
    ]
    fleet.run("kubectl", "cordon", *nodes)
    (worker, _) = fleet.workers("train")
    fleet.run(
        "kubectl", "delete", "pod", worker["metadata"]["name"], "-n", "berth-train", "--wait=true"
    )
    eventually(lambda: len(fleet.workers("train")) == 2, "KubeRay has made another worker")
    code, proof, _ = verify(fleet)
    fleet.run("kubectl", "uncordon", *nodes)
    found = checks(proof)
    assert code == 1
    assert found["claims"][0] == "fail"
    assert "nothing is allocated to its claim" in found["claims"][1]
    assert found["scheduling"][0] == "fail"
    assert "were unschedulable" in found["scheduling"][1]
    assert found["all-reduce"] == ("skipped", "not all workers are ready")
    assert [cause["text"] for cause in proof["causes"]][-1].startswith("a worker waits for a node")
    eventually(lambda: verify(fleet)[0] == 0, "the worker runs again")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-s", "reduced", "--cluster", "bob"], "pool 'shared' shares its GPUs"),
        (["-s", "dave", "--cluster", "train"], "berth verify fabric -s reduced --cluster train"),
        (["-s", "reduced", "--output", "Pulumi.yaml"], "--output: "),
        (["-s", "unborn"], "stack unborn has not been brought up"),
    ],
)
def test_bad_input_is_refused_with_a_remedy(
    fleet: Project, options: list[str], message: str
) -> None:
    fleet.write("unborn", environment=environment(fleet.lab))
    fleet.write("dave", engineer={"environment": "reduced", "worker": {"pool": "pairs", "gpus": 1}})
    refused = fleet.run("berth", "verify", "fabric", *options, check=False)
    assert refused.returncode == 2
    assert message in refused.stderr
    assert "Traceback" not in refused.stderr

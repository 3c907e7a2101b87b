"""Workers' parts for NCCL, by pool and settings."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from berth.components.fabric import SCRIPT, NcclParts, gib_variables_command, nccl_parts
from berth.components.fabric.nccl import PROFILES
from berth.components.fabric.settings import WorkerDevices
from berth.components.hardware.machines import GIB_PROFILES, MACHINES
from berth.components.ray.settings import WorkerShape
from tests.unit.cases import table
from tests.unit.components.fabric import (
    A4,
    BY_NETWORKS,
    CLAIMED,
    MANAGED,
    NVLINKED,
    PAIRED,
    complete,
)

A3_ULTRA = BY_NETWORKS | {"machineType": "a3-ultragpu-8g"}
TUNER = "NCCL_TUNER_CONFIG_PATH"


def parts(pool: dict[str, Any], kind: str = "clusters", **shape: Any) -> NcclParts:
    cluster, _ = complete(pool, kind, shape)
    return nccl_parts(cluster.groups[0])


@pytest.mark.parametrize(
    ("pool", "shape", "profile"),
    [
        (BY_NETWORKS, {}, "gib"),
        (MANAGED, {}, "gib"),
        (PAIRED, {"worker": {"gpus": 2}}, "gib"),
        (A3_ULTRA, {}, "gib"),
        (A3_ULTRA, {"nccl": {"profile": "a3-ultra"}}, "a3-ultra"),
        (BY_NETWORKS, {"worker": {"nics": 0}}, "single-node"),
        (BY_NETWORKS, {"worker": {"gpus": 0, "pool": "train", "nics": 8}}, "none"),
        (BY_NETWORKS, {"worker": {"gpus": 0, "pool": "cpu"}}, "none"),
        (BY_NETWORKS, {"nccl": {"profile": "none"}}, "none"),
        (BY_NETWORKS, {"nccl": {"profile": "auto"}}, "gib"),
        (BY_NETWORKS, {"nccl": {"profile": "a4"}}, "a4"),
        (BY_NETWORKS, {"nccl": {"profile": "gib"}}, "gib"),
        (BY_NETWORKS, {"nccl": {"profile": "gib"}, "worker": {"nics": 0}}, "single-node"),
        (A4, {"nccl": {"profile": "gib"}}, "none"),
        (A4, {}, "none"),
        (A4, {"nccl": {"profile": "single-node"}}, "single-node"),
        (CLAIMED, {}, "none"),
    ],
)
def test_the_profile_goes_by_machine_and_nics(
    pool: dict[str, Any], shape: dict[str, Any], profile: str
) -> None:
    cluster, _ = complete(pool, "clusters", shape)
    assert cluster.groups[0].nccl.profile == profile


def test_machines_with_rdma_have_a_profile_of_their_own_or_gibs() -> None:
    without = {
        machine.name for machine in MACHINES.values() if machine.rdma and not machine.series.nccl
    }
    assert without == {"a4x-highgpu-4g"}
    assert complete(NVLINKED, "clusters", {"image": "both"})[0].groups[0].nccl.profile == "gib"
    assert {"gib", *GIB_PROFILES, "single-node", "none"} == PROFILES.keys()


def test_what_nccl_is_told_where_gib_is_on_the_node_and_the_pod_has_no_nics() -> None:
    of_nccl = parts(BY_NETWORKS, worker={"nics": 0})
    assert of_nccl == NcclParts(env={"NCCL_TUNER_PLUGIN": "none", "NCCL_NET_PLUGIN": ""})


def test_without_a_fabric_a_worker_has_nothing_for_nccl() -> None:
    assert parts(A4) == NcclParts()


def test_a_worker_without_gpus_or_nics_has_nothing_for_nccl() -> None:
    given = {
        "worker": {"gpus": 0, "pool": "cpu"},
        "nccl": {"env": {"NCCL_DEBUG": "WARN"}, "sharedMemory": "1Gi"},
    }
    assert parts(BY_NETWORKS, "engineers", **given) == NcclParts()


def test_nics_without_gpus_get_shared_memory_and_nothing_of_gib() -> None:
    of_nccl = parts(BY_NETWORKS, "engineers", worker={"gpus": 0, "pool": "train", "nics": 8})
    assert of_nccl.env == {}
    assert [mount["name"] for mount in of_nccl.mounts] == ["shared-memory"]


def test_a_profile_is_laid_under_nccl_env() -> None:
    env = parts(
        BY_NETWORKS,
        nccl={"env": {"NCCL_DEBUG": "WARN", "NCCL_ALGO": "Ring", "NCCL_NET_PLUGIN": ""}},
    ).env
    assert env == PROFILES["gib"] | {
        "NCCL_DEBUG": "WARN",
        "NCCL_ALGO": "Ring",
        "NCCL_NET_PLUGIN": "",
    }


@pytest.mark.parametrize(
    ("pool", "worker", "expected"),
    [
        (BY_NETWORKS, {}, "/opt/nccl/lib:/usr/local/gib/lib64:/usr/local/nvidia/lib64"),
        (BY_NETWORKS, {"nics": 0}, "/opt/nccl/lib:/usr/local/nvidia/lib64"),
        (A4, {}, "/opt/nccl/lib:/usr/local/nvidia/lib64"),
    ],
)
def test_libraries_of_the_image_come_before_the_nodes(
    pool: dict[str, Any], worker: dict[str, Any], expected: str
) -> None:
    assert (
        parts(pool, worker=worker, nccl={"libraryPath": "/opt/nccl/lib"}).env["LD_LIBRARY_PATH"]
        == expected
    )


SCRIPT_TEXT = (
    "export NCCL_NET=gIB NCCL_DEBUG=TRACE NCCL_SOCKET_IFNAME=eth0,eth1 NCCL_TUNER_PLUGIN=of-gib;"
    " false"
)


def test_gibs_values_win_over_the_images_and_lose_against_the_pods(tmp_path: Path) -> None:
    script = tmp_path / "set_nccl_env.sh"
    pod = {"NCCL_DEBUG": 'it\'s "quoted" $HOME', "NCCL_SOCKET_IFNAME": "eth0", "RAY_X": "1"}
    command = f"{gib_variables_command(pod).replace(SCRIPT, str(script))} && env"
    image = {"PATH": os.defpath, "NCCL_TUNER_PLUGIN": "of-the-image", "NCCL_ALGO": "Ring"}

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", command], env=image | pod, capture_output=True, text=True, check=False
        )

    refused = run()
    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"{script}: No such file" in refused.stderr
    script.write_text(SCRIPT_TEXT)
    assert {**image, **pod, "NCCL_NET": "gIB", "NCCL_TUNER_PLUGIN": "of-gib"}.items() <= dict(
        line.split("=", 1) for line in run().stdout.splitlines()
    ).items()


@pytest.mark.parametrize(("memory", "given", "size"), table(__file__, "shared_memory.yaml"))
def test_shared_memory(memory: str, given: dict[str, Any], size: str) -> None:
    of_nccl = parts(BY_NETWORKS, worker={"memory": memory}, nccl=given)
    assert of_nccl.volumes[-1] == {
        "name": "shared-memory",
        "emptyDir": {"medium": "Memory", "sizeLimit": size},
    }
    assert of_nccl.mounts[-1] == {"name": "shared-memory", "mountPath": "/dev/shm"}  # noqa: S108


def test_every_mount_has_its_volume() -> None:
    of_nccl = parts(MANAGED)
    assert [volume["name"] for volume in of_nccl.volumes] == [
        mount["name"] for mount in of_nccl.mounts
    ]
    assert {volume["name"]: volume.get("hostPath") for volume in of_nccl.volumes} == {
        "library-dir-host": {"path": "/home/kubernetes/bin/nvidia"},
        "gib": {"path": "/home/kubernetes/bin/gib"},
        "shared-memory": None,
    }


def test_a_worker_has_the_settings_that_rules_of_its_devices_name() -> None:
    assert WorkerDevices.model_fields.keys() <= WorkerShape.model_fields.keys()

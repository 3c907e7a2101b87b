"""What a real GPU printed (tests/gpu), beside what berth and the lab say of one."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from berth.components.hardware.machines import GPUS, MACHINES
from berth.components.hardware.names import ACCELERATOR_LABEL
from berth.components.programs import cdi
from berth.components.proof.cuda_vector_add import SUCCESS
from berth.components.proof.fabric.claims import Expected
from berth.components.proof.fabric.evidence import FabricEvidence
from berth.components.proof.fabric.threshold import threshold_of
from berth.components.proof.fabric.verdicts import judge_evidence
from berth.components.sharing.device_plugin import plugin_config
from berth.components.sharing.modes import AnyMode, SharingProfile
from berth.lab.devices.operands import features, serve
from berth.lab.devices.plugin_config import parse
from berth.lab.realnode import device_plugin
from berth.lab.realnode.configuration import GPU_KIND
from tests.gpu.kubelet import Kubelet
from tests.gpu.proof import OPERATOR, PROFILES

RECORDED = json.loads((Path(__file__).parents[1] / "gpu" / "recorded.json").read_text())
PLUGIN, LABELS, CDI, ADDED, REDUCED = RECORDED["parts"].values()
GPU = RECORDED["gpus"][0]
MACHINE = MACHINES["a3-ultragpu-8g"]
NODE = {ACCELERATOR_LABEL: "nvidia-h200-141gb", "cloud.google.com/gke-accelerator-count": "1"}


def profile(name: str) -> AnyMode:
    return TypeAdapter[AnyMode](SharingProfile).validate_python(PROFILES[name])


def test_all_parts_ran() -> None:
    assert [
        name for name, part in RECORDED["parts"].items() if part.keys() & {"skipped", "failed"}
    ] == []


@pytest.mark.parametrize("name", PROFILES)
def test_nodes_advertise_what_the_plugin_advertised(name: str) -> None:
    case = PLUGIN["cases"][name]
    mode = profile(name)
    advertised = {case["resource"]: len(case["devices"])}
    assert serve(NODE, OPERATOR["MIG_STRATEGY"], parse(plugin_config(mode)), {}) == advertised
    assert {mode.facts.resource: mode.per_gpu(MACHINE)} == advertised


@pytest.mark.parametrize("name", PROFILES)
def test_one_gpu_is_behind_all_shares_and_two_are_refused_where_the_profile_says_so(
    name: str,
) -> None:
    for answer in PLUGIN["cases"][name]["allocated"]:
        if len(answer["devices"]) > 1 and profile(name).facts.one_each:
            assert "maximum request size for shared resources is 1" in answer["refused"]
        else:
            assert (answer["cdi"], answer["env"], answer["files"]) == (
                [f"{GPU_KIND}={GPU['uuid']}"],
                {},
                [],
            )
            assert answer["annotations"] == answer["cdi"]


@pytest.mark.parametrize("name", PROFILES)
def test_labels_are_those_of_gpu_feature_discovery(name: str) -> None:
    lab = features(NODE, OPERATOR["MIG_STRATEGY"], parse(plugin_config(profile(name))), {})
    del lab["nvidia.com/gpu.machine"]  # that of the machine, which was not Google's
    found = {
        key: value
        for key, value in LABELS[name].items()
        if not key.startswith(("nvidia.com/cuda", "nvidia.com/vgpu"))
    }
    del found["nvidia.com/gpu.machine"]
    assert lab == found


def test_the_hardware_table_has_the_gpu_as_its_driver_names_it() -> None:
    named = [gpu for gpu in GPUS.values() if gpu.driver_name == GPU["name"]]
    assert [f"{gpu.driver_memory_mib} MiB" for gpu in named] == [GPU["memory.total"]]


@pytest.fixture
def container(tmp_path: Path) -> Path:
    """Root folder with the recorded files, as a privileged container has them."""
    for name, text in CDI["files"].items():
        path = tmp_path / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name, target in CDI["links"].items():
        (tmp_path / name.lstrip("/")).symlink_to(target)
    (tmp_path / "proc/self").mkdir()
    (tmp_path / "proc/self/status").write_text("CapBnd:\t000001fffeffffff\n")
    return tmp_path


def test_the_cdi_specification_of_the_recorded_files_is_the_one_that_ran(container: Path) -> None:
    assert (
        cdi.specification(cdi.gpus_of_container(container, {"NVIDIA_VISIBLE_DEVICES": GPU["uuid"]}))
        == CDI["specification"]
    )
    with pytest.raises(cdi.UnclearError) as unclear:
        cdi.gpus_of_container(container, {})
    assert CDI["unnamed"] == {"code": cdi.UNCLEAR, "error": f"error: {unclear.value}\n"}


def test_the_cdi_specification_has_nvidias_device_files_and_a_privileged_containers() -> None:
    def files(specification: dict[str, Any], name: str) -> set[str]:
        device = next(device for device in specification["devices"] if device["name"] == name)
        edits = (specification["containerEdits"], device["containerEdits"])
        return {node["path"] for edit in edits for node in edit["deviceNodes"]}

    # The machine stood in for a privileged container, which sees what manages a node's MIG, too.
    theirs = files(PLUGIN["specifications"]["nvidia.com-gpu"], GPU["uuid"])
    managing = {"/dev/nvidia-caps/nvidia-cap1", "/dev/nvidia-caps/nvidia-cap2"}
    assert {
        name: files(CDI["specification"], name) for name in (GPU["uuid"], "0", cdi.ALL)
    } == dict.fromkeys((GPU["uuid"], "0", cdi.ALL), theirs | managing)


def test_nvidias_sample_says_what_the_proof_looks_for() -> None:
    assert {
        name: [SUCCESS in text for text in ADDED[name]] for name in ADDED if name != "nvcc"
    } == {
        "alone": [True],
        "four at once": [True] * 4,
        "by the CDI file": [True],
    }


def test_one_worker_needs_no_fabric() -> None:
    expected = Expected(
        "berth",
        workers=1,
        gpus=1,
        nics=0,
        claimed_gpus=False,
        device_class="",
        why_no_nics="one GPU",
    )
    found = judge_evidence(
        FabricEvidence.model_validate(REDUCED), expected, threshold_of(MACHINE, 0, None)
    )
    verdicts = {check.name: check.verdict for check in found.checks}
    assert {name for name, verdict in verdicts.items() if verdict == "pass"} == {
        "all-reduce",
        "sums",
        "NCCL versions",
    }
    assert "fail" not in verdicts.values()


def test_the_stand_in_for_the_kubelet_learns_what_a_plugin_serves(tmp_path: Path) -> None:
    ended = threading.Event()
    serving = threading.Thread(target=device_plugin.serve_once, args=(tmp_path, 2, ended))
    with Kubelet(tmp_path / "kubelet.sock") as kubelet:
        serving.start()
        found = kubelet.ask(tmp_path)
        ended.set()
        serving.join()
    assert (found["resource"], list(found["devices"])) == ("nvidia.com/gpu", ["0", "1"])
    assert [answer["cdi"] for answer in found["allocated"]] == [
        [f"{GPU_KIND}={number}" for number in range(count)] for count in (1, 2)
    ]

"""The program that writes a pod's CDI specification."""

import ast
import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from berth.components.programs import cdi
from tests.containers.pods import LOADER, PODS, PRIVILEGED, Pod, uuid

SCHEMA = Path(__file__).parents[3] / "containers" / "cdi-schema.json"
CHECK = Path(sys.executable).with_name("check-jsonschema")
PROGRAMS = ("cdi.py", "podman.py")


def run(root: Path, folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, cdi.__file__, f"--root={root}", f"--folder={folder}"]
    env = {"PATH": os.environ["PATH"], **environ}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def specification(root: Path, pod: Pod, nvml: Any = None) -> dict[str, Any]:
    return cdi.specification(cdi.gpus_of_container(root, pod.env, nvml))


def devices(document: dict[str, Any]) -> dict[str, set[str]]:
    """Device files below /dev by name of the device."""
    return {
        device["name"]: {
            node["path"].removeprefix("/dev/")
            for node in device["containerEdits"].get("deviceNodes", [])
        }
        for device in document["devices"]
    }


@pytest.mark.parametrize("name", PODS)
def test_the_devices_are_those_of_the_pod_and_no_others(tmp_path: Path, name: str) -> None:
    pod = PODS[name]
    pod.write(tmp_path)
    document = specification(tmp_path, pod)
    assert devices(document) == pod.expected
    common = {node["path"] for node in document.get("containerEdits", {}).get("deviceNodes", [])}
    files = {f"/dev/{file}" for files in pod.expected.values() for file in files}
    assert files | common == {f"/dev/{file}" for file in pod.devices}


def test_every_specification_keeps_to_the_schema(tmp_path: Path) -> None:
    files = []
    for number, pod in enumerate(PODS.values()):
        pod.write(tmp_path / str(number))
        files.append(
            cdi.write_specification(
                specification(tmp_path / str(number), pod), tmp_path / str(number)
            )
        )
    checked = subprocess.run(
        [CHECK, "--schemafile", SCHEMA, *files], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout


def test_numbers_follow_the_pci_addresses_as_cudas_do(tmp_path: Path) -> None:
    pod = Pod(gpus=(0, 1), node={0: "0000:c0:00.0", 1: "0000:0a:00.0"}, expected={})
    pod.write(tmp_path)
    found = devices(specification(tmp_path, pod))
    assert (found["0"], found["1"]) == ({"nvidia1"}, {"nvidia0"})


def mounts(root: Path, pod: Pod) -> dict[str, str]:
    return {
        mount["containerPath"]: mount["hostPath"]
        for mount in specification(root, pod)["containerEdits"].get("mounts", [])
    }


def test_libraries_of_gkes_folder_are_where_any_debian_image_finds_them(tmp_path: Path) -> None:
    pod = PODS["one GPU of eight, by GKE's device plugin"]
    pod.write(tmp_path)
    assert mounts(tmp_path, pod) == {
        "/usr/local/nvidia": "/usr/local/nvidia",
        f"{LOADER}/libcuda.so.1": "/usr/local/nvidia/lib64/libcuda.so.1",
        f"{LOADER}/libnvidia-ml.so.1": "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
    }


def test_libraries_among_the_images_own_stay_where_they_are(tmp_path: Path) -> None:
    pod = PODS["two GPUs of eight, by NVIDIA's device plugin"]
    pod.write(tmp_path)
    paths = [
        *(f"{LOADER}/lib{name}" for name in ("cuda.so.1", "cuda.so.580.65.06", "nvidia-ml.so.1")),
        "/usr/bin/nvidia-smi",
    ]
    assert mounts(tmp_path, pod) == {path: path for path in paths}


def test_a_share_of_mps_comes_with_its_pipes(tmp_path: Path) -> None:
    env = {"CUDA_MPS_PIPE_DIRECTORY": "/mps/nvidia.com/gpu/pipe"}
    pod = Pod(gpus=(0,), files={"mps/nvidia.com/gpu/pipe/control": ""}, env=env, expected={})
    pod.write(tmp_path)
    edits = specification(tmp_path, pod)["containerEdits"]
    assert edits["env"] == [
        "NVIDIA_VISIBLE_DEVICES=void",
        "CUDA_MPS_PIPE_DIRECTORY=/mps/nvidia.com/gpu/pipe",
    ]
    (mount,) = edits["mounts"]
    assert mount["options"][0] == "rw"


def put(reference: Any, value: int) -> None:
    """Write as a C function does through ctypes.byref(variable)."""
    reference._obj.value = value  # noqa: SLF001


class Nvml:
    """NVIDIA's library for one GPU with two parts, whose device file is nvidia2."""

    PARTS = ((1, 0, b"MIG-1"), (5, 0, b"MIG-5"))

    def __init__(self, *, broken: bool = False) -> None:
        self.open = 0
        self._broken = broken

    def nvmlInit_v2(self) -> int:  # noqa: N802
        self.open += not self._broken
        return int(self._broken)

    def nvmlShutdown(self) -> int:  # noqa: N802
        self.open -= 1
        return 0

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:  # noqa: N802
        put(count, 1)
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index: int, handle: Any) -> int:  # noqa: N802
        put(handle, 100 + index)
        return 0

    def nvmlDeviceGetMinorNumber(self, _handle: Any, number: Any) -> int:  # noqa: N802
        put(number, 2)
        return 0

    def nvmlDeviceGetMaxMigDeviceCount(self, _handle: Any, number: Any) -> int:  # noqa: N802
        put(number, 7)
        return 0

    def nvmlDeviceGetMigDeviceHandleByIndex(self, _handle: Any, index: int, part: Any) -> int:  # noqa: N802
        if index >= len(self.PARTS):
            return 6
        put(part, 1 + index)
        return 0

    def nvmlDeviceGetGpuInstanceId(self, part: Any, number: Any) -> int:  # noqa: N802
        put(number, self.PARTS[part.value - 1][0])
        return 0

    def nvmlDeviceGetComputeInstanceId(self, part: Any, number: Any) -> int:  # noqa: N802
        put(number, self.PARTS[part.value - 1][1])
        return 0

    def nvmlDeviceGetUUID(  # noqa: N802
        self, handle: Any, buffer: ctypes.Array[ctypes.c_char], _size: int
    ) -> int:
        buffer.value = b"GPU-2" if handle.value >= 100 else self.PARTS[handle.value - 1][2]
        return 0


def test_nvml_names_the_parts_of_a_gpu(tmp_path: Path) -> None:
    pod = PODS["two parts of a GPU, by MIG"]
    nvml = Nvml()
    pod.write(tmp_path)
    named = devices(specification(tmp_path, pod, nvml))
    assert named == {**pod.expected, "MIG-1": pod.expected["0:0"], "MIG-5": pod.expected["0:1"]}
    assert nvml.open == 0


def test_nvml_names_a_gpu_where_the_driver_does_not(tmp_path: Path) -> None:
    pod = Pod(gpus=(2,), expected={})
    pod.write(tmp_path)
    assert devices(specification(tmp_path, pod, Nvml())) == {
        name: {"nvidia2"} for name in ("0", "GPU-2", "all")
    }
    assert "GPU-2" not in devices(specification(tmp_path, pod, Nvml(broken=True)))


@pytest.mark.parametrize("visible", [uuid(6), "6", f"{uuid(6)},{uuid(6)}"])
def test_a_privileged_pod_has_all_device_files_and_gets_its_own(
    tmp_path: Path, visible: str
) -> None:
    pod = Pod(
        gpus=tuple(range(8)),
        node=PODS["no GPU"].node,
        env={"NVIDIA_VISIBLE_DEVICES": visible},
        expected={},
    )
    pod.write(tmp_path, status=PRIVILEGED)
    assert devices(specification(tmp_path, pod)) == {
        name: {"nvidia6"} for name in ("0", uuid(6), "all")
    }


@pytest.mark.parametrize("visible", ["", "all", "void", "GPU-of-elsewhere"])
def test_a_privileged_pod_that_is_not_told_its_gpus_gets_none_of_its_neighbors(
    tmp_path: Path, visible: str
) -> None:
    Pod(gpus=(0, 1), node=PODS["no GPU"].node, expected={}).write(tmp_path, status=PRIVILEGED)
    done = run(tmp_path, tmp_path, NVIDIA_VISIBLE_DEVICES=visible)
    assert done.returncode == 3
    assert done.stderr.startswith(
        "error: this container is privileged, so it has the device files of all 2 GPUs"
    )
    assert not (tmp_path / cdi.FILE).exists()


def test_it_says_what_it_wrote(tmp_path: Path) -> None:
    output = []
    for number, pod in enumerate(PODS.values()):
        pod.write(tmp_path / str(number))
        done = run(tmp_path / str(number), tmp_path / str(number), **pod.env)
        assert (done.returncode, done.stderr) == (0, "")
        output.append(done.stdout.split(":")[0])
    assert output == ["no GPU", "1 GPU", "2 GPUs", "2 GPUs", "8 GPUs", "2 parts of 1 GPU"]


def written(path: Path) -> tuple[int, int]:
    """Inode and time of the last write of a file, which a reader doesn't change."""
    return path.stat().st_ino, path.stat().st_mtime_ns


def test_it_writes_the_file_whole_and_only_when_it_changes(tmp_path: Path) -> None:
    document = cdi.specification(cdi.ContainerGpus(gpus=(cdi.GpuDevice(0),)))
    path = cdi.write_specification(document, tmp_path)
    before = written(path)
    assert (path.stat().st_mode & 0o777, list(tmp_path.iterdir())) == (0o644, [path])
    cdi.write_specification(document, tmp_path)
    assert written(path) == before
    cdi.write_specification(cdi.specification(cdi.ContainerGpus()), tmp_path)
    assert path.stat().st_ino != before[0]
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    PODS["no GPU"].write(tmp_path)
    done = run(tmp_path, tmp_path / "missing")
    assert done.returncode == 4
    assert (
        done.stderr
        == f"error: the CDI specification cannot be written to {tmp_path}/missing: No such file or"
        " directory; podman would see no GPU or those of another pod. Mount an emptyDir there"
        " that the container's user may write to\n"
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_pods_programs_are_of_pythons_own_library_and_of_python_3_9(name: str) -> None:
    text = (Path(cdi.__file__).parent / name).read_text()
    tree = ast.parse(text, feature_version=(3, 9))
    imported = {
        module.split(".")[0]
        for node in ast.walk(tree)
        for module in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported <= sys.stdlib_module_names
    assert "match" not in {type(node).__name__.lower() for node in ast.walk(tree)}

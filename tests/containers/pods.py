"""Ray pods with the files of NVIDIA's and Google's device plugins: /dev, the driver's /proc,
libraries.
"""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

CONTROL = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
UNPRIVILEGED = "CapBnd:\t0000000000000000\n"
PRIVILEGED = "CapBnd:\t000001ffffffffff\n"

# Of GKE's device plugin: the node's folder of the driver, as a volume.
GKE_LIBRARIES = {
    "usr/local/nvidia/lib64/libcuda.so.1": "libcuda of the node\n",
    "usr/local/nvidia/lib64/libnvidia-ml.so.1": "libnvidia-ml of the node\n",
    "usr/local/nvidia/lib64/libnccl.so.2": "not the driver's\n",
    "usr/local/nvidia/bin/nvidia-smi": "nvidia-smi of the node\n",
}
# Of NVIDIA's container runtime, and of DRA drivers: single files among the image's own.
TOOLKIT_LIBRARIES = {
    "usr/lib/x86_64-linux-gnu/libcuda.so.1": "libcuda of the node\n",
    "usr/lib/x86_64-linux-gnu/libcuda.so.580.65.06": "libcuda of the node\n",
    "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1": "libnvidia-ml of the node\n",
    "usr/bin/nvidia-smi": "nvidia-smi of the node\n",
}
LOADER = "/usr/lib/x86_64-linux-gnu"


def uuid(minor: int) -> str:
    return f"GPU-{minor:08d}-0000-4000-8000-000000000000"


@dataclass(frozen=True)
class Pod:
    """A pod's container.

    Attributes:
        gpus: numbers of the device files that it has.
        node: PCI addresses of the node's GPUs by number of their device files: the driver tells of
            all of them, to everyone.
        files: other files.
        env: its environment.
        capabilities: numbers of MIG's device files that it has.
        expected: devices of the specification: which files below /dev each gives, beside the
            control files.
    """

    gpus: tuple[int, ...]
    expected: Mapping[str, set[str]]
    node: Mapping[int, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    capabilities: tuple[int, ...] = ()

    @property
    def devices(self) -> list[str]:
        """Device files of the pod, below /dev."""
        own = [f"nvidia{minor}" for minor in self.gpus] + [
            f"nvidia-caps/nvidia-cap{cap}" for cap in self.capabilities
        ]
        return [*own, *(CONTROL if self.gpus else ())]

    def write(self, root: Path, *, status: str = UNPRIVILEGED) -> None:
        """Write the pod's files below a folder, with plain files for device files.

        Args:
            root: the folder.
            status: what /proc/self/status says.
        """
        contents = (
            {f"dev/{name}": "" for name in self.devices}
            | dict(self.files)
            | {"proc/self/status": status}
        )
        for minor, address in self.node.items():
            contents[f"proc/driver/nvidia/gpus/{address}/information"] = (
                f"Model: \t\t NVIDIA A100-SXM4-40GB\nIRQ:   \t\t 24\nGPU UUID: \t {uuid(minor)}\n"
                f"Bus Location: \t {address}\nDevice Minor: \t {minor}\n"
            )
        (root / "dev").mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)

    def make_device_files(self, root: Path) -> None:
        """Replace device files by the null device under their names. Needs root."""
        for name in self.devices:
            path = root / "dev" / name
            path.unlink()
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
            path.chmod(0o666)


def _whole(gpus: tuple[int, ...], *, uuids: bool = True) -> dict[str, set[str]]:
    by_index = {str(index): {f"nvidia{minor}"} for index, minor in enumerate(gpus)}
    by_uuid = {uuid(minor): {f"nvidia{minor}"} for minor in gpus} if uuids else {}
    return {**by_index, **by_uuid, "all": {f"nvidia{minor}" for minor in gpus}}


def _mig() -> Pod:
    """Pod with two MIG instances of GPU 2 of four: a device plugin hands an instance out as three
    files.
    """
    files = dict(TOOLKIT_LIBRARIES)
    numbers = {"gi1": 30, "gi1/ci0": 31, "gi5": 66, "gi5/ci0": 67, "gi6": 75, "gi6/ci0": 76}
    for part, number in numbers.items():
        files[f"proc/driver/nvidia/capabilities/gpu2/mig/{part}/access"] = (
            f"DeviceFileMinor: {number}\nDeviceFileMode: 292\nDeviceFileModify: 1\n"
        )
    first = {"nvidia2", "nvidia-caps/nvidia-cap30", "nvidia-caps/nvidia-cap31"}
    second = {"nvidia2", "nvidia-caps/nvidia-cap66", "nvidia-caps/nvidia-cap67"}
    return Pod(
        gpus=(2,),
        node=_node(4),
        files=files,
        env={
            "NVIDIA_VISIBLE_DEVICES": ",".join(
                f"MIG-{8 * digit}-0000-4000-8000-000000000000" for digit in "12"
            )
        },
        capabilities=(30, 31, 66, 67),
        expected={"0:0": first, "0:1": second, "all": first | second},
    )


def _node(count: int) -> dict[int, str]:
    return {minor: f"0000:{0x10 + minor:02x}:00.0" for minor in range(count)}


PODS = {
    "no GPU": Pod(
        gpus=(), node=_node(8), env={"NVIDIA_VISIBLE_DEVICES": "void"}, expected={"all": set()}
    ),
    "one GPU of eight, by GKE's device plugin": Pod(
        gpus=(5,), node=_node(8), files=GKE_LIBRARIES, expected=_whole((5,))
    ),
    "two GPUs of eight, by NVIDIA's device plugin": Pod(
        gpus=(1, 6),
        node=_node(8),
        files=TOOLKIT_LIBRARIES,
        env={"NVIDIA_VISIBLE_DEVICES": f"{uuid(1)},{uuid(6)}"},
        expected=_whole((1, 6)),
    ),
    "two GPUs, where the driver tells nothing": Pod(
        gpus=(0, 3), files=TOOLKIT_LIBRARIES, expected=_whole((0, 3), uuids=False)
    ),
    "all eight GPUs of a node, claimed": Pod(
        gpus=tuple(range(8)),
        node=_node(8),
        files=TOOLKIT_LIBRARIES,
        env={"NVIDIA_VISIBLE_DEVICES": "void"},
        expected=_whole(tuple(range(8))),
    ),
    "two parts of a GPU, by MIG": _mig(),
}

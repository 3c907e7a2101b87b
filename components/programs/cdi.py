#!/usr/bin/env python3
"""Writes a CDI specification of the GPUs that this container has: what `podman run --device nvidia.com/gpu=all` reads.

The format is https://github.com/cncf-tags/container-device-interface/blob/main/SPEC.md. What is looked at: the device files in /dev,
NVIDIA_VISIBLE_DEVICES, the driver's own files in /proc/driver/nvidia, and NVML where those don't say enough. It makes no difference
whether a device plugin, NVIDIA's container runtime or a DRA driver put the devices there.

Exit codes: 0 written (a container without GPUs has a specification of none), 2 wrong arguments, 3 it can't be told which of the GPUs
are this container's, 4 the file can't be written.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VERSION = "0.5.0"
"""Of the format: the first that has all that is used here (names that begin with a digit). A reader refuses what is newer than
itself, and Debian 12's podman 4.3.1 knows nothing newer."""

KIND = "nvidia.com/gpu"
FOLDER = "/etc/cdi"
FILE = "nvidia.com-gpu.json"
ALL = "all"

UNCLEAR = 3
NOT_WRITTEN = 4

# Every container with a GPU needs them; which GPUs it may use is decided by the numbered ones alone.
_CONTROL = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset", "nvidia-caps-imex-channels/channel*")

# Where the driver's files are: GKE's device plugin has them in a folder of their own; NVIDIA's container runtime, and CDI, put them
# among the image's own libraries and programs.
_OWN_FOLDER = "usr/local/nvidia"
_OWN_LIBRARIES = ("usr/local/nvidia/lib64", "usr/local/nvidia/lib")
_SHARED_LIBRARIES = ("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64")
_LIBRARIES = re.compile(r"lib(cuda|cudadebugger|nvcuvid|nvoptix|nvidia-(?!container)[a-z0-9-]+)\.so(\.[0-9.]+)?")
_PROGRAMS = (
    "usr/bin/nvidia-smi",
    "usr/bin/nvidia-debugdump",
    "usr/bin/nvidia-cuda-mps-control",
    "usr/bin/nvidia-cuda-mps-server",
)
# Where the nested image's loader looks without being told, on Debian and Ubuntu.
_LOADER_FOLDERS = {"x86_64": "/usr/lib/x86_64-linux-gnu", "aarch64": "/usr/lib/aarch64-linux-gnu"}
_MPS = "CUDA_MPS_PIPE_DIRECTORY"

_SYS_ADMIN = 21
"""Number of the capability that a privileged container has and another has not (linux/capability.h)."""

_NO_NAMES = ("", "void", "none", "all")


class UnclearError(Exception):
    """It can't be told which GPUs are this container's."""


@dataclass(frozen=True)
class Gpu:
    """A GPU.

    Attributes:
        minor: number of its device file.
        uuid: as `GPU-…`; None where nobody says it.
    """

    minor: int
    uuid: str | None = None


@dataclass(frozen=True)
class Instance:
    """A part of a GPU, by MIG.

    Attributes:
        minor: number of the GPU's device file.
        gpu_instance: number of its part of the GPU.
        compute_instance: number of its part of that part.
        files: device files that give access to it, below /dev.
        uuid: as `MIG-…`; None where nobody says it.
    """

    minor: int
    gpu_instance: int
    compute_instance: int
    files: tuple[str, ...]
    uuid: str | None = None


@dataclass(frozen=True)
class Found:
    """The GPUs of a container, and what comes with them.

    Attributes:
        gpus: in the order in which CUDA counts them.
        instances: parts of them, where the container has parts.
        capabilities: all device files of MIG that it has, below /dev.
        control: other device files, below /dev.
        mounts: files and folders of the driver: where they are, and where they go.
        env: environment variables.
    """

    gpus: tuple[Gpu, ...] = ()
    instances: tuple[Instance, ...] = ()
    capabilities: tuple[str, ...] = ()
    control: tuple[str, ...] = ()
    mounts: tuple[tuple[str, str], ...] = ()
    env: tuple[str, ...] = ()


@dataclass(frozen=True)
class Identities:
    """What NVML says of names.

    Attributes:
        gpus: UUIDs by number of the device file.
        instances: UUIDs of MIG's parts by that number, GPU instance and compute instance.
    """

    gpus: Mapping[int, str]
    instances: Mapping[tuple[int, int, int], str]


def find(root: Path, environ: Mapping[str, str], nvml: Any | None = None) -> Found:
    """What a container has.

    Args:
        root: its root folder.
        environ: its environment.
        nvml: NVIDIA's management library, loaded; None where there is none.

    Raises:
        UnclearError: the container sees all devices of its node, and nobody says which are its own.
    """
    told = {minor: (bus, uuid) for minor, bus, uuid in _driver_told(root)}
    minors = [int(name[6:]) for name in _files(root, "nvidia*") if re.fullmatch(r"nvidia\d+", name)]
    capabilities = tuple(_files(root, "nvidia-caps/nvidia-cap*"))
    identities = Identities({}, {})
    if nvml is not None and (capabilities or any(told.get(minor, ("", ""))[1] == "" for minor in minors)):
        identities = ask(nvml)
    gpus = [
        Gpu(minor, told.get(minor, ("", ""))[1] or identities.gpus.get(minor))
        # CUDA and NVML count in the order of PCI's addresses.
        for minor in sorted(minors, key=lambda minor: (told.get(minor, ("~", ""))[0], minor))
    ]
    gpus = _own(gpus, environ.get("NVIDIA_VISIBLE_DEVICES", ""), privileged=_privileged(root))
    if not gpus:
        return Found()
    mounts = [*_libraries(root), *((f"/{path}", f"/{path}") for path in _PROGRAMS if (root / path).exists())]
    env = []
    pipes = environ.get(_MPS, "")
    if pipes and (root / pipes.lstrip("/")).is_dir():
        mounts.append((pipes, pipes))
        env.append(f"{_MPS}={pipes}")
    return Found(
        gpus=tuple(gpus),
        instances=tuple(_instances(root, gpus, capabilities, identities)),
        capabilities=capabilities,
        control=tuple(name for pattern in _CONTROL for name in _files(root, pattern)),
        mounts=tuple(mounts),
        env=tuple(env),
    )


def _files(root: Path, pattern: str) -> list[str]:
    """Names below /dev, in the order of the numbers in them."""
    names = [str(path.relative_to(root / "dev")) for path in (root / "dev").glob(pattern) if not path.is_dir()]
    return sorted(names, key=lambda name: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)])


def _driver_told(root: Path) -> Iterable[tuple[int, str, str]]:
    """Of each GPU of the node: number of its device file, PCI address, and UUID, "" where it is not known yet."""
    for path in sorted((root / "proc/driver/nvidia/gpus").glob("*/information")):
        lines = [line.partition(":") for line in _text(path).splitlines()]
        values = {key.strip(): value.strip() for key, _, value in lines}
        if values.get("Device Minor", "").isdigit():
            uuid = values.get("GPU UUID", "")
            yield int(values["Device Minor"]), path.parent.name, uuid if "?" not in uuid else ""


def _text(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace")
    return ""


def _privileged(root: Path) -> bool:
    found = re.search(r"^CapBnd:\s*([0-9a-f]+)", _text(root / "proc/self/status"), re.MULTILINE)
    return bool(found and int(found.group(1), 16) >> _SYS_ADMIN & 1)


def _own(gpus: list[Gpu], visible: str, *, privileged: bool) -> list[Gpu]:
    """Those GPUs among the visible ones that are the container's own.

    A privileged container has all device files of its node, whatever it was given; any other has its own alone.
    """
    names = [] if visible in _NO_NAMES else sorted(set(visible.split(",")))
    if not privileged or not gpus:
        return gpus
    by_uuid = {gpu.uuid: gpu for gpu in gpus if gpu.uuid}
    if names and all(name in by_uuid for name in names):
        return [gpu for gpu in gpus if gpu.uuid in names]
    if names and all(name.isdigit() and int(name) < len(gpus) for name in names):
        return [gpus[int(name)] for name in sorted(names, key=int)]
    said = (
        f"NVIDIA_VISIBLE_DEVICES={visible} names none of them"
        if names
        else "NVIDIA_VISIBLE_DEVICES doesn't say which are its own"
    )
    raise UnclearError(
        f"this container is privileged, so it has the device files of all {len(gpus)} GPUs of its node, and {said}; run it"
        " unprivileged, and it has those of its own GPUs alone"
    )


def _instances(
    root: Path, gpus: list[Gpu], capabilities: tuple[str, ...], identities: Identities
) -> Iterable[Instance]:
    """The parts of GPUs whose device files are there."""
    here = {int(name.rpartition("cap")[2]): name for name in capabilities}
    folder = root / "proc/driver/nvidia/capabilities"
    for gpu in gpus:
        parts = sorted((folder / f"gpu{gpu.minor}/mig").glob("gi*/ci*/access"), key=_part)
        for path in parts:
            numbers = [_device_file(path.parent.parent / "access"), _device_file(path)]
            if all(number in here for number in numbers):
                key = (gpu.minor, *_part(path))
                yield Instance(*key, tuple(here[number] for number in numbers if number), identities.instances.get(key))


def _part(path: Path) -> tuple[int, int]:
    """GPU instance and compute instance of `…/gi3/ci0/access`."""
    return int(path.parent.parent.name[2:]), int(path.parent.name[2:])


def _device_file(path: Path) -> int | None:
    found = re.search(r"^DeviceFileMinor:\s*(\d+)", _text(path), re.MULTILINE)
    return int(found.group(1)) if found else None


def _libraries(root: Path) -> Iterable[tuple[str, str]]:
    """The driver's libraries: where they are, and where a nested image looks for them."""
    own = [folder for folder in _OWN_LIBRARIES if _library_names(root / folder)]
    if own:
        # Images of NVIDIA's name this folder in LD_LIBRARY_PATH and its programs in PATH.
        yield f"/{_OWN_FOLDER}", f"/{_OWN_FOLDER}"
    loader = _LOADER_FOLDERS.get(os.uname().machine)
    for folder in own:
        for name in _library_names(root / folder) if loader else []:
            yield f"/{folder}/{name}", f"{loader}/{name}"
    for folder in _SHARED_LIBRARIES:
        if own and f"/{folder}" == loader:
            continue
        for name in _library_names(root / folder):
            yield f"/{folder}/{name}", f"/{folder}/{name}"


def _library_names(folder: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return sorted(path.name for path in folder.iterdir() if _LIBRARIES.fullmatch(path.name) and path.exists())
    return []


def specification(found: Found) -> dict[str, Any]:
    """The specification: a device for each GPU or part of one, by number and by UUID, and `all`.

    A specification must have a device, and a device must do something: without GPUs there is `all`, and it says that there are none.
    """
    void = "NVIDIA_VISIBLE_DEVICES=void"
    if not found.gpus:
        return {"cdiVersion": VERSION, "kind": KIND, "devices": [{"name": ALL, "containerEdits": {"env": [void]}}]}
    divided = {instance.minor for instance in found.instances}
    mapped = {file for instance in found.instances for file in instance.files}
    loose = [file for file in found.capabilities if file not in mapped]
    devices: list[dict[str, Any]] = []
    for index, gpu in enumerate(found.gpus):
        if gpu.minor in divided:
            parts = [instance for instance in found.instances if instance.minor == gpu.minor]
            for number, part in enumerate(parts):
                devices += _named([f"{index}:{number}", part.uuid], [f"nvidia{gpu.minor}", *part.files])
        else:
            # Whose parts they are nobody says then: a GPU without them could not be used.
            devices += _named([str(index), gpu.uuid], [f"nvidia{gpu.minor}", *([] if divided else loose)])
    every = [*(f"nvidia{gpu.minor}" for gpu in found.gpus), *found.capabilities]
    devices += _named([ALL], every)
    mounts = [
        {"hostPath": source, "containerPath": target, "options": ["ro", "nosuid", "nodev", "rbind"]}
        if not any(entry == f"{_MPS}={source}" for entry in found.env)
        else {"hostPath": source, "containerPath": target, "options": ["rw", "nosuid", "nodev", "rbind"]}
        for source, target in found.mounts
    ]
    edits: dict[str, Any] = {
        # NVIDIA's own hooks, where the image has them, shall add nothing to this.
        "env": [void, *found.env],
        "deviceNodes": [_node(name) for name in found.control],
        "mounts": mounts,
    }
    filled = {key: value for key, value in edits.items() if value}
    return {"cdiVersion": VERSION, "kind": KIND, "devices": devices, "containerEdits": filled}


def _named(names: list[str | None], files: list[str]) -> list[dict[str, Any]]:
    nodes = [_node(file) for file in files]
    return [{"name": name, "containerEdits": {"deviceNodes": nodes}} for name in names if name]


def _node(name: str) -> dict[str, str]:
    return {"path": f"/dev/{name}", "permissions": "rw"}


def write(document: Mapping[str, Any], folder: Path) -> Path:
    """Write the file whole or not at all, and leave one that is right already as it is.

    Raises:
        OSError: it can't be written.
    """
    path, text = folder / FILE, json.dumps(document, indent=1) + "\n"
    if _text(path) == text:
        return path
    # Readers look at files that end in .json or .yaml alone.
    handle, name = tempfile.mkstemp(prefix=f".{FILE}.", dir=str(folder))
    scratch = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        scratch.chmod(0o644)
        scratch.replace(path)
    except OSError:
        scratch.unlink()
        raise
    return path


def load_nvml(root: Path) -> Any | None:
    """NVIDIA's management library; None where there is none that can be used."""
    for place in ("", *(f"{root / folder}/" for folder in _OWN_LIBRARIES)):
        with contextlib.suppress(OSError):
            return ctypes.CDLL(f"{place}libnvidia-ml.so.1")
    return None


def ask(nvml: Any) -> Identities:
    """The UUIDs of all that NVML sees; of nothing where it fails (https://docs.nvidia.com/deploy/nvml-api)."""
    gpus: dict[int, str] = {}
    instances: dict[tuple[int, int, int], str] = {}
    if nvml.nvmlInit_v2():
        return Identities(gpus, instances)
    try:
        for index in range(_number(nvml.nvmlDeviceGetCount_v2)):
            gpu = ctypes.c_void_p()
            if nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(gpu)):
                continue
            minor = _number(nvml.nvmlDeviceGetMinorNumber, gpu)
            gpus[minor] = _uuid(nvml, gpu)
            for number in range(_number(nvml.nvmlDeviceGetMaxMigDeviceCount, gpu)):
                part = ctypes.c_void_p()
                if nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, number, ctypes.byref(part)):
                    continue
                key = (
                    minor,
                    _number(nvml.nvmlDeviceGetGpuInstanceId, part),
                    _number(nvml.nvmlDeviceGetComputeInstanceId, part),
                )
                instances[key] = _uuid(nvml, part)
    finally:
        nvml.nvmlShutdown()
    return Identities(
        {key: uuid for key, uuid in gpus.items() if uuid}, {key: uuid for key, uuid in instances.items() if uuid}
    )


def _number(function: Any, *arguments: Any) -> int:
    value = ctypes.c_uint()
    return 0 if function(*arguments, ctypes.byref(value)) else value.value


def _uuid(nvml: Any, device: Any) -> str:
    # The size that NVML names for its second version of UUIDs.
    size = 96
    buffer = ctypes.create_string_buffer(size)
    return "" if nvml.nvmlDeviceGetUUID(device, buffer, size) else buffer.value.decode()


def not_written(folder: object, error: OSError) -> str:
    """What it means that the specification can't be written, and what mends it."""
    return (
        f"the CDI specification can't be written to {folder}: {error.strerror}; podman would see no GPU or those of another pod."
        " Give the container an emptyDir there that its user may write to"
    )


def describe(found: Found) -> str:
    """`2 GPUs`, `2 parts of 1 GPU`, `no GPU`."""
    gpus = f"{len(found.gpus)} GPU{'' if len(found.gpus) == 1 else 's'}" if found.gpus else "no GPU"
    parts = len(found.instances)
    return f"{parts} part{'' if parts == 1 else 's'} of {gpus}" if parts else gpus


def main(arguments: list[str] | None = None) -> int:
    """Write it; the exit code."""
    parser = argparse.ArgumentParser(description="Write a CDI specification of the GPUs that this container has.")
    parser.add_argument(
        "--folder", default=FOLDER, type=Path, help=f"where it goes (default: {FOLDER}, which podman reads)"
    )
    parser.add_argument("--root", default="/", type=Path, help="the container's root folder, for trying it out")
    parser.add_argument("--print", action="store_true", dest="show", help="print it and write nothing")
    given = parser.parse_args(arguments)
    try:
        found = find(given.root, os.environ, load_nvml(given.root))
        if given.show:
            sys.stdout.write(json.dumps(specification(found), indent=1) + "\n")
            return 0
        path = write(specification(found), given.folder)
    except UnclearError as error:
        sys.stderr.write(f"error: {error}\n")
        return UNCLEAR
    except OSError as error:
        sys.stderr.write(f"error: {not_written(given.folder, error)}\n")
        return NOT_WRITTEN
    sys.stdout.write(f"{describe(found)}: {path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Write a CDI specification of this container's GPUs, for `podman run --device nvidia.com/gpu=all`.

Format: https://github.com/cncf-tags/container-device-interface/blob/main/SPEC.md. Sources: the
device files in /dev, NVIDIA_VISIBLE_DEVICES, the driver's files in /proc/driver/nvidia, and NVML
for the rest. Device plugins, NVIDIA's container runtime and DRA drivers all work.

Exit codes: 0 written (also for a container without GPUs), 2 wrong arguments, 3 unclear which GPUs
are this container's, 4 the file cannot be written.
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
"""Oldest version with names that begin with a digit; Debian 12's podman 4.3.1 reads no newer
one."""

KIND = "nvidia.com/gpu"
FOLDER = "/etc/cdi"
FILE = "nvidia.com-gpu.json"
ALL = "all"

UNCLEAR = 3
NOT_WRITTEN = 4

# Device files that every container with a GPU needs; the numbered ones decide which GPUs it uses.
_CONTROL = (
    "nvidiactl",
    "nvidia-uvm",
    "nvidia-uvm-tools",
    "nvidia-modeset",
    "nvidia-caps-imex-channels/channel*",
)

# Folders of the driver's files: GKE's device plugin mounts a folder of their own; NVIDIA's
# container runtime and CDI add the files to the image's libraries and programs.
_OWN_FOLDER = "usr/local/nvidia"
_OWN_LIBRARIES = ("usr/local/nvidia/lib64", "usr/local/nvidia/lib")
_SHARED_LIBRARIES = ("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64")
_LIBRARIES = re.compile(
    r"lib(cuda|cudadebugger|nvcuvid|nvoptix|nvidia-(?!container)[a-z0-9-]+)\.so(\.[0-9.]+)?"
)
_PROGRAMS = tuple(
    f"usr/bin/nvidia-{name}" for name in ("smi", "debugdump", "cuda-mps-control", "cuda-mps-server")
)
# Default folders of the nested image's loader, on Debian and Ubuntu.
_LOADER_FOLDERS = {"x86_64": "/usr/lib/x86_64-linux-gnu", "aarch64": "/usr/lib/aarch64-linux-gnu"}
_MPS = "CUDA_MPS_PIPE_DIRECTORY"

_SYS_ADMIN = 21
"""Number of the capability that only privileged containers have (linux/capability.h)."""

_NO_NAMES = ("", "void", "none", "all")


class UnclearError(Exception):
    """Unclear which GPUs are this container's."""


@dataclass(frozen=True)
class Gpu:
    """GPU: number of its device file, and UUID `GPU-…` if known."""

    minor: int
    uuid: str | None = None


@dataclass(frozen=True)
class Instance:
    """MIG instance of a GPU.

    Attributes:
        minor: number of the GPU's device file.
        files: device files of the instance, below /dev.
        uuid: UUID `MIG-…`; None if unknown.
    """

    minor: int
    gpu_instance: int
    compute_instance: int
    files: tuple[str, ...]
    uuid: str | None = None


@dataclass(frozen=True)
class Found:
    """GPUs of a container, in CUDA's order, with the files that they need.

    Attributes:
        instances: MIG instances of the container.
        capabilities: device files of MIG, below /dev.
        control: other device files, below /dev.
        mounts: source and target of the driver's files and folders.
    """

    gpus: tuple[Gpu, ...] = ()
    instances: tuple[Instance, ...] = ()
    capabilities: tuple[str, ...] = ()
    control: tuple[str, ...] = ()
    mounts: tuple[tuple[str, str], ...] = ()
    env: tuple[str, ...] = ()


@dataclass(frozen=True)
class Identities:
    """UUIDs from NVML: of GPUs by minor, of MIG instances by minor, GPU and compute instance."""

    gpus: Mapping[int, str | None]
    instances: Mapping[tuple[int, int, int], str | None]


def find(root: Path, environ: Mapping[str, str], nvml: Any | None = None) -> Found:
    """Find the GPUs of a container.

    Args:
        root: root folder of the container.
        environ: environment of the container.
        nvml: NVIDIA's management library; None if there is none.

    Raises:
        UnclearError: the container sees all devices of its node, and nothing says which are its
            own.
    """
    known = {minor: (bus, uuid) for minor, bus, uuid in _driver_info(root)}
    minors = [int(name[6:]) for name in _files(root, "nvidia*") if re.fullmatch(r"nvidia\d+", name)]
    capabilities = tuple(_files(root, "nvidia-caps/nvidia-cap*"))
    identities = Identities({}, {})
    if nvml is not None and (
        capabilities or any(known.get(minor, ("", ""))[1] == "" for minor in minors)
    ):
        identities = ask(nvml)
    gpus = [
        Gpu(minor, known.get(minor, ("", ""))[1] or identities.gpus.get(minor))
        # CUDA and NVML count in the order of PCI addresses.
        for minor in sorted(minors, key=lambda minor: (known.get(minor, ("~", ""))[0], minor))
    ]
    gpus = _own(gpus, environ.get("NVIDIA_VISIBLE_DEVICES", ""), privileged=_privileged(root))
    if not gpus:
        return Found()
    mounts = [
        *_libraries(root),
        *((f"/{path}", f"/{path}") for path in _PROGRAMS if (root / path).exists()),
    ]
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
    """Return names below /dev in numeric order."""
    names = [
        str(path.relative_to(root / "dev"))
        for path in (root / "dev").glob(pattern)
        if not path.is_dir()
    ]
    return sorted(
        names,
        key=lambda name: [
            int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)
        ],
    )


def _driver_info(root: Path) -> Iterable[tuple[int, str, str]]:
    """Yield minor number, PCI address and UUID ("" if unknown yet) of each GPU of the node."""
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
    """Return the container's own GPUs; a privileged container sees all GPUs of its node."""
    names = [] if visible in _NO_NAMES else sorted(set(visible.split(",")))
    if not privileged or not gpus:
        return gpus
    by_uuid = {gpu.uuid: gpu for gpu in gpus if gpu.uuid}
    if names and all(name in by_uuid for name in names):
        return [gpu for gpu in gpus if gpu.uuid in names]
    if names and all(name.isdigit() and int(name) < len(gpus) for name in names):
        return [gpus[int(name)] for name in sorted(names, key=int)]
    hint = f"={visible} names none of them" if names else " does not say which are its own"
    raise UnclearError(
        f"this container is privileged, so it has the device files of all {len(gpus)} GPUs of its"
        f" node, and NVIDIA_VISIBLE_DEVICES{hint}; run it unprivileged, and it has only those of"
        " its own GPUs"
    )


def _instances(
    root: Path, gpus: list[Gpu], capabilities: tuple[str, ...], identities: Identities
) -> Iterable[Instance]:
    """Yield the MIG instances whose device files are there."""
    here = {int(name.rpartition("cap")[2]): name for name in capabilities}
    folder = root / "proc/driver/nvidia/capabilities"
    for gpu in gpus:
        parts = sorted((folder / f"gpu{gpu.minor}/mig").glob("gi*/ci*/access"), key=_part)
        for path in parts:
            numbers = [_device_file(path.parent.parent / "access"), _device_file(path)]
            if all(number in here for number in numbers):
                key = (gpu.minor, *_part(path))
                yield Instance(
                    *key,
                    tuple(here[number] for number in numbers if number),
                    identities.instances.get(key),
                )


def _part(path: Path) -> tuple[int, int]:
    """Return GPU instance and compute instance of `…/gi3/ci0/access`."""
    return int(path.parent.parent.name[2:]), int(path.parent.name[2:])


def _device_file(path: Path) -> int | None:
    found = re.search(r"^DeviceFileMinor:\s*(\d+)", _text(path), re.MULTILINE)
    return int(found.group(1)) if found else None


def _libraries(root: Path) -> Iterable[tuple[str, str]]:
    """Yield source of the driver's libraries, and the target where a nested image finds them."""
    own = [folder for folder in _OWN_LIBRARIES if _library_names(root / folder)]
    if own:
        # NVIDIA's images have this folder in LD_LIBRARY_PATH and its programs in PATH.
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
        return sorted(
            path.name
            for path in folder.iterdir()
            if _LIBRARIES.fullmatch(path.name) and path.exists()
        )
    return []


def specification(found: Found) -> dict[str, Any]:
    """Return the specification: devices of GPUs and MIG instances, by number and UUID, and `all`.

    A specification needs a device, and a device needs an edit: without GPUs, `all` sets the
    variable for none.
    """
    void = "NVIDIA_VISIBLE_DEVICES=void"
    if not found.gpus:
        return {
            "cdiVersion": VERSION,
            "kind": KIND,
            "devices": [{"name": ALL, "containerEdits": {"env": [void]}}],
        }
    divided = {instance.minor for instance in found.instances}
    mapped = {file for instance in found.instances for file in instance.files}
    loose = [file for file in found.capabilities if file not in mapped]
    devices: list[dict[str, Any]] = []
    for index, gpu in enumerate(found.gpus):
        if gpu.minor in divided:
            parts = [instance for instance in found.instances if instance.minor == gpu.minor]
            for number, part in enumerate(parts):
                devices += _named(
                    [f"{index}:{number}", part.uuid], [f"nvidia{gpu.minor}", *part.files]
                )
        else:
            # The owner of loose files is unknown, and a GPU without its files is unusable.
            devices += _named(
                [str(index), gpu.uuid], [f"nvidia{gpu.minor}", *([] if divided else loose)]
            )
    everything = [*(f"nvidia{gpu.minor}" for gpu in found.gpus), *found.capabilities]
    devices += _named([ALL], everything)
    mounts = []
    for source, target in found.mounts:
        mode = "rw" if f"{_MPS}={source}" in found.env else "ro"
        options = [mode, "nosuid", "nodev", "rbind"]
        mounts.append({"hostPath": source, "containerPath": target, "options": options})
    # The variable keeps NVIDIA's own hooks of the image, if any, from adding devices.
    control = [_node(name) for name in found.control]
    edits = {"env": [void, *found.env], "deviceNodes": control, "mounts": mounts}
    filled = {key: value for key, value in edits.items() if value}
    return {"cdiVersion": VERSION, "kind": KIND, "devices": devices, "containerEdits": filled}


def _named(names: list[str | None], files: list[str]) -> list[dict[str, Any]]:
    nodes = [_node(file) for file in files]
    return [{"name": name, "containerEdits": {"deviceNodes": nodes}} for name in names if name]


def _node(name: str) -> dict[str, str]:
    return {"path": f"/dev/{name}", "permissions": "rw"}


def write(document: Mapping[str, Any], folder: Path) -> Path:
    """Write the file atomically, unless its content is right already, and return its path.

    Raises:
        OSError: the file cannot be written.
    """
    path, text = folder / FILE, json.dumps(document, indent=1) + "\n"
    if _text(path) == text:
        return path
    # Readers only read files that end in .json or .yaml.
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
    """Return NVIDIA's management library; None if none can be loaded."""
    for place in ("", *(f"{root / folder}/" for folder in _OWN_LIBRARIES)):
        with contextlib.suppress(OSError):
            return ctypes.CDLL(f"{place}libnvidia-ml.so.1")
    return None


def ask(nvml: Any) -> Identities:
    """Return the UUIDs that NVML reports, none on failure (https://docs.nvidia.com/deploy/nvml-api)."""
    gpus: dict[int, str | None] = {}
    instances: dict[tuple[int, int, int], str | None] = {}
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
                of_gpu = _number(nvml.nvmlDeviceGetGpuInstanceId, part)
                instances[minor, of_gpu, _number(nvml.nvmlDeviceGetComputeInstanceId, part)] = (
                    _uuid(nvml, part)
                )
    finally:
        nvml.nvmlShutdown()
    return Identities(gpus, instances)


def _number(function: Any, *arguments: Any) -> int:
    value = ctypes.c_uint()
    return 0 if function(*arguments, ctypes.byref(value)) else value.value


def _uuid(nvml: Any, device: Any) -> str | None:
    buffer = ctypes.create_string_buffer(96)  # size of the second version of NVML's UUIDs
    return (
        None
        if nvml.nvmlDeviceGetUUID(device, buffer, len(buffer))
        else buffer.value.decode() or None
    )


def not_written(folder: object, error: OSError) -> str:
    """Return the error text for a specification that cannot be written."""
    return (
        f"the CDI specification cannot be written to {folder}: {error.strerror}; podman would see"
        " no GPU or those of another pod. Mount an emptyDir there that the container's user may"
        " write to"
    )


def describe(found: Found) -> str:
    """Return `2 GPUs`, `2 parts of 1 GPU` or `no GPU`."""
    gpus = f"{len(found.gpus)} GPU{'' if len(found.gpus) == 1 else 's'}" if found.gpus else "no GPU"
    parts = len(found.instances)
    return f"{parts} part{'' if parts == 1 else 's'} of {gpus}" if parts else gpus


def main(arguments: list[str] | None = None) -> int:
    """Write the specification, and return the exit code."""
    parser = argparse.ArgumentParser(
        description="Write a CDI specification of the GPUs that this container has."
    )
    parser.add_argument(
        "--folder", default=FOLDER, type=Path, help="folder of the file (default: %(default)s)"
    )
    parser.add_argument(
        "--root", default="/", type=Path, help="root folder of the container, for tests"
    )
    parser.add_argument(
        "--print",
        action="store_true",
        dest="show",
        help="print the specification and write nothing",
    )
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

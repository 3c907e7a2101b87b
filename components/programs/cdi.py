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
class GpuDevice:
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
class ContainerGpus:
    """GPUs of a container, in CUDA's order, with the files that they need.

    Attributes:
        instances: MIG instances of the container.
        capabilities: device files of MIG, below /dev.
        control: other device files, below /dev.
        mounts: source and target of the driver's files and folders.
    """

    gpus: tuple[GpuDevice, ...] = ()
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


def gpus_of_container(
    root: Path, environ: Mapping[str, str], nvml: Any | None = None
) -> ContainerGpus:
    """Find the GPUs of a container.

    Args:
        root: root folder of the container.
        environ: environment of the container.
        nvml: NVIDIA's management library; None if there is none.

    Raises:
        UnclearError: the container sees all devices of its node, and nothing says which are its
            own.
    """
    minors = [int(name[6:]) for name in _files(root, "nvidia*") if re.fullmatch(r"nvidia\d+", name)]
    capabilities = tuple(_files(root, "nvidia-caps/nvidia-cap*"))
    addresses = {}
    uuids = {}
    for minor, address, uuid in _driver_info(root):
        addresses[minor] = address
        uuids[minor] = uuid
    identities = Identities({}, {})
    needs_nvml = bool(capabilities) or any(uuids.get(minor, "") == "" for minor in minors)
    if nvml is not None and needs_nvml:
        identities = identities_of(nvml)
    # CUDA and NVML count in the order of PCI addresses.
    minors.sort(key=lambda minor: (addresses.get(minor, "~"), minor))
    gpus = [GpuDevice(minor, uuids.get(minor) or identities.gpus.get(minor)) for minor in minors]
    if _is_privileged(root):
        gpus = _own_gpus(gpus, environ.get("NVIDIA_VISIBLE_DEVICES", ""))
    if not gpus:
        return ContainerGpus()
    control: list[str] = []
    for pattern in _CONTROL:
        control += _files(root, pattern)
    pipes = _folder_of_mps(root, environ)
    return ContainerGpus(
        gpus=tuple(gpus),
        instances=tuple(_instances(root, gpus, capabilities, identities)),
        capabilities=capabilities,
        control=tuple(control),
        mounts=tuple(_mounts(root, pipes)),
        env=(f"{_MPS}={pipes}",) if pipes else (),
    )


def _folder_of_mps(root: Path, environ: Mapping[str, str]) -> str:
    """Return the folder of the pipes of MPS; "" where the container shares no GPU by MPS."""
    pipes = environ.get(_MPS, "")
    return pipes if pipes and (root / pipes.lstrip("/")).is_dir() else ""


def _mounts(root: Path, pipes: str) -> Iterable[tuple[str, str]]:
    """Yield source and target of the driver's files, and of the pipes of MPS."""
    yield from _libraries(root)
    for path in _PROGRAMS:
        if (root / path).exists():
            yield f"/{path}", f"/{path}"
    if pipes:
        yield pipes, pipes


def _files(root: Path, pattern: str) -> list[str]:
    """Return names below /dev in numeric order."""
    files = [path for path in (root / "dev").glob(pattern) if not path.is_dir()]
    return sorted((str(path.relative_to(root / "dev")) for path in files), key=_with_numbers)


def _with_numbers(name: str) -> list[int | str]:
    """Return the parts of a name between and of its numbers, to sort by."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


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


def _is_privileged(root: Path) -> bool:
    bounding = re.search(r"^CapBnd:\s*([0-9a-f]+)", _text(root / "proc/self/status"), re.MULTILINE)
    return bool(bounding and int(bounding.group(1), 16) >> _SYS_ADMIN & 1)


def _own_gpus(gpus: list[GpuDevice], visible: str) -> list[GpuDevice]:
    """Return the own GPUs of a privileged container, which sees all GPUs of its node.

    Raises:
        UnclearError: NVIDIA_VISIBLE_DEVICES does not say which they are.
    """
    names = [] if visible in _NO_NAMES else sorted(set(visible.split(",")))
    uuids = {gpu.uuid for gpu in gpus if gpu.uuid}
    if not gpus:
        return []
    if names and uuids.issuperset(names):
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
    root: Path, gpus: list[GpuDevice], capabilities: tuple[str, ...], identities: Identities
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
    number = re.search(r"^DeviceFileMinor:\s*(\d+)", _text(path), re.MULTILINE)
    return int(number.group(1)) if number else None


def _libraries(root: Path) -> Iterable[tuple[str, str]]:
    """Yield source of the driver's libraries, and the target where a nested image finds them."""
    own = [folder for folder in _OWN_LIBRARIES if _library_names(root / folder)]
    loader = _LOADER_FOLDERS.get(os.uname().machine)
    if own:
        # NVIDIA's images have this folder in LD_LIBRARY_PATH and its programs in PATH.
        yield f"/{_OWN_FOLDER}", f"/{_OWN_FOLDER}"
    if loader:
        for folder in own:
            yield from _files_of(root, folder, loader)
    for folder in _SHARED_LIBRARIES:
        if not own or f"/{folder}" != loader:
            yield from _files_of(root, folder, f"/{folder}")


def _files_of(root: Path, folder: str, target: str) -> Iterable[tuple[str, str]]:
    """Yield source and target of each of the driver's libraries in a folder."""
    for name in _library_names(root / folder):
        yield f"/{folder}/{name}", f"{target}/{name}"


def _library_names(folder: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return sorted(
            path.name
            for path in folder.iterdir()
            if _LIBRARIES.fullmatch(path.name) and path.exists()
        )
    return []


def specification(container: ContainerGpus) -> dict[str, Any]:
    """Return the specification: devices of GPUs and MIG instances, by number and UUID, and `all`.

    A specification needs a device, and a device needs an edit: without GPUs, `all` sets the
    variable for none.
    """
    # The variable keeps NVIDIA's own hooks of the image, if any, from adding devices.
    void = "NVIDIA_VISIBLE_DEVICES=void"
    if not container.gpus:
        devices = [{"name": ALL, "containerEdits": {"env": [void]}}]
        return {"cdiVersion": VERSION, "kind": KIND, "devices": devices}
    edits: dict[str, Any] = {"env": [void, *container.env]}
    if container.control:
        edits["deviceNodes"] = [_node(name) for name in container.control]
    if container.mounts:
        edits["mounts"] = [_mount(container, *mount) for mount in container.mounts]
    return {
        "cdiVersion": VERSION,
        "kind": KIND,
        "devices": _devices(container),
        "containerEdits": edits,
    }


def _devices(container: ContainerGpus) -> list[dict[str, Any]]:
    """Return the devices of GPUs, of the MIG instances of divided ones, and of all."""
    devices: list[dict[str, Any]] = []
    for index, gpu in enumerate(container.gpus):
        file = f"nvidia{gpu.minor}"
        instances = [part for part in container.instances if part.minor == gpu.minor]
        for number, part in enumerate(instances):
            devices += _named([f"{index}:{number}", part.uuid], [file, *part.files])
        if not instances:
            devices += _named([str(index), gpu.uuid], [file, *_loose_capabilities(container)])
    files = [f"nvidia{gpu.minor}" for gpu in container.gpus]
    devices += _named([ALL], [*files, *container.capabilities])
    return devices


def _loose_capabilities(container: ContainerGpus) -> list[str]:
    """Return the device files of MIG for a GPU that is not divided, if no GPU is.

    The owner of loose files is unknown, and a GPU without its files is unusable.
    """
    return [] if container.instances else list(container.capabilities)


def _mount(container: ContainerGpus, source: str, target: str) -> dict[str, Any]:
    mode = "rw" if f"{_MPS}={source}" in container.env else "ro"
    options = [mode, "nosuid", "nodev", "rbind"]
    return {"hostPath": source, "containerPath": target, "options": options}


def _named(names: list[str | None], files: list[str]) -> list[dict[str, Any]]:
    nodes = [_node(file) for file in files]
    return [{"name": name, "containerEdits": {"deviceNodes": nodes}} for name in names if name]


def _node(name: str) -> dict[str, str]:
    return {"path": f"/dev/{name}", "permissions": "rw"}


def write_specification(document: Mapping[str, Any], folder: Path) -> Path:
    """Write the file atomically, unless its content is right already, and return its path.

    Raises:
        OSError: the file cannot be written.
    """
    path = folder / FILE
    text = json.dumps(document, indent=1) + "\n"
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


def identities_of(nvml: Any) -> Identities:
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
                compute = _number(nvml.nvmlDeviceGetComputeInstanceId, part)
                instances[minor, of_gpu, compute] = _uuid(nvml, part)
    finally:
        nvml.nvmlShutdown()
    return Identities(gpus, instances)


def _number(function: Any, *arguments: Any) -> int:
    value = ctypes.c_uint()
    return 0 if function(*arguments, ctypes.byref(value)) else value.value


def _uuid(nvml: Any, device: Any) -> str | None:
    buffer = ctypes.create_string_buffer(96)  # size of the second version of NVML's UUIDs
    if nvml.nvmlDeviceGetUUID(device, buffer, len(buffer)):
        return None
    return buffer.value.decode() or None


def write_error_text(folder: object, error: OSError) -> str:
    """Return the error text for a specification that cannot be written."""
    return (
        f"the CDI specification cannot be written to {folder}: {error.strerror}; podman would see"
        " no GPU or those of another pod. Mount an emptyDir there that the container's user may"
        " write to"
    )


def summary_of(container: ContainerGpus) -> str:
    """Return `2 GPUs`, `2 parts of 1 GPU` or `no GPU`."""
    if not container.gpus:
        return "no GPU"
    gpus = _counted(len(container.gpus), "GPU")
    parts = len(container.instances)
    return f"{_counted(parts, 'part')} of {gpus}" if parts else gpus


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


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
        container = gpus_of_container(given.root, os.environ, load_nvml(given.root))
        document = specification(container)
        if given.show:
            sys.stdout.write(json.dumps(document, indent=1) + "\n")
            return 0
        path = write_specification(document, given.folder)
    except UnclearError as error:
        sys.stderr.write(f"error: {error}\n")
        return UNCLEAR
    except OSError as error:
        sys.stderr.write(f"error: {write_error_text(given.folder, error)}\n")
        return NOT_WRITTEN
    sys.stdout.write(f"{summary_of(container)}: {path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

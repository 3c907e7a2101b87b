"""Parts of a worker's pod for NCCL: environment by profile, the node's libraries, shared memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from berth.components.fabric.settings import Nccl, Worker
from berth.components.hardware.machines import GIB_PROFILES

HOST_LIBRARIES = "/usr/local/nvidia/lib64"
"""Folder of the node's libraries in a worker: NVIDIA's driver, and gIB beside it."""

_LIBRARIES = "LD_LIBRARY_PATH"


def _gib(tuner_config: str) -> dict[str, str]:
    """Return the environment for gIB; machine types differ in the tuner's configuration alone."""
    return {
        _LIBRARIES: HOST_LIBRARIES,
        "TORCH_DISTRIBUTED_DEBUG": "INFO",
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "INIT,NET,ENV,COLL,GRAPH",
        "NCCL_NET": "gIB",
        "NCCL_CROSS_NIC": "0",
        "NCCL_NET_GDR_LEVEL": "PIX",
        "NCCL_P2P_NET_CHUNKSIZE": "131072",
        "NCCL_NVLS_CHUNKSIZE": "524288",
        "NCCL_IB_ADAPTIVE_ROUTING": "1",
        "NCCL_IB_QPS_PER_CONNECTION": "4",
        "NCCL_IB_TC": "52",
        "NCCL_IB_FIFO_TC": "84",
        "NCCL_TUNER_CONFIG_PATH": f"/usr/local/gib/configs/{tuner_config}",
    }


PROFILES: dict[str, dict[str, str]] = {
    # Google's tutorial has the same values for all machine types, and a file of its own for the
    # H200's tuner. The script that Google's own tests take them from, set_nccl_env.sh in gIB's
    # image, could not be read.
    **{name: _gib(profile.tuner) for name, profile in GIB_PROFILES.items()},
    # gIB's tuner ends NCCL without a configuration ("No NCCL_TUNER_CONFIG_PATH provided"): these
    # keep NCCL from loading it, and unset a plugin that the image may name
    # (https://github.com/llm-d/llm-d, "GKE Patches", Disabling NCCL Tuner Plugin).
    "single-node": {"NCCL_TUNER_PLUGIN": "none", "NCCL_NET_PLUGIN": ""},
    "none": {},
}
"""Environment variables of each profile, in order."""


_HOST_FOLDERS = (
    ("library-dir-host", "/home/kubernetes/bin/nvidia", "/usr/local/nvidia"),
    ("gib", "/home/kubernetes/bin/gib", "/usr/local/gib"),
)
"""Volumes with what Google's installers put on a node: name, folder on the node, and in a container
(https://github.com/GoogleCloudPlatform/container-engine-accelerators,
gpudirect-rdma/nccl-test-managed-rdma.yaml)."""

NODE_FOLDERS = tuple(folder for _, folder, _ in _HOST_FOLDERS)
"""Folders of a node that a worker may mount, to read: NVIDIA's driver and gIB."""


@dataclass(frozen=True)
class Parts:
    """Parts of a worker's pod for NCCL.

    The capability IPC_LOCK is not among them: it has no effect where the container does not run as
    root, as Ray's images don't (docs/project/decisions.md).

    Attributes:
        env: environment variables.
        volumes: volumes of the pod.
        mounts: mounts of the volumes in the container.
    """

    env: dict[str, str] = field(default_factory=dict)
    volumes: list[dict[str, Any]] = field(default_factory=list)
    mounts: list[dict[str, Any]] = field(default_factory=list)


def parts_of(worker: Worker) -> Parts:
    """Return the parts of a worker's pod for NCCL; empty without GPUs and NICs."""
    if not worker.gpus and not worker.nics:
        return Parts()
    nccl = worker.nccl
    folders = _HOST_FOLDERS if nccl.profile in GIB_PROFILES else ()
    volumes: list[dict[str, Any]] = [{"name": name, "hostPath": {"path": path}} for name, path, _ in folders]
    # Privileged plugins and the node's next tenant load what is in these folders.
    mounts: list[dict[str, Any]] = [{"name": name, "mountPath": path, "readOnly": True} for name, _, path in folders]
    if nccl.shared_memory:
        volumes.append({"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": nccl.shared_memory}})
        mounts.append({"name": "shared-memory", "mountPath": "/dev/shm"})  # noqa: S108 - the pod's own
    return Parts(_environment(nccl), volumes, mounts)


def _environment(nccl: Nccl) -> dict[str, str]:
    variables = dict(PROFILES[nccl.profile])
    if nccl.library_path:
        # torch finds its own libraries after these: without the folder in front, an NCCL that an
        # older installer of gIB left on the node would be loaded.
        variables[_LIBRARIES] = f"{nccl.library_path}:{HOST_LIBRARIES}"
    return variables | nccl.env

"""Parts of a worker's pod for NCCL: environment by profile, the node's libraries, shared memory."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from berth.components.fabric.settings import Nccl, Worker
from berth.components.hardware.machines import GIB, GIB_PROFILES

_LIBRARIES = "LD_LIBRARY_PATH"
_TUNER = "NCCL_TUNER_CONFIG_PATH"

HOST_LIBRARIES = "/usr/local/nvidia/lib64"
"""Folder of the node's libraries in a worker: NVIDIA's driver, and gIB beside it."""

SCRIPT = "/usr/local/gib/scripts/set_nccl_env.sh"
"""Script of the node's gIB that sets NCCL's variables: values of the installed version for the
machine that it runs on."""

_SHARED_MEMORY = "shared-memory"
"""Name of the volume."""

_OF_SCRIPT = re.compile(r"(?:NCCL|GLOO)_\w+|LD_LIBRARY_PATH", re.ASCII)

# Pinned values of gIB v1.0.6: Google's tutorial has the same for all machine types, and a file of
# its own for the H200's tuner (NCCL_TUNER_CONFIG_PATH, which hardware/machines.yaml has).
_PINNED = {
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
}

PROFILES: dict[str, dict[str, str]] = {
    **{
        name: {**_PINNED, _TUNER: f"/usr/local/gib/configs/{gib.tuner}"}
        for name, gib in GIB_PROFILES.items()
    },
    # What the script's values do not cover, as in Google's own A4 workloads
    # (https://github.com/AI-Hypercomputer/gpu-recipes,
    # src/helm-charts/a4/nemo-training/templates/nemo-launcher-job.yaml), for a pod whose only
    # network beside the NICs is eth0.
    GIB: {
        _LIBRARIES: f"/usr/local/gib/lib64:{HOST_LIBRARIES}",
        "NCCL_DEBUG": "WARN",
        "NCCL_DEBUG_SUBSYS": "INIT,NET",
        "NCCL_SOCKET_IFNAME": "eth0",
        "GLOO_SOCKET_IFNAME": "eth0",
    },
    # gIB's tuner ends NCCL without a configuration ("No NCCL_TUNER_CONFIG_PATH provided"): these
    # keep NCCL from loading it, and unset a plugin that the image may name
    # (https://github.com/llm-d/llm-d, "GKE Patches", Disabling NCCL Tuner Plugin).
    "single-node": {"NCCL_TUNER_PLUGIN": "none", "NCCL_NET_PLUGIN": ""},
    "none": {},
}
"""Environment variables of each profile, in order."""


@dataclass(frozen=True)
class _NodeFolder:
    """Folder that Google's installers put on a node.

    Source: https://github.com/GoogleCloudPlatform/container-engine-accelerators,
    gpudirect-rdma/nccl-test-managed-rdma.yaml.
    """

    volume: str
    on_node: str
    in_container: str


_FOLDERS = (
    _NodeFolder("library-dir-host", "/home/kubernetes/bin/nvidia", "/usr/local/nvidia"),
    _NodeFolder("gib", "/home/kubernetes/bin/gib", "/usr/local/gib"),
)

NODE_FOLDERS = tuple(folder.on_node for folder in _FOLDERS)
"""Folders of a node that a worker may mount, to read: NVIDIA's driver and gIB."""

NODE_MOUNTS = tuple(f"{folder.in_container}/" for folder in _FOLDERS)
"""Where a worker has these folders."""


@dataclass(frozen=True)
class NcclParts:
    """Parts of a worker's pod for NCCL.

    The capability IPC_LOCK is not among them: it has no effect where the container does not run as
    root, as Ray's images don't (docs/project/decisions.md).
    """

    env: dict[str, str] = field(default_factory=dict)
    volumes: list[dict[str, Any]] = field(default_factory=list)
    mounts: list[dict[str, Any]] = field(default_factory=list)


def nccl_parts(worker: Worker) -> NcclParts:
    """Return the parts of a worker's pod for NCCL; empty without GPUs and NICs."""
    if not worker.gpus and not worker.nics:
        return NcclParts()
    nccl = worker.nccl
    parts = NcclParts(env=_environment(nccl))
    if nccl.profile in (GIB, *GIB_PROFILES):
        for folder in _FOLDERS:
            parts.volumes.append({"name": folder.volume, "hostPath": {"path": folder.on_node}})
            # Privileged plugins and the node's next tenant load what is in these folders.
            parts.mounts.append(
                {"name": folder.volume, "mountPath": folder.in_container, "readOnly": True}
            )
    if nccl.shared_memory:
        memory = {"medium": "Memory", "sizeLimit": nccl.shared_memory}
        parts.volumes.append({"name": _SHARED_MEMORY, "emptyDir": memory})
        parts.mounts.append({"name": _SHARED_MEMORY, "mountPath": "/dev/shm"})  # noqa: S108 - the pod's own
    return parts


def _environment(nccl: Nccl) -> dict[str, str]:
    variables = dict(PROFILES[nccl.profile])
    if nccl.library_path:
        # torch finds its own libraries after these: without the folder in front, an NCCL that an
        # older installer of gIB left on the node would be loaded.
        variables[_LIBRARIES] = f"{nccl.library_path}:{variables.get(_LIBRARIES, HOST_LIBRARIES)}"
    return variables | nccl.env


def gib_variables_command(variables: Iterable[str]) -> str:
    """Return the shell command that takes gIB's environment, under a pod's own variables by name.

    The script's values win over the image's, and lose against the pod's. A node without gIB ends
    the container, with the missing file in its log, and the kubelet tries again.
    """
    own = " ".join(sorted(filter(_OF_SCRIPT.fullmatch, variables)))
    return (
        f'{{ own=$(declare -p {own}); cat {SCRIPT} >/dev/null || exit; . {SCRIPT}; eval "$own"; }}'
    )

"""Parts of a worker's pod for NCCL: environment by profile, the node's libraries, shared memory."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from berth.components.core import fast_yaml
from berth.components.fabric.settings import Nccl, Worker
from berth.components.hardware.machines import GIB, GIB_PROFILES

_DATA = fast_yaml.load_beside(__file__)
_LIBRARIES, _TUNER = "LD_LIBRARY_PATH", "NCCL_TUNER_CONFIG_PATH"

HOST_LIBRARIES = str(_DATA["pinned"][_LIBRARIES])
"""Folder of the node's libraries in a worker: NVIDIA's driver, and gIB beside it."""

SCRIPT = str(_DATA["script"])
"""Script of the node's gIB that sets NCCL's variables."""

_OF_SCRIPT = re.compile(r"(?:NCCL|GLOO)_\w+|LD_LIBRARY_PATH", re.ASCII)

PROFILES: dict[str, dict[str, str]] = {
    **{
        name: {**_DATA["pinned"], _TUNER: f"/usr/local/gib/configs/{gib.tuner}"}
        for name, gib in GIB_PROFILES.items()
    },
    **_DATA["profiles"],
}
"""Environment variables of each profile, in order."""

NODE_FOLDERS = tuple(folder["node"] for folder in _DATA["folders"])
"""Folders of a node that a worker may mount, to read: NVIDIA's driver and gIB."""

NODE_MOUNTS = tuple(f"{folder['container']}/" for folder in _DATA["folders"])
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
    folders = _DATA["folders"] if nccl.profile in (GIB, *GIB_PROFILES) else ()
    volumes: list[dict[str, Any]] = [
        {"name": folder["volume"], "hostPath": {"path": folder["node"]}} for folder in folders
    ]
    # Privileged plugins and the node's next tenant load what is in these folders.
    mounts: list[dict[str, Any]] = [
        {"name": folder["volume"], "mountPath": folder["container"], "readOnly": True}
        for folder in folders
    ]
    if nccl.shared_memory:
        volumes.append(
            {
                "name": "shared-memory",
                "emptyDir": {"medium": "Memory", "sizeLimit": nccl.shared_memory},
            }
        )
        mounts.append({"name": "shared-memory", "mountPath": "/dev/shm"})  # noqa: S108 - the pod's own
    return NcclParts(_environment(nccl), volumes, mounts)


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

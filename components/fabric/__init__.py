"""RDMA NICs, claims on devices, and NCCL: settings, rules and the parts of a worker's pod."""

from berth.components.fabric.claims import (
    NVLINK,
    WorkerClaim,
    claim_of,
    claim_template,
    compute_domain,
    dranet_class,
    joined_by_nvlink,
)
from berth.components.fabric.nccl import (
    HOST_LIBRARIES,
    NODE_FOLDERS,
    NODE_MOUNTS,
    SCRIPT,
    NcclParts,
    gib_variables_command,
    nccl_parts,
)
from berth.components.fabric.rules import (
    gpu_name_problems,
    nccl_problems,
    nic_problems,
    nic_warnings,
)
from berth.components.fabric.settings import (
    EnvironmentName,
    Nccl,
    NcclShape,
    nccl_of,
    nics_of,
)

__all__ = [
    "HOST_LIBRARIES",
    "NODE_FOLDERS",
    "NODE_MOUNTS",
    "NVLINK",
    "SCRIPT",
    "EnvironmentName",
    "Nccl",
    "NcclParts",
    "NcclShape",
    "WorkerClaim",
    "claim_of",
    "claim_template",
    "compute_domain",
    "dranet_class",
    "gib_variables_command",
    "gpu_name_problems",
    "joined_by_nvlink",
    "nccl_of",
    "nccl_parts",
    "nccl_problems",
    "nic_problems",
    "nic_warnings",
    "nics_of",
]

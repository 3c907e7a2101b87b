"""Environment variables whose literal values a diagnosis shows.

Any other variable may hold a credential, whatever its name is. These are settings of NCCL and CUDA,
and the variables of Ray, KubeRay and PyTorch that explain failures.
"""

from __future__ import annotations

_PREFIXES = ("CUDA_", "NCCL_")
_NAMES = frozenset(
    """
    FQ_RAY_IP GLOO_SOCKET_IFNAME KUBERAY_GEN_RAY_START_CMD LD_LIBRARY_PATH NVIDIA_DRIVER_CAPABILITIES
    NVIDIA_VISIBLE_DEVICES OMP_NUM_THREADS PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED RAY_ADDRESS RAY_AUTH_MODE
    RAY_AUTH_TOKEN_PATH RAY_CLOUD_INSTANCE_ID RAY_CLUSTER_NAME RAY_DASHBOARD_ADDRESS RAY_IP RAY_JOB_SUBMISSION_ID
    RAY_NODE_TYPE_NAME RAY_PORT RAY_RUNTIME_ENV_HOOK RAY_USAGE_STATS_ENABLED RAY_USAGE_STATS_EXTRA_TAGS
    RAY_USAGE_STATS_KUBERAY_IN_USE RAY_gcs_rpc_server_reconnect_timeout_s TORCH_DISTRIBUTED_DEBUG
    """.split()
)


def is_shown(name: str) -> bool:
    """Return whether a diagnosis shows the value of an environment variable."""
    return name in _NAMES or name.startswith(_PREFIXES)

"""Versions of charts and images that berth installs by default, which versions.yaml has.

The lab's tools have their own pins in lab/tools/*/go.mod; a test holds the two together where they
must agree.
"""

from typing import Any

from berth.components.core import fast_yaml

_PINS: dict[str, Any] = fast_yaml.load_beside(__file__)

KUBERAY: str = _PINS["kuberay"]
KUBERAY_REPOSITORY: str = _PINS["kuberay_repository"]
RAY: str = _PINS["ray"]
RAY_IMAGE: str = _PINS["ray_image"].format_map(_PINS)
CUDA_SAMPLE_IMAGE: str = _PINS["cuda_sample_image"]
"""Image that `berth verify gpu` runs."""

RAY_TOKEN_AUTH_SINCE = (2, 52, 0)
"""The first Ray with token authentication."""

CHART_MIRROR = "BERTH_CHART_MIRROR"
"""Environment variable: mirror of all charts, for environments whose settings name none."""

GPU_OPERATOR: str = _PINS["gpu_operator"]
GPU_OPERATOR_REPOSITORY: str = _PINS["gpu_operator_repository"]
GPU_OPERATOR_BAD: dict[str, str] = _PINS["gpu_operator_bad"]
"""Versions that must not be used, with the reason."""

DRANET: str = _PINS["dranet"]
DRANET_CHART: str = _PINS["dranet_chart"]
GPU_DRA: str = _PINS["gpu_dra"]
GPU_DRA_CHART: str = _PINS["gpu_dra_chart"]
GIB_IMAGE: str = _PINS["gib_image"]
GIB_ARM64_IMAGE: str = _PINS["gib_arm64_image"]

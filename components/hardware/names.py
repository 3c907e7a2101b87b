"""Names that GKE and drivers of GPUs and NICs read; names.yaml says what each is, with sources."""

from typing import Literal

from berth.components.core import fast_yaml

_NAMES: dict[str, str] = fast_yaml.load_beside(__file__)

GPU_RESOURCE = _NAMES["gpu_resource"]
ARCHITECTURE = _NAMES["architecture"]
VISIBLE_DEVICES = _NAMES["visible_devices"]

POOL_LABEL = _NAMES["pool_label"]
METADATA_SERVER_LABEL = _NAMES["metadata_server_label"]
GKE_STRATEGY_LABEL = _NAMES["gke_strategy_label"]
GKE_SHARES_LABEL = _NAMES["gke_shares_label"]
GKE_SIZE_LABEL = _NAMES["gke_size_label"]
MAINTENANCE_LABEL = _NAMES["maintenance_label"]
ACCELERATOR_LABEL = _NAMES["accelerator_label"]
MANAGED_DRANET_LABEL = _NAMES["managed_dranet_label"]
NO_GKE_PLUGIN_LABEL = _NAMES["no_gke_plugin_label"]
CLAIMED_LABEL = _NAMES["claimed_label"]
CONFIG_LABEL = _NAMES["config_label"]
WHOLE_KEY = _NAMES["whole_key"]
MIG_LABEL = _NAMES["mig_label"]
OPERANDS_LABEL = _NAMES["operands_label"]
DEPLOYED_LABEL = _NAMES["deployed_label"]

DRANET = _NAMES["dranet"]
MANAGED_RDMA = _NAMES["managed_rdma"]
GPU = _NAMES["gpu"]
MIG = _NAMES["mig"]
NVLINK_CHANNEL = _NAMES["nvlink_channel"]
DEVICE_CLASSES = (GPU, MIG, DRANET, MANAGED_RDMA, NVLINK_CHANNEL)
"""Device classes that pods of berths claim. The admission policy `berth-claims` lists the same
ones."""

DRANET_DRIVER = _NAMES["dranet_driver"]
PCIE_ROOT = _NAMES["pcie_root"]
CLAIMED_GPUS = _NAMES["claimed_gpus"]

ResourceApi = Literal["v1", "v1beta2", "v1beta1"]
"""Versions of the API group resource.k8s.io in which claims can be written, the newest first."""

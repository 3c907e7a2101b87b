"""Parts of an environment with versions of their own, in the order of their upgrades."""

from collections.abc import Mapping
from dataclasses import dataclass

from berth.components.hardware import versions


@dataclass(frozen=True)
class UpgradePart:
    """Part of an environment with a version of its own.

    Attributes:
        title: name of the part in words.
        setting: what sets the version, below `environment`; empty where no setting does.
        how: how the part is upgraded where no setting does.
        installs: version that berth installs by default; empty for none.
        place: reason for the part's place in the order of upgrades; empty for any place.
        source: key of a source of combinations.yaml, which states that reason.
    """

    title: str
    setting: str = ""
    how: str = ""
    installs: str = ""
    place: str = ""
    source: str = ""


PARTS: Mapping[str, UpgradePart] = {
    "control-plane": UpgradePart(
        "control plane",
        setting="cluster.version",
        place="nodes are never newer than the control plane",
        source="gke-versions",
    ),
    "nodes": UpgradePart(
        "nodes",
        how="GKE upgrades them in the cluster's maintenance window; `gcloud container clusters"
        " upgrade` does it at once",
        place="the control plane takes nodes that are up to two minor versions older",
        source="gke-versions",
    ),
    "node-image": UpgradePart("node image", how="a node's version brings its image"),
    "kuberay-crds": UpgradePart(
        "KubeRay's CRDs",
        how="the update of `operators.kuberay.version` brings them, before the operator",
        installs=versions.KUBERAY,
        place="an operator on older CRDs loses the fields that they lack",
        source="kuberay-upgrade",
    ),
    "kuberay": UpgradePart(
        "KubeRay",
        setting="operators.kuberay.version",
        installs=versions.KUBERAY,
        place="it adopts a RayCluster as it finds it, so that an edit of pods at the same time"
        " would get lost",
        source="kuberay-adopts",
    ),
    "gpu": UpgradePart(
        "NVIDIA's GPU Operator",
        setting="operators.gpu.version",
        installs=versions.GPU_OPERATOR,
    ),
    "dranet": UpgradePart("DraNet", setting="operators.dranet.version", installs=versions.DRANET),
    "gpu_dra": UpgradePart(
        "NVIDIA's DRA driver for GPUs",
        setting="operators.gpuDra.version",
        installs=versions.GPU_DRA,
    ),
    "gib": UpgradePart(
        "Google's NCCL plugin gIB",
        setting="operators.gib.image",
        installs=versions.GIB_IMAGE.rpartition(":")[2],
    ),
    "ray": UpgradePart(
        "Ray",
        setting="`image` and `rayVersion`",
        installs=versions.RAY,
        place="pods restart once, on operators that stay",
        source="kuberay-adopts",
    ),
}
"""Parts by key, in the order in which they are upgraded."""


def title_of(part: str) -> str:
    """Return the name of a part in words; others, such as machines, are their own."""
    return PARTS[part].title if part in PARTS else part

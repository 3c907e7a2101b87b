"""What is installed on the cluster with Helm, through one helper (helm.py)."""

from berth.components.operators.settings import KubeRaySettings

__all__ = ["KubeRaySettings"]

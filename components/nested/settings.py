"""Setting for containers inside Ray's pods."""

from typing import Literal

NestedContainers = Literal["none", "cdi-per-pod", "nvidia-runtime"]
"""Way in which containers inside Ray's pods get the pods' GPUs."""

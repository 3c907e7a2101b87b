"""Pods that a berth must refuse, as changes of a good pod."""

from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]

OBJECTS = yaml.safe_load(Path(__file__).with_name("bad_objects.yaml").read_text(encoding="utf-8"))
BAD_PODS: dict[str, Object] = OBJECTS["pods"]
BAD_CLAIMS: dict[str, tuple[str, Object]] = OBJECTS["claims"]
FORBIDDEN_PODS: dict[str, tuple[str, Object]] = OBJECTS["forbidden pods"]
FORBIDDEN_ANNOTATIONS: dict[str, str] = OBJECTS["forbidden annotations"]
PODS_PAST_LIMITS: dict[str, tuple[str, Object]] = OBJECTS["pods past the limits"]


def good_pod(name: str, priority: str) -> Object:
    """A pod that a berth admits."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "priorityClassName": priority,
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [
                {
                    "name": "c",
                    "image": "example.invalid/image",
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "capabilities": {"drop": ["ALL"]},
                    },
                }
            ],
        },
    }


def annotated_pods(priority: str) -> dict[str, Object]:
    """Pods with the annotations that no pod of a berth may have, by annotation."""
    return {
        key: dict(
            over(
                good_pod(f"annotated-{number}", priority), {"metadata": {"annotations": {key: "x"}}}
            )
        )
        for number, key in enumerate(FORBIDDEN_ANNOTATIONS)
    }


def over(below: Any, above: Any) -> Any:
    """Merge `above` into `below`, key by key, lists index by index; null removes a key."""
    if isinstance(below, dict) and isinstance(above, dict):
        merged = {**below, **{key: over(below.get(key), value) for key, value in above.items()}}
        return {key: value for key, value in merged.items() if value is not None}
    if isinstance(below, list) and isinstance(above, list):
        return [
            *(over(*pair) for pair in zip(below, above, strict=False)),
            *below[len(above) :],
            *above[len(below) :],
        ]
    return above

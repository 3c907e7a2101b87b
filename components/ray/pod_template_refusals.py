"""Fields of a pod that no patch may have, by pod_template_refusals.yaml."""

from pathlib import Path as File
from typing import Any

from berth.components.core import fast_yaml
from berth.components.core.problems import Path
from berth.components.isolation import LONGEST_GRACE, RESTRICTED_VOLUMES

REFUSALS: dict[str, Any] = fast_yaml.read(File(__file__).with_name("pod_template_refusals.yaml"))
"""Words for what no patch may have, by kind."""

_HARMLESS: tuple[Any, ...] = (False, 0, "", {}, [])
"""Values that ask for nothing."""

_SIZES = ("cpu", "memory", "ephemeral-storage", "hugepages-")


def refusal(path: Path, value: Any) -> str:
    """Return why a patch may not have a value at a path; "" for what it may have."""
    if not path or isinstance(path[-1], int):
        return ""
    name, last = _name(path), str(path[-1])
    if words := REFUSALS["fields"].get(name):
        return "" if value in _HARMLESS else f"is not for a patch: {words}"
    return _of_key(name.removesuffix(f".{last}"), last) or _of_value(name, value)


def _of_key(parent: str, key: str) -> str:
    """Return why a mapping of a patch may not have a key."""
    if parent == "metadata.labels" and key.startswith(tuple(REFUSALS["labels"])):
        return "is a label of berth's or KubeRay's own, by which pods are found; take another key"
    if parent == "metadata.annotations":
        words = next((words for prefix, words in REFUSALS["annotations"].items() if key.startswith(prefix)), "")
        return f"is not for a patch: {words}" if words else ""
    if parent == "spec.volumes" and key not in {"name", *RESTRICTED_VOLUMES}:
        return (
            "is mounted by the node, out of reach of NetworkPolicies; make a PersistentVolumeClaim of it, and write"
            " `volumes: {data: {claim: NAME, at: /data}}` of the berth"
        )
    if parent in ("container.resources.limits", "container.resources.requests") and not key.startswith(_SIZES):
        return "is a device, and devices go to Ray's container alone; write `worker.gpus`"
    return ""


def _of_value(name: str, value: Any) -> str:
    """Return why a field of a patch may not have a value."""
    if name.endswith(("seccompProfile.type", "appArmorProfile.type")) and value == "Unconfined":
        return (
            f"{value!r} has the Pod Security level `privileged`; take it out, or write `nestedContainers: cdi-per-pod`,"
            " which needs it"
        )
    if name == "spec.terminationGracePeriodSeconds" and isinstance(value, int) and value > LONGEST_GRACE:
        return f"is at most {LONGEST_GRACE}: a pod that takes longer to end outlives the hours of its berth"
    if name.endswith(("httpGet.host", "tcpSocket.host")) and value:
        return "Pod Security refuses a probe of another host; take it out"
    if name == "container.env.name" and value in REFUSALS["variables"]:
        return f"{value} is not for a patch: {REFUSALS['variables'][value]}"
    if (name, value) == ("spec.volumes.name", "code"):
        return "'code' is taken: the code of a service is a volume of this name; take another name"
    if name == "container.name" and value in REFUSALS["containers"]:
        return f"{value!r} is taken: {REFUSALS['containers'][value]}; take another name"
    return ""


def _name(path: Path) -> str:
    parts = [str(part) for part in path if not isinstance(part, int)]
    if parts[:2] in (["spec", "containers"], ["spec", "initContainers"]) and len(path) > len(parts):
        parts = ["container", *parts[2:]]
    return ".".join(parts)

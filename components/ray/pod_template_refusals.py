"""Fields of a pod that no patch may have, by pod_template_refusals.yaml."""

from typing import Any

from berth.components.core import fast_yaml
from berth.components.core.problems import Path
from berth.components.isolation import LONGEST_GRACE, RESTRICTED_VOLUMES

REFUSALS: dict[str, Any] = fast_yaml.beside(__file__, "pod_template_refusals.yaml")
"""Words for what no patch may have, by kind."""

_WORDS: dict[str, str] = REFUSALS["words"]

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
        return str(_WORDS["label"])
    if parent == "metadata.annotations":
        words = next((words for prefix, words in REFUSALS["annotations"].items() if key.startswith(prefix)), "")
        return f"is not for a patch: {words}" if words else ""
    if parent == "spec.volumes" and key not in {"name", *RESTRICTED_VOLUMES}:
        return str(_WORDS["volume"])
    if parent in ("container.resources.limits", "container.resources.requests") and not key.startswith(_SIZES):
        return str(_WORDS["device"])
    return ""


def _of_value(name: str, value: Any) -> str:
    """Return why a field of a patch may not have a value."""
    if name.endswith(("seccompProfile.type", "appArmorProfile.type")) and value == "Unconfined":
        return str(_WORDS["unconfined"])
    if name == "spec.terminationGracePeriodSeconds" and isinstance(value, int) and value > LONGEST_GRACE:
        return str(_WORDS["grace"].format(longest=LONGEST_GRACE))
    if name.endswith(("httpGet.host", "tcpSocket.host")) and value:
        return str(_WORDS["probe"])
    if name == "container.env.name" and value in REFUSALS["variables"]:
        return f"{value} is not for a patch: {REFUSALS['variables'][value]}"
    taken = REFUSALS["taken"].get(name, {}).get(str(value))
    return f"{value!r} is taken: {taken}; take another name" if taken else ""


def _name(path: Path) -> str:
    parts = [str(part) for part in path if not isinstance(part, int)]
    if parts[:2] in (["spec", "containers"], ["spec", "initContainers"]) and len(path) > len(parts):
        parts = ["container", *parts[2:]]
    return ".".join(parts)

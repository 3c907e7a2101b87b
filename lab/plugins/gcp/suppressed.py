"""Differences that Google's provider suppresses, by the names of its functions (DiffSuppressFunc).

`suppress` of a field (`berth.components.gke.provider_fields`) names the function. The functions
that berth's fields have are here; a difference in a field with another function is shown.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

ANYWHERE = "0.0.0.0/0"
_HOURS = len("9:00")

_PRIVATE = ("enablePrivateEndpoint", "enablePrivateNodes")

# Principals whose names are case sensitive (tpgresource.IamPrincipalIsCaseSensitive).
_CASE_SENSITIVE = ("principal:", "principalSet:", "principalHierarchy:")


@dataclass(frozen=True)
class Change:
    """Change of one value from the state to the inputs.

    Attributes:
        old: the value of the state.
        new: the value of the inputs; None where they leave it out.
        name: the name of the field, or the key of a map.
        state: the outputs of the whole resource.
        inputs: the inputs of the whole resource.
    """

    old: Any
    new: Any
    name: str
    state: Mapping[str, Any]
    inputs: Mapping[str, Any]

    @property
    def texts(self) -> tuple[str, str]:
        """Return both values as the provider compares them: none is an empty text."""
        return str(self.old or ""), str(self.new or "")


def is_suppressed(function: str, change: Change) -> bool:
    """Return whether the provider shows no difference.

    Args:
        function: the name of the provider's function, with its argument in brackets.
        change: the difference.
    """
    name, _, argument = function.rstrip(")").partition("(")
    if name == "EmptyOrDefaultStringSuppress":
        return sorted(change.texts) == ["", argument]
    return name in _FUNCTIONS and _FUNCTIONS[name](change)


def relative_path(reference: str) -> str | None:
    """Return the part of a self link from `projects/`; None for what is not a self link."""
    _, found, rest = reference.partition("projects/")
    return f"projects/{rest}" if found else None


def _last_part(reference: str) -> str:
    return reference.rsplit("/", 1)[-1]


def _same_path(change: Change) -> bool:
    old, new = map(relative_path, change.texts)
    return old is not None and old == new


def _same_path_or_name(change: Change) -> bool:
    old, new = change.texts
    return ("/" not in new and _last_part(old) == new) or _same_path(change)


def _same_but_for_case(change: Change) -> bool:
    old, new = change.texts
    return old.upper() == new.upper()


def _same_member(change: Change) -> bool:
    if any(text.startswith(_CASE_SENSITIVE) for text in change.texts):
        return bool(change.old == change.new)
    return _same_but_for_case(change)


def _same_project(change: Change) -> bool:
    old, new = change.texts
    return _last_part(old) == _last_part(new)


def _encrypted_either_way(change: Change) -> bool:
    return sorted(change.texts) == ["ALL_OBJECTS_ENCRYPTION_ENABLED", "ENCRYPTED"]


def _same_hour(change: Change) -> bool:
    """Whether a time of the day differs by the zero before it only."""
    old, new = change.texts
    return (len(old) == _HOURS and f"0{old}" == new) or (len(new) == _HOURS and f"0{new}" == old)


def _size_of_range(change: Change) -> bool:
    """Whether the inputs have the size alone, such as `/14`, of the range that is there."""
    old, new = change.texts
    return new.startswith("/") and old.endswith(new)


def _was_off(change: Change) -> bool:
    """Whether a block that goes had said `enabled: false`."""
    return bool(change.old) and change.new is None and not _enabled(change.old)


def _enabled(block: Any) -> bool:
    return isinstance(block, Mapping) and bool(block.get("enabled"))


def _label_of_gke(change: Change) -> bool:
    return change.name.startswith("goog-gke") and not change.new


def _default_range(change: Change) -> bool:
    """Whether inputs without source ranges leave the range of everybody, which the API fills in."""
    return change.old == [ANYWHERE] and not change.new


def _stays_public(change: Change) -> bool:
    """Whether neither nodes nor endpoint are, or become, private, and no subnetwork is given.

    The provider ignores fields of the endpoint too where the IP endpoints are off.
    """
    endpoints = _block(_block(change.inputs, "controlPlaneEndpointsConfig"), "ipEndpointsConfig")
    if change.name in ("enabled", "enablePrivateEndpoint") and endpoints.get("enabled") is False:
        return True
    if change.name == "privateEndpointSubnetwork":
        return _same_path_or_name(change)
    names = _PRIVATE if change.name == "privateClusterConfig" else (change.name,)
    values = [_block(found, "privateClusterConfig") for found in (change.state, change.inputs)]
    kept = ("privateEndpointSubnetwork", "masterGlobalAccessConfig")[: len(names)]
    return change.name != "enabled" and not any(
        found.get(name) for found in values for name in (*names, *kept)
    )


def _block(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = values.get(name)
    return found if isinstance(found, Mapping) else {}


_FUNCTIONS: dict[str, Callable[[Change], bool]] = {
    "BinaryAuthorizationDiffSuppress": _was_off,
    "CaseDiffSuppress": _same_but_for_case,
    "CidrOrSizeDiffSuppress": _size_of_range,
    "CompareProjectName": _same_project,
    "CompareSelfLinkOrResourceName": _same_path_or_name,
    "CompareSelfLinkRelativePaths": _same_path,
    "DatabaseEncryptionSuppress": _encrypted_either_way,
    "Rfc3339TimeDiffSuppress": _same_hour,
    "SecretManagerCfgSuppress": _was_off,
    "SecretSyncCfgSuppress": _was_off,
    "containerClusterNetworkPolicyDiffSuppress": _was_off,
    "containerClusterPrivateClusterConfigSuppress": _stays_public,
    "containerNodePoolResourceLabelsDiffSuppress": _label_of_gke,
    "diffSuppressSourceRanges": _default_range,
    "iamMemberCaseDiffSuppress": _same_member,
    "podSecurityPolicyCfgSuppress": _was_off,
}
SUPPRESSIONS = frozenset({*_FUNCTIONS, "EmptyOrDefaultStringSuppress"})
"""Names of the functions that the lab knows."""

NEVER_MET = {
    "containerClusterAddedScopesSuppress": "compares the scopes of node auto-provisioning",
    "containerNodePoolLabelsSuppress": "compares labels of GKE Sandbox",
}
"""Functions of fields that berth sets which suppress nothing there, with the reason."""

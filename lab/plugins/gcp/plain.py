"""Resource types without parts: networks and what belongs to them, service accounts, grants."""

import ipaddress
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from pulumi.runtime.rpc import UNKNOWN

from berth.lab.plugins.gcp.resource import Edit, ResourceType, number_of, whole_reference
from berth.lab.plugins.gcp.store import StoredRecord

_RANGES = "secondaryIpRanges"
_OF_ACCOUNT = {"email", "member"}


def _email(record: StoredRecord) -> str:
    return f"{record.inputs['accountId']}@{record.project}.iam.gserviceaccount.com"


def _mtu(record: StoredRecord) -> dict[str, int]:
    """Return the default that depends on another input of a network."""
    return (
        {"mtu": 8896 if record.inputs.get("networkProfile") else 1460}
        if "/global/networks/" in record.id
        else {}
    )


def _by_name(ranges: Any) -> list[str]:
    """Return secondary ranges as texts, sorted."""
    return sorted(json.dumps(found, sort_keys=True) for found in ranges or [])


def _number(record: StoredRecord) -> str:
    return number_of(record.id)


_COMPUTED: dict[str, Callable[[StoredRecord], Any]] = {
    "autoNetworkTier": lambda record: record.inputs.get("autoNetworkTier", "PREMIUM"),
    "creationTimestamp": lambda record: record.state["created"],
    "email": _email,
    "etag": _number,
    "fingerprint": lambda record: number_of(repr(sorted(record.inputs.items()))),
    "gatewayAddress": lambda record: str(
        ipaddress.IPv4Network(str(record.inputs["ipCidrRange"]))[1]
    ),
    "gatewayIpv4": lambda _: "",
    "member": lambda record: f"serviceAccount:{_email(record)}",
    "name": lambda record: f"projects/{record.project}/serviceAccounts/{_email(record)}",
    "networkId": _number,
    "numericId": _number,
    "selfLink": lambda record: f"https://www.googleapis.com/compute/v1/{record.id}",
    "subnetworkId": lambda record: int(number_of(record.id)) % 10**15,
    "uniqueId": _number,
}
"""Values of outputs that nobody gives."""


class Plain(ResourceType):
    """Resource type whose outputs are defaults, inputs and values that follow from the record.

    Args:
        token: the engine's type token.
        row: title, path and computed outputs, and where they are not the usual ones `located` and
            `named` (see `ResourceType`); `defaults` of inputs that are left out.
    """

    def __init__(self, token: str, row: dict[str, Any]) -> None:
        self.token = token
        self.title = row["title"]
        self.path = row["path"]
        self.computed = tuple(row["computed"])
        self.located = row.get("located", "")
        self.named = row.get("named", True)
        self._defaults = row.get("defaults", {})

    def customize(self, edit: Edit) -> bool:
        """The range of a subnetwork grows in place, and does not shrink or move.

        The order of its secondary ranges means nothing. What follows from an account's name is
        known only after the edit.
        """
        if edit.state.get("accountId") != edit.plan.get("accountId"):
            edit.plan.update(dict.fromkeys(_OF_ACCOUNT & edit.state.keys(), UNKNOWN))
        before, after = (values.get(_RANGES) for values in (edit.state, edit.plan))
        if isinstance(after, list) and _by_name(after) == _by_name(before):
            edit.plan[_RANGES] = before
        try:
            old, new = (
                ipaddress.IPv4Network(str(values["ipCidrRange"]))
                for values in (edit.state, edit.plan)
            )
        except (ValueError, KeyError):
            return False
        return not old.subnet_of(new)

    def kept(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """See `ResourceType`."""
        values = {**self._defaults, **inputs}
        if "network" in values and "project" in values:
            parent = f"projects/{values['project']}/global/networks"
            values["network"] = whole_reference(values["network"], parent)
        return values

    def outputs(self, record: StoredRecord) -> dict[str, Any]:
        """See `ResourceType`."""
        computed = {name: _COMPUTED[name](record) for name in self.computed}
        return {**_mtu(record), **self.kept(record.inputs), **computed}


def plain_types() -> list[Plain]:
    """Return the types of `plain.yaml`."""
    rows = yaml.safe_load(Path(__file__).with_name("plain.yaml").read_text())
    return [Plain(token, row) for token, row in rows.items()]

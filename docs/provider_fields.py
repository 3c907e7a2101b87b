"""Writer of `components/gke/provider_fields.json`, from facts about Google's provider.

`python -m docs.provider_fields RESULTS_JSON FIELDS_JSON`. RESULTS_JSON has the compiled schemas of
the provider's resources under the names of Pulumi's bridge, and what each field's own validation
said to probes. FIELDS_JSON was read from the provider's source: it has what no schema says, such as
whether GKE recreates nodes. The names of the functions that suppress a difference, which a compiled
schema does not have either, are in `suppressed_differences.yaml`.
"""

import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from berth.components.gke.provider_fields import CLUSTER, FILE, snake_case

SUPPRESSED = Path(__file__).with_name("suppressed_differences.yaml")

_SAME_AS_POOLS = ("nodeConfig.", "nodePools.")
"""Beginnings of paths in a cluster whose fields are those of a node pool."""

_SECONDS = {"h": 3600, "m": 60, "s": 1}
_SDK_TIMEOUT = "20m0s"
"""The Terraform SDK's timeout of an operation for which the resource sets none."""

_FALSE = {("gcp:serviceaccount/account:Account", "disabled")}
"""Fields whose default is false, which a compiled schema omits, in resources that FIELDS_JSON lacks
(resourcemanager/resource_google_service_account.go)."""

_UNREAD = {
    ("gcp:compute/routerNat:RouterNat", "region"),
    ("gcp:container/cluster:Cluster", "minMasterVersion"),
    ("gcp:container/cluster:Cluster", "removeDefaultNodePool"),
}
"""Fields that the provider does not read back: the state lacks one that was never given."""

_STICKS = re.compile(r"removing the (?:last label|block) sends no")
_ONE_OF = re.compile(r"to be one of \[(.*?)\], got")
_CHOICE = re.compile(r'"((?:[^"\\]|\\.)*)"')
_LEAST = re.compile(r"to be at least \((-?[\d.]+)\)|in the range \((-?[\d.]+) - ")
_MOST = re.compile(r"to be at most \((-?[\d.]+)\)|in the range \(-?[\d.]+ - (-?[\d.]+)\)")
_LENGTH = re.compile(r"must be between (\d+) and (\d+) characters long")


def distilled(results: dict[str, Any], facts: dict[str, Any]) -> dict[str, Any]:
    """Facts about the fields, without what is the same for most of them.

    Args:
        results: the content of RESULTS_JSON, or of a part of it.
        facts: the content of FIELDS_JSON, or of a part of it.

    Raises:
        KeyError: for a field whose difference the provider suppresses by a function without a name.
        ValueError: the two files are of different commits.
    """
    commit = facts["source"]["commit"]
    if commit not in results["source"]["provider"]:
        raise ValueError(f"FIELDS_JSON is of {commit}, RESULTS_JSON of another commit")
    resources = {}
    for token, resource in results["resources"].items():
        read = facts["resources"].get(resource["terraform"], {})
        resources[token] = {
            path: _row(token, path, row, read.get(row["terraform"], {}), resource)
            for path, row in resource["fields"].items()
            if is_input(row) and not (token == CLUSTER and path.startswith(_SAME_AS_POOLS))
        }
    return {
        "source": {key: facts["source"][key] for key in ("repository", "commit", "date", "version")}
        | {"bridge": results["source"]["bridge"]},
        "timeouts": {
            token: {
                key: _seconds(resource["timeouts"].get(key, _SDK_TIMEOUT))
                for key in ("create", "update", "delete")
            }
            for token, resource in results["resources"].items()
        },
        "resources": resources,
    }


def text(content: dict[str, Any]) -> str:
    """The table as text: one line for each field, so that a change can be read."""
    parts = [
        f'"source": {json.dumps(content["source"])}',
        f'"timeouts": {_lines(content["timeouts"])}',
    ]
    resources = [
        f"{json.dumps(token)}: {_lines(rows)}" for token, rows in content["resources"].items()
    ]
    return (
        "{\n" + ",\n".join([*parts, '"resources": {\n' + ",\n".join(resources) + "\n}"]) + "\n}\n"
    )


def is_input(row: dict[str, Any]) -> bool:
    """Return whether a field can be given."""
    return bool(row.get("optional") or row.get("required"))


@cache
def suppressing_functions() -> dict[str, str]:
    """Name of the provider's function that suppresses differences of a field, by `TYPE.PATH`."""
    functions = yaml.safe_load(SUPPRESSED.read_text(encoding="utf-8"))
    return {field: function for function, fields in functions.items() for field in fields}


def _row(
    token: str, path: str, row: dict[str, Any], read: dict[str, Any], resource: dict[str, Any]
) -> dict[str, Any]:
    """Facts about a field; values that say nothing are left out.

    Args:
        token: the type of the resource.
        path: path of the field in Pulumi's inputs.
        row: what the compiled schema says of the field.
        read: what was read of the field in the source.
        resource: what the compiled schema says of the resource.
    """
    said = [*row.get("validation", {}).items()]
    elements = [message for probe, message in said if probe.startswith("element ")]
    values = [message for probe, message in said if not probe.startswith("element ")]
    name = row["terraform"].rpartition(".")[2]
    facts = {
        "replaces": row["forceNew"],
        "keeps": row.get("optional") and row.get("computed"),
        "nodes": None if row["forceNew"] else read.get("recreatesNodes"),
        # The resource, or the block around the field, cannot be without it.
        "required": row.get("required"),
        "kind": _kind(row),
        # Type of a single value that is not text.
        "type": {"bool": "bool", "int": "int", "float": "number"}.get(row["type"]),
        # The only values that the provider lets through, and of an element the only ones.
        "allowed": _choices(values),
        "elements": _choices(elements),
        "least": _number(_LEAST, values),
        "most": _number(_MOST, values),
        # Most elements; left out without a limit.
        "items": row.get("maxItems") if row.get("maxItems") != 1 else None,
        # Paths that cannot be given beside this one.
        "conflicts": row.get("conflictsWith"),
        # Paths of which exactly one is given; the first of them has the list.
        "one_of": _group(row, "exactlyOneOf", path),
        # Paths of which at least one is given, where the block around them is; as above.
        "some_of": _group(row, "atLeastOneOf", path),
        # Name of the provider's function that suppresses a difference.
        "suppress": _suppress(row, resource["terraform"]),
        # Name of the provider's check of the value.
        "format": read.get("validate") or _format(values),
        "sticks": _STICKS.search(read.get("note", "")) is not None,
        "unread": (token, path) in _UNREAD,
        # Terraform's name, where it is not the same in snake case.
        "terraform": name if name != snake_case(path.rpartition(".")[2]) else None,
    }
    default = False if (token, path) in _FALSE else row.get("default", read.get("default"))
    # A default says something even where it is false.
    return _telling(facts) | ({} if default is None else {"default": default})


def _telling(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the facts that say something."""
    return {
        key: value
        for key, value in facts.items()
        if value is not None and value is not False and value not in ([], "no")
    }


def _kind(row: dict[str, Any]) -> str | None:
    if row["type"] not in ("list", "set", "map") or row.get("maxItems") == 1:
        return None
    return str(row["type"])


def _choices(messages: list[str]) -> list[str]:
    found = next(filter(None, map(_ONE_OF.search, messages)), None)
    return [] if found is None else _CHOICE.findall(found[1])


def _number(pattern: re.Pattern[str], messages: list[str]) -> float | None:
    found = next(filter(None, map(pattern.search, messages)), None)
    if found is None:
        return None
    number = float(found[1] or found[2])
    return int(number) if number.is_integer() else number


def _group(row: dict[str, Any], key: str, path: str) -> list[str]:
    paths = sorted(row.get(key, []))
    return paths if path in paths[:1] else []


def _suppress(row: dict[str, Any], terraform: str) -> str | None:
    return (
        suppressing_functions()[f"{terraform}.{row['terraform']}"]
        if row.get("diffSuppress")
        else None
    )


def _format(messages: list[str]) -> str | None:
    """Name of the check in a resource that FIELDS_JSON lacks."""
    joined = "; ".join(messages)
    if length := _LENGTH.search(joined):
        return f"ValidateRFC1035Name({length[1]},{length[2]})"
    return "validateIAMMember" if "IAM members must" in joined else None


def _seconds(duration: str) -> int:
    return sum(
        int(number) * _SECONDS[unit] for number, unit in re.findall(r"(\d+)([hms])", duration)
    )


def _lines(rows: dict[str, Any]) -> str:
    return (
        "{\n"
        + ",\n".join(f"  {json.dumps(key)}: {json.dumps(row)}" for key, row in rows.items())
        + "\n}"
    )


if __name__ == "__main__":
    RESULTS, FACTS = (json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:])
    FILE.write_text(text(distilled(RESULTS, FACTS)), encoding="utf-8")

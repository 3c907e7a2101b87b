"""Requests that Google's provider sends for berth, and the file that has what is in their bodies.

`requests.json` has, for each method and path, the fields of all bodies with values that were sent:
every word in capitals, which is a choice of Google's, and of other values the first.

`make test-provider RECORD=1` writes it again, from all that the provider sends for the stacks and
edits of tests/provider.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("requests.json")

_FIELD = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_NAMED_BY_SETTINGS = ".maintenanceExclusions"
"""End of the path of a map whose keys look like fields."""
_CHOICE = re.compile(r"[A-Z][A-Z0-9_]*")
_VERSIONS = {
    "cloudresourcemanager": "v1",
    "compute": "beta",
    "container": "v1beta1",
    "iam": "v1",
}
"""Version of each API that terraform-provider-google-beta calls (transport/config.go)."""

Fields = dict[str, list[Any]]
"""Values of each field, by its path in a body."""
Sent = dict[str, dict[str, Fields]]
"""Fields of bodies by the API with its version, and by `METHOD path` with `{}` for names."""


def requests_sent() -> Sent:
    """Return the fields that were recorded."""
    return {**json.loads(FILE.read_text(encoding="utf-8"))}


def path_in_general(path: str) -> str:
    """Return a path of a request with `{}` for each name: `projects/{}/global/networks`."""
    parts = []
    is_name = False
    for part in path.partition("?")[0].split("/"):
        if not is_name or part == "global":
            parts.append(part)
            is_name = part != "global"
            continue
        _, colon, verb = part.partition(":")
        parts.append(f"{{}}{colon}{verb}")
        is_name = False
    return "/".join(parts)


def add_fields(fields: Fields, body: object, path: str = "") -> None:
    """Add the fields of a body, or of a part of one at a path; a key of a map is `*`."""
    if isinstance(body, Mapping) and body:
        are_names = path.endswith(_NAMED_BY_SETTINGS)
        for key, value in body.items():
            name = "*" if are_names or not _FIELD.fullmatch(key) else key
            add_fields(fields, value, f"{path}.{name}" if path else name)
        return
    if isinstance(body, list) and body:
        for element in body:
            add_fields(fields, element, f"{path}[]")
        return
    known = fields.setdefault(path, [])
    if body not in (None, {}, []) and body not in known and (not known or _is_choice(body)):
        known.append(body)


def _is_choice(value: object) -> bool:
    return isinstance(value, str) and _CHOICE.fullmatch(value) is not None


def add_request(sent: Sent, api: str, method: str, path: str, body: object) -> None:
    """Add the fields of a request, if it has a body.

    Args:
        sent: the fields that were sent so far.
        api: name of the API, without its version.
        method: method of the request.
        path: path of the request, after the API's version.
        body: what the request sends.
    """
    if body is not None:
        of_api = sent.setdefault(f"{api}.{_VERSIONS[api]}", {})
        add_fields(of_api.setdefault(f"{method} {path_in_general(path)}", {}), body)


def unrecorded(sent: Sent) -> Iterator[str]:
    """Yield fields and choices that were sent, and that the file does not have."""
    recorded = requests_sent()
    for api, requests in sent.items():
        for request, fields in requests.items():
            known = recorded.get(api, {}).get(request, {})
            for path, values in fields.items():
                choices = {value for value in values if _is_choice(value)}
                if path not in known or choices - {*known[path]}:
                    yield f"{api} {request} {path} {sorted(choices)}"


def write(sent: Sent) -> None:
    """Write the file again: one line for each field."""
    parts = []
    for api, requests in sorted(sent.items()):
        listed = [
            f"{json.dumps(request)}: {_lines(fields)}"
            for request, fields in sorted(requests.items())
        ]
        parts.append(f"{json.dumps(api)}: {{\n" + ",\n".join(listed) + "\n}")
    FILE.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def _lines(fields: Fields) -> str:
    lines = [
        f"  {json.dumps(path)}: {json.dumps(sorted(values, key=str))}"
        for path, values in sorted(fields.items())
    ]
    return "{\n" + ",\n".join(lines) + "\n}"

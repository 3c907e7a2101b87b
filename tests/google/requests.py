"""Requests that Google's provider sends for berth, and the file that has what is in their bodies.

`requests.json` has, for each method and path, the fields of all bodies with values that were sent:
every word in capitals, which is a choice of Google's, and of other values the first.

`python -m tests.google.requests RESULTS_JSON` writes it again from the requests of a recording
(`plans` and `edits` of the reference data's oracle/results.json).
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("requests.json")

_FIELD = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_CHOICE = re.compile(r"[A-Z][A-Z0-9_]*")
_VERSIONS = {
    "gcp:compute": "compute.beta",
    "gcp:container": "container.v1beta1",
    "gcp:projects": "cloudresourcemanager.v1",
    "gcp:serviceaccount": "iam.v1",
}
"""Version of each API that terraform-provider-google-beta calls (transport/config.go)."""

Fields = dict[str, list[Any]]
"""Values of each field, by its path in a body."""


def requests_sent() -> dict[str, dict[str, Fields]]:
    """Return the fields that were sent, by the API and by `METHOD path`."""
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
        for key, value in body.items():
            name = key if _FIELD.fullmatch(key) else "*"
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


def written(requests: Iterable[tuple[str, str, str, object]]) -> str:
    """Return the content of the file: one line for each field.

    Args:
        requests: type of the resource, method, path and body of each.
    """
    by_api: dict[str, dict[str, Fields]] = {}
    for kind, method, path, body in requests:
        if body is not None and method != "DELETE":
            of_api = by_api.setdefault(_VERSIONS[kind.partition("/")[0]], {})
            add_fields(of_api.setdefault(f"{method} {path_in_general(path)}", {}), body)
    parts = []
    for api, sent in sorted(by_api.items()):
        listed = [f"{json.dumps(key)}: {_lines(fields)}" for key, fields in sorted(sent.items())]
        parts.append(f"{json.dumps(api)}: {{\n" + ",\n".join(listed) + "\n}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _lines(fields: Fields) -> str:
    lines = [
        f"  {json.dumps(path)}: {json.dumps(sorted(values, key=str))}"
        for path, values in sorted(fields.items())
    ]
    return "{\n" + ",\n".join(lines) + "\n}"


def _of_results(results: Mapping[str, Any]) -> Iterator[tuple[str, str, str, object]]:
    for plan in results["plans"]:
        for request in plan["requests"]:
            yield plan["type"], request["method"], request["path"], request.get("body")
    for edit in results["edits"]:
        for request in edit["updateRequests"] or ():
            yield edit["type"], request["method"], request["path"], request.get("body")


if __name__ == "__main__":
    recording = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    FILE.write_text(written(_of_results(recording)), encoding="utf-8")

"""Stand-in for `curl` in the shipped GitLab jobs: notes of a merge request and issues, from a
file.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

STATE = Path(os.environ["PLAYED_GITLAB"])
NOTES = "https://gitlab.test/api/v4/projects/5/merge_requests/7/notes"
ISSUES = "https://gitlab.test/api/v4/projects/5/issues"


def main(arguments: list[str]) -> int:
    method = "GET"
    url = ""
    data = {}
    headers = []
    rest = iter(arguments)
    for argument in rest:
        match argument:
            case "-fsS" | "-G":
                pass
            case "-o":
                next(rest)
            case "-X":
                method = next(rest)
            case "-H":
                headers.append(next(rest))
            case "-d" | "--data-urlencode":
                key, value = field(next(rest))
                data[key] = value
            case _:
                url = argument
    if headers != ["PRIVATE-TOKEN: token"]:
        sys.stderr.write("curl: (22) The requested URL returned error: 401\n")
        return 22
    state = json.loads(STATE.read_text())
    answer = answered(state, method, url.partition("?")[0], data)
    STATE.write_text(json.dumps(state))
    sys.stdout.write(json.dumps(answer))
    return 0


def field(text: str) -> tuple[str, str]:
    """`name=value`, or `name@file`."""
    name, equals, value = text.partition("=")
    if equals and "@" not in name:
        return name, value
    name, _, path = text.partition("@")
    return name, Path(path).read_text(encoding="utf-8")


def answered(state: dict[str, Any], method: str, path: str, data: dict[str, str]) -> Any:
    for collection, base, key in (("notes", NOTES, "id"), ("issues", ISSUES, "iid")):
        things = state[collection]
        if path == base and method == "GET":
            return things
        if path == base and method == "POST":
            things.append({key: len(things) + 10, **data})
            return things[-1]
        if path.startswith(f"{base}/") and method == "PUT":
            (thing,) = (item for item in things if str(item[key]) == path.rsplit("/", 1)[-1])
            thing.update(data)
            return thing
    raise AssertionError(f"not played: {method} {path}")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

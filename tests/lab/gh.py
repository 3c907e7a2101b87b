"""Stand-in for GitHub's `gh`: comments, issues, commits and pull requests in a folder; calls are
recorded.

It knows the calls that the shipped workflow makes, and fails on any other. `--jq` is done by jq, as
gh does it by its own.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

HEAD = "decaf"
"""Commit that the merged pull request had at its head."""

FOLDER = Path(os.environ.get("PLAYED_GITHUB", ""))


def main(arguments: list[str]) -> int:
    words, options = split(arguments)
    if not os.environ.get("GH_TOKEN"):
        return refuse("gh: to use GitHub CLI in a workflow, set the GH_TOKEN environment variable")
    state = json.loads((FOLDER / "state.json").read_text())
    answer = answered(state, words, options)
    answer = merged(state, words, options) if answer is None else answer
    if answer is None:
        return refuse(f"gh: this is not played: {arguments}")
    state["calls"].append(" ".join(words))
    (FOLDER / "state.json").write_text(json.dumps(state))
    if "--silent" not in options:
        sys.stdout.write(filtered(answer, options.get("--jq")))
    return 0


def split(arguments: list[str]) -> tuple[list[str], dict[str, str]]:
    words: list[str] = []
    options: dict[str, str] = {}
    rest = iter(arguments)
    for argument in rest:
        if argument in ("--paginate", "--silent"):
            options[argument] = "yes"
        elif argument.startswith("-"):
            options[argument] = next(rest)
        else:
            words.append(argument)
    return words, options


def answered(state: dict[str, Any], words: list[str], options: dict[str, str]) -> Any:
    method = options.get("--method", "GET")
    match words:
        case ["api", path] if method == "GET" and re.fullmatch(
            r"repos/acme/fleet/issues/7/comments", path
        ):
            return state["comments"]
        case ["api", "repos/acme/fleet/issues/7/comments"] if method == "POST":
            return added(state["comments"], {"body": body(options["-F"]), "user": {"type": "Bot"}})
        case ["api", path] if method == "PATCH":
            return edited(
                state["comments"],
                int(path.removeprefix("repos/acme/fleet/issues/comments/")),
                body(options["-F"]),
            )
        case ["api", "repos/acme/fleet/commits/main"]:
            return {"sha": state["main"]}
        case ["issue", "list"]:
            return issues_of(state, options)
        case ["issue", "create"]:
            issue = {
                "title": options["--title"],
                "state": "open",
                "body": Path(options["--body-file"]).read_text(),
            }
            return added(state["issues"], issue, key="number")
        case ["issue", "edit", number]:
            return edited(
                state["issues"], int(number), Path(options["--body-file"]).read_text(), key="number"
            )
        case ["issue", "close", number]:
            return closed(state["issues"], int(number))
    return None


def issues_of(state: dict[str, Any], options: dict[str, str]) -> list[dict[str, Any]]:
    fields = options["--json"].split(",")
    issues = [item for item in state["issues"] if item["state"] == options["--state"]]
    return [{field: item[field] for field in fields} for item in issues]


def closed(issues: list[dict[str, Any]], number: int) -> dict[str, Any]:
    for item in issues:
        if item["number"] == number:
            item["state"] = "closed"
            return {}
    raise KeyError(number)


def merged(state: dict[str, Any], words: list[str], options: dict[str, str]) -> Any:
    """Answer about the pull request with a commit, and its labels."""
    match words:
        case ["api", path] if path == f"repos/acme/fleet/commits/{os.environ['GITHUB_SHA']}/pulls":
            return [
                {"number": 6, "merged_at": None},
                {"number": 7, "merged_at": state["merged"], "head": {"sha": HEAD}},
            ]
        case ["api", path] if path.startswith("repos/acme/fleet/actions/artifacts?name=plan-"):
            name = path.partition("=")[2]
            return {
                "artifacts": [item for item in state.get("artifacts", []) if item["name"] == name]
            }
        case ["api", path] if found := re.fullmatch(r"repos/acme/fleet/actions/runs/(\d+)", path):
            return next(
                item["run"]
                for item in state["artifacts"]
                if item["workflow_run"]["id"] == int(found[1])
            )
        case ["run", "download", run]:
            content = next(
                item["content"]
                for item in state["artifacts"]
                if item["workflow_run"]["id"] == int(run)
            )
            folder = Path(options["--dir"])
            folder.mkdir(exist_ok=True)
            (folder / "plan.json").write_text(content)
            return {}
        case ["api", "repos/acme/fleet/issues/7/events"]:
            return state["events"]
        case ["api", "repos/acme/fleet/issues/7/labels/allow-destroy"] if (
            options["--method"] == "DELETE"
        ):
            return state["events"].append(event("unlabeled", "allow-destroy", state["now"])) or []
    return None


def event(kind: str, label: str, at: str) -> dict[str, Any]:
    """Event of a pull request's label, as GitHub lists them: the oldest first."""
    return {"event": kind, "label": {"name": label}, "created_at": at}


def body(field: str) -> str:
    name, _, path = field.partition("=@")
    assert name == "body"
    return Path(path).read_text(encoding="utf-8")


def added(things: list[Any], thing: dict[str, Any], key: str = "id") -> dict[str, Any]:
    things.append({key: len(things) + 100, **thing})
    return thing


def edited(things: list[Any], which: int, text: str, key: str = "id") -> dict[str, Any]:
    (thing,) = (item for item in things if item[key] == which)
    thing["body"] = text
    return dict(thing)


def filtered(answer: Any, expression: str | None) -> str:
    text = json.dumps(answer)
    if expression is None:
        return text
    return subprocess.run(
        ["jq", "-r", expression], input=text, capture_output=True, text=True, check=True
    ).stdout


def refuse(text: str) -> int:
    sys.stderr.write(f"{text}\n")
    return 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

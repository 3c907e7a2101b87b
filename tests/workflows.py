"""Shipped CI files, read as the runner reads them."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

CLONE = Path(__file__).resolve().parents[1]
GITHUB = CLONE / ".github" / "workflows"
ACTION = CLONE / ".github" / "actions" / "set-up" / "action.yml"
GITLAB = CLONE / "docs" / "ci" / "gitlab-ci.yml"


@dataclass(frozen=True)
class Script:
    """Shell script of a job, with its name and environment."""

    name: str
    text: str
    env: dict[str, str]


def github(name: str = "berth") -> dict[str, Any]:
    """A workflow. YAML 1.1 reads the key `on` as true."""
    document = yaml.safe_load((GITHUB / f"{name}.yml").read_text(encoding="utf-8"))
    return {("on" if key is True else key): value for key, value in document.items()}


def github_scripts(name: str = "berth") -> list[Script]:
    """The scripts of a workflow's steps, with all that their environment takes from the
    workflow.
    """
    workflow = github(name)
    return [
        Script(
            f"{job_name}: {step.get('name', step['run'])}",
            step["run"],
            {**workflow.get("env", {}), **job.get("env", {}), **step.get("env", {})},
        )
        for job_name, job in workflow["jobs"].items()
        for step in job["steps"]
        if "run" in step
    ]


def gitlab() -> dict[str, Any]:
    return dict(yaml.safe_load(GITLAB.read_text(encoding="utf-8")))


def gitlab_scripts() -> list[Script]:
    return [
        Script(f"{name}: {part}", "\n".join(job[part]), dict(job.get("variables", {})))
        for name, job in gitlab().items()
        if isinstance(job, dict)
        for part in ("before_script", "script")
        if part in job
    ]


def commands(text: str, program: str) -> list[list[str]]:
    """Arguments of the calls of a program in a script; `"${allow[@]}"` and `$allow` are
    --allow-destroy.
    """
    found = []
    for line in text.replace("\\\n", " ").splitlines():
        # Only what the shell would run: no comments, no redirections, nothing behind a list's or a
        # pipe's operator.
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        try:
            words = list(lexer)
        except ValueError:
            continue  # a text of several lines: no command of ours begins inside one
        for index, word in enumerate(words):
            if Path(word).name == program and (
                index == 0 or words[index - 1] in (";", "&&", "||", "|", "then", "else")
            ):
                arguments = []
                for argument in words[index + 1 :]:
                    if argument in (">", ">>", "2", "|", "||", "&&", ";", ">&"):
                        break
                    arguments.append(
                        {"${allow[@]}": "--allow-destroy", "$allow": "--allow-destroy"}.get(
                            argument, argument
                        )
                    )
                found.append(arguments)
    return found

"""The shipped CI files: of the official schemas, careful with what strangers write, and true to
berth's commands.
"""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import typer

from berth.cli.main import app
from tests import workflows
from tests.workflows import ACTION, CLONE, GITHUB, GITLAB, Script, commands, github, github_scripts, gitlab_scripts

WORKFLOWS = sorted(path.stem for path in GITHUB.glob("*.yml"))
SCRIPTS = [script for name in WORKFLOWS for script in github_scripts(name)] + gitlab_scripts()
DOCS = (CLONE / "docs" / "ci.md").read_text(encoding="utf-8")


def named(script: Script) -> str:
    return script.name


@pytest.mark.parametrize(
    ("schema", "paths"),
    [
        ("vendor.github-workflows", [str(GITHUB / f"{name}.yml") for name in WORKFLOWS]),
        ("vendor.github-actions", [str(ACTION)]),
        ("vendor.gitlab-ci", [str(GITLAB), "--data-transform", "gitlab-ci"]),
    ],
)
def test_the_files_are_of_the_official_schemas(schema: str, paths: list[str]) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *paths]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("script", SCRIPTS, ids=named)
def test_scripts_are_shell(script: Script) -> None:
    done = subprocess.run(["bash", "-n"], input=script.text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("script", SCRIPTS, ids=named)
def test_nothing_is_written_into_a_script_but_by_its_environment(script: Script) -> None:
    """A title or a branch's name that is pasted into a script is a script of its author's."""
    assert "${{" not in script.text
    outside = [value for value in script.env.values() if "github.event" in str(value)]
    allowed = ("github.event.pull_request.number", "github.event.pull_request.labels.*.name, 'allow-destroy'")
    assert all(any(part in value for part in allowed) for value in outside)


@pytest.mark.parametrize("text", [*((GITHUB / f"{name}.yml").read_text() for name in WORKFLOWS), ACTION.read_text()])
def test_actions_are_pinned_by_commit(text: str) -> None:
    used = re.findall(r"uses: (\S+)", text)
    assert used
    for action in used:
        assert action.startswith("./") or re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", action), action


def test_each_job_may_do_no_more_than_it_does() -> None:
    workflow = github()
    assert workflow["permissions"] == {}
    assert {name: job["permissions"] for name, job in workflow["jobs"].items()} == {
        "check": {"contents": "read"},
        "preview": {"contents": "read", "id-token": "write", "pull-requests": "write"},
        "up": {"contents": "read", "id-token": "write", "pull-requests": "read"},
        "drift": {"contents": "read", "id-token": "write", "issues": "write"},
    }
    assert "pull_request_target" not in workflow["on"]
    assert github("test")["permissions"] == {"contents": "read"}


def test_code_of_a_fork_gets_no_credentials() -> None:
    jobs = github()["jobs"]
    for name, job in jobs.items():
        if "id-token" not in job["permissions"]:
            continue
        event = re.findall(r"github.event_name == '(\w+)'", job["if"])
        if "pull_request" in event:
            assert "github.event.pull_request.head.repo.full_name == github.repository" in job["if"], name
    assert {name for name, job in jobs.items() if "pull_request" in str(job.get("if"))} == {"preview"}
    assert "CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_PROJECT_ID" in str(workflows.gitlab()["preview"]["rules"])


def test_up_waits_for_approval_one_at_a_time_and_is_not_cut_off() -> None:
    up = github()["jobs"]["up"]
    assert up["environment"] == "${{ matrix.stack }}"
    assert up["concurrency"] == {"group": "up-${{ matrix.stack }}", "cancel-in-progress": False}
    theirs = workflows.gitlab()["up"]
    assert (theirs["environment"], theirs["resource_group"], theirs["interruptible"]) == (
        {"name": "$STACK"},
        "$STACK",
        False,
    )
    assert theirs["rules"][0]["when"] == "manual"


def test_only_the_job_that_is_approved_acts_as_the_account_that_changes_things() -> None:
    for name, job in github()["jobs"].items():
        accounts = [
            step["with"].get("service-account") for step in job["steps"] if "service-account" in step.get("with", {})
        ]
        expected = {"up": ["${{ vars.DEPLOY_SERVICE_ACCOUNT }}"], "check": []}
        assert accounts == expected.get(name, ["${{ vars.PREVIEW_SERVICE_ACCOUNT }}"])


BERTH = [(script.name, arguments) for script in SCRIPTS for arguments in commands(script.text, "berth")]


def test_every_script_that_names_berth_is_read() -> None:
    called = sum(len(re.findall(r"\.venv/bin/berth ", script.text)) for script in SCRIPTS)
    assert len(BERTH) == called
    assert {arguments[0] for _, arguments in BERTH} == {"check", "preview"}


@pytest.mark.parametrize(("script", "arguments"), BERTH, ids=lambda value: value if isinstance(value, str) else "")
def test_every_berth_command_is_one(script: str, arguments: list[str]) -> None:
    command = typer.main.get_command(app)
    for depth, word in enumerate(arguments):
        inner = command.get_command(None, word) if hasattr(command, "get_command") else None
        if inner is None:
            arguments = arguments[depth:]
            break
        command = inner
    else:
        arguments = []
    context = command.make_context("berth", list(arguments), resilient_parsing=False)
    assert context.params, script


def test_the_pulumi_of_ci_is_the_one_that_is_tested() -> None:
    pin = re.search(r"github.com/pulumi/pulumi/pkg/v3 v(\S+)", (CLONE / "lab/tools/pulumi/go.mod").read_text())
    assert pin
    assert f"pulumi-version: {pin[1]} #" in ACTION.read_text()
    assert workflows.gitlab()["variables"]["PULUMI_VERSION"] == pin[1]


def test_everything_that_has_to_be_set_is_in_the_docs() -> None:
    text = "".join((GITHUB / f"{name}.yml").read_text() for name in WORKFLOWS)
    expected = set(re.findall(r"\b(?:vars|secrets)\.([A-Z_]+)", text)) | {"COMMENT_TOKEN"}
    assert expected == {
        "COMMENT_TOKEN",
        "DEPLOY_SERVICE_ACCOUNT",
        "PREVIEW_SERVICE_ACCOUNT",
        "PULUMI_BACKEND_URL",
        "PULUMI_CONFIG_PASSPHRASE",
        "WORKLOAD_IDENTITY_PROVIDER",
    }
    assert all(f"`{name}`" in DOCS or f" {name} " in DOCS for name in expected)


def test_the_environments_of_gitlabs_matrix_are_shipped_ones() -> None:
    (matrix,) = workflows.gitlab()[".environments"]["parallel"]["matrix"]
    for stack in matrix["STACK"]:
        assert (CLONE / "stacks" / f"Pulumi.{stack}.yaml").is_file()

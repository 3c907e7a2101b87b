"""The shipped CI files: of the official schemas, careful with what strangers write, and true to
berth's commands.
"""

import re
import shlex
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from berth.cli.main import app
from berth.cli.verbs.doctor.google_cloud.permissions import needed_permissions, roles_of
from tests import workflows
from tests.unit.cases import table
from tests.workflows import (
    ACTION,
    CLONE,
    GITHUB,
    GITLAB,
    Script,
    commands,
    github,
    github_scripts,
    gitlab_scripts,
)

WORKFLOWS = sorted(path.stem for path in GITHUB.glob("*.yml"))
SCRIPTS = [script for name in WORKFLOWS for script in github_scripts(name)] + gitlab_scripts()
DOCS = (CLONE / "docs" / "ci.md").read_text(encoding="utf-8")


def named(script: Script) -> str:
    return script.name


@pytest.mark.parametrize(
    ("schema", "paths"),
    [
        ("vendor.github-workflows", [str(path) for path in sorted(GITHUB.glob("*.yml"))]),
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
    done = subprocess.run(
        ["bash", "-n"], input=script.text, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("script", SCRIPTS, ids=named)
def test_nothing_is_written_into_a_script_but_by_its_environment(script: Script) -> None:
    """A title or a branch's name that is pasted into a script is a script of its author's."""
    assert "${{" not in script.text
    outside = [value for value in script.env.values() if "github.event" in str(value)]
    allowed = (
        "github.event.before",
        "github.event.pull_request.head.sha",
        "github.event.pull_request.number",
        (
            "github.event.action != 'synchronize' &&"
            " contains(github.event.pull_request.labels.*.name, 'allow-destroy')"
        ),
    )
    assert all(any(part in value for part in allowed) for value in outside)


@pytest.mark.parametrize(
    "text", [*((GITHUB / f"{name}.yml").read_text() for name in WORKFLOWS), ACTION.read_text()]
)
def test_actions_are_pinned_by_commit(text: str) -> None:
    used = re.findall(r"uses: (\S+)", text)
    assert used
    for action in used:
        assert action.startswith("./") or re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", action), (
            action
        )


def test_each_job_may_do_no_more_than_it_does() -> None:
    for name, jobs in table(__file__, "job_permissions.yaml").items():
        workflow = github(name)
        assert workflow["permissions"] == {}
        assert {job: value["permissions"] for job, value in workflow["jobs"].items()} == jobs
    assert github("test")["permissions"] == {"contents": "read"}


def test_only_mains_code_runs_with_the_credentials_of_a_preview() -> None:
    """`pull_request_target` starts main's workflow; nothing of the pull request is checked out, and
    `berth.cli.ci.proposed_settings` takes files of stacks from it.
    """
    preview = github("preview")
    assert preview["on"].keys() == {"pull_request_target"}
    assert preview["on"]["pull_request_target"]["branches"] == ["main"]
    jobs = dict(preview["jobs"])
    # Of the label's job: it has no credentials of Google Cloud, and checks nothing out.
    (step,) = jobs.pop("label")["steps"]
    assert "uses" not in step
    for job in jobs.values():
        checkout, set_up, *rest = job["steps"]
        assert checkout["uses"].startswith("actions/checkout@")
        assert checkout["with"] == {
            "fetch-depth": 0,
            "persist-credentials": False,
        }, "no ref: main is checked out"
        assert set_up["uses"] == "./.github/actions/set-up"
        taken, *_ = rest
        assert taken["run"].startswith(
            '.venv/bin/python -m berth.cli.ci.proposed_settings "$PROPOSED" |'
        )
        others = "".join(step.get("run", "") for step in rest[1:])
        assert "git " not in others
        assert "PROPOSED" not in others
    assert {name for name in WORKFLOWS if "pull_request_target" in github(name)["on"]} == {
        "preview"
    }


def test_code_of_a_pull_request_gets_no_credentials() -> None:
    jobs = github()["jobs"]
    for name, job in jobs.items():
        if "id-token" in job["permissions"]:
            events = set(re.findall(r"github.event_name == '(\w+)'", job["if"]))
            assert events <= {"push", "schedule", "workflow_dispatch"}, name
    for job in github("preview")["jobs"].values():
        if "id-token" not in job["permissions"]:
            continue
        forks = "github.event.pull_request.head.repo.full_name == github.repository" in job["if"]
        assert forks or job["needs"] == "environments"
    assert "CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_PROJECT_ID" in str(
        workflows.gitlab()["preview"]["rules"]
    )


IDENTITIES = table(__file__, "identities.yaml")
CASES = [(host, job) for host, jobs in IDENTITIES.items() for job in jobs["jobs"]]


@pytest.mark.parametrize(("host", "job"), CASES)
def test_google_cloud_accepts_the_jobs_that_run_mains_code_and_no_other(
    host: str, job: str
) -> None:
    """The condition and the members of docs/ci.md, on the claims of jobs that attack."""
    given = IDENTITIES[host]["jobs"][job]
    claims = {
        key: value
        for key, value in (IDENTITIES[host]["main"] | given["claims"]).items()
        if value is not None
    }
    assert accounts_of(host, claims) == set(given["accounts"])


def accounts_of(host: str, claims: dict[str, str]) -> set[str]:
    """Accounts as which Google Cloud lets a job act, by the commands of docs/ci.md."""
    parts = DOCS.replace("\\\n", " ").split("## Setup on GitLab")
    commands = parts[["github", "gitlab"].index(host)]
    (provider,) = (line for line in commands.splitlines() if f"create-oidc {host}" in line)
    names = {"REPOSITORY": "acme/fleet", "REPOSITORY_ID": "100", "OWNER_ID": "200", "POOL": "pool"}
    names |= {"PROJECT_ID": "100", "NAMESPACE_ID": "200"}
    names |= dict(re.findall(r'^(PROTECTED)="(.*)"$', commands, re.MULTILINE))
    words = shlex.split(provider)
    condition, mapping = (
        filled(words[words.index(f"--attribute-{name}") + 1], names)
        for name in ("condition", "mapping")
    )
    if not evaluated(condition, claims):
        return set()
    _, *pairs = re.split(r",?(google\.subject|attribute\.\w+)=", mapping)
    attributes = {
        key: str(evaluated(value, claims))
        for key, value in zip(pairs[::2], pairs[1::2], strict=True)
    }
    assert len(attributes.pop("google.subject")) <= LONGEST_SUBJECT
    principals = {
        f"principalSet://iam.googleapis.com/pool/{key}/{value}" for key, value in attributes.items()
    }
    found = set()
    for account, member in re.findall(
        r'add-iam-policy-binding "\$(PREVIEW|DEPLOY|ENGINEERS)" .*?--member "(principal[^"]+)"',
        commands,
    ):
        files = ["preview.yml", "berth.yml"] if "$FILE" in member else [""]
        if principals & {filled(member, names | {"FILE": file}) for file in files}:
            found.add(account.lower())
    return found


def test_accounts_have_the_roles_that_their_jobs_need_with_an_own_account_for_nodes() -> None:
    deploy, preview, engineers = map(roles_in_the_project, ("DEPLOY", "PREVIEW", "ENGINEERS"))
    assert (
        set(roles_of(needed_permissions(networks=True, node_account=False, own_account=True)))
        <= deploy
    )
    # A refresh reads the nodes' account and the project's policy.
    assert {"roles/iam.serviceAccountViewer", "roles/iam.securityReviewer"} <= preview
    assert preview & {"roles/container.developer", "roles/container.admin"} == set()
    assert engineers == {"roles/container.clusterViewer"}


def roles_in_the_project(account: str) -> set[str]:
    """Roles that docs/ci.md gives to an account in the project."""
    given = (
        rf'projects add-iam-policy-binding "\$PROJECT" --member "serviceAccount:\${account}" --role'
        r' "?roles/(\S+?)"? '
    )
    loops = re.findall(rf"for role in (.+); do\n  gcloud {given}", DOCS)
    single = re.findall(given, DOCS)
    names = [name for words, _ in loops for name in words.split()] + [
        name for name in single if name != "$role"
    ]
    return {f"roles/{name}" for name in names}


LONGEST_SUBJECT = 127
"""Bytes that Google allows a subject."""


def evaluated(expression: str, claims: dict[str, str]) -> Any:
    """Value of an expression of CEL as the page has them: comparisons, `&&`, `has` and one `?:`."""
    python = re.sub(
        r"has\(assertion\.(\w+)\)", r"hasattr(assertion, '\1')", expression.replace("&&", "and")
    )
    python = re.sub(r"\(([^?]+) \? ([^:]+) : ([^)]+)\)", r"(\2 if \1 else \3)", python)
    scope = {"assertion": SimpleNamespace(**claims), "hasattr": hasattr}
    return eval(python, {"__builtins__": {}}, scope)  # noqa: S307 - our page's


def filled(text: str, names: dict[str, str]) -> str:
    """The text with the shell's variables."""
    return re.sub(r"\$\{?(\w+)\}?", lambda match: names.get(match[1], ""), text)


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
    for name, job in [*github()["jobs"].items(), *github("preview")["jobs"].items()]:
        accounts = [
            step["with"].get("service-account")
            for step in job["steps"]
            if "service-account" in step.get("with", {})
        ]
        deploys = ["${{ vars.DEPLOY_SERVICE_ACCOUNT }}"]
        expected = {
            "up": deploys,
            "engineers": deploys,
            "check": [],
            "environments": [],
            "label": [],
        }
        assert accounts == expected.get(name, ["${{ vars.PREVIEW_SERVICE_ACCOUNT }}"])


def test_engineers_stacks_come_after_the_environments() -> None:
    engineers = github()["jobs"]["engineers"]
    assert engineers["needs"] == ["check", "up"]
    assert """contains(fromJSON('["success", "skipped"]'), needs.up.result)""" in engineers["if"]
    assert engineers["environment"] == "engineers"
    assert engineers["concurrency"] == github()["jobs"]["up"]["concurrency"]


BERTH = [
    (script.name, arguments) for script in SCRIPTS for arguments in commands(script.text, "berth")
]


@pytest.mark.parametrize(
    ("script", "arguments"), BERTH, ids=lambda value: value if isinstance(value, str) else ""
)
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
    pin = re.search(
        r"github.com/pulumi/pulumi/pkg/v3 v(\S+)", (CLONE / "lab/tools/pulumi/go.mod").read_text()
    )
    assert pin
    assert f"pulumi-version: {pin[1]} #" in ACTION.read_text()
    assert workflows.gitlab()["variables"]["PULUMI_VERSION"] == pin[1]


def test_no_job_runs_what_somebody_else_may_exchange() -> None:
    """No script runs what it has just downloaded, and each image is one that the user pins."""
    for script in SCRIPTS:
        assert not re.search(r"(curl|wget)[^\n]*\|\s*(sudo\s+)?(ba)?sh\b", script.text), script.name
    jobs = workflows.gitlab()
    images = {
        name: job["image"] for name, job in jobs.items() if isinstance(job, dict) and "image" in job
    }
    assert images == {"default": "$PYTHON_IMAGE", ".on-google-cloud": "$GOOGLE_CLOUD_IMAGE"}
    first, *rest = jobs[".on-google-cloud"]["before_script"]
    for image, code in (("x/y:1", 1), ("x/y:1@sha256:00", 0)):
        assert (
            subprocess.run(
                ["sh", "-ec", first], env={"CI_JOB_IMAGE": image}, check=False
            ).returncode
            == code
        )
    assert any("sha256sum --check --strict" in line for line in rest)

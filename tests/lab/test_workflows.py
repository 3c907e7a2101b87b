"""The shipped workflow's own scripts, run as GitHub's runner runs them, against a lab. Only GitHub
itself is played.
"""

import copy
import itertools
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from berth.components.core.owner import namespace_of
from berth.components.hardware import versions
from tests import workflows
from tests.lab.conftest import Lab
from tests.lab.gh import HEAD, event
from tests.lab.project import Project, Settings, environment_settings

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(
        shutil.which("jq") is None, reason="jq, which plays gh's --jq, is not installed"
    ),
]

DESTRUCTIVE = 3
DRIFTED = 4
COMMIT = "c0ffee"
BEFORE, MERGED, AFTER = (f"2026-11-27T10:0{minute}:00Z" for minute in range(3))


def environment(lab: Lab) -> Settings:
    pools = {"dev": {"machineType": "g2-standard-24", "nodes": 2}}
    cluster = {"deletionProtection": False, "nodeServiceAccount": "own"}
    engineers = {"ines": {"workers": 2}}
    return environment_settings(
        lab, pools, project="berth-ci", cluster=cluster, engineers=engineers
    )


@dataclass(frozen=True)
class Done:
    """Result of a step: exit code, output, the job's summary, and outputs."""

    code: int
    text: str
    summary: str
    outputs: dict[str, str]


@dataclass(frozen=True)
class Runner:
    """A runner with the repository checked out, and GitHub as a folder."""

    project: Project
    folder: Path
    programs: tuple[str, ...] = ()
    """Folders of programs in the place of the lab's."""
    code: int = 0
    """Exit code of such programs."""

    @property
    def github(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / "state.json").read_text()))

    def set(self, **state: Any) -> None:
        (self.folder / "state.json").write_text(json.dumps(self.github | state))

    def step(self, name: str, **expressions: str) -> Done:
        """Run a step's script; values of GitHub's expressions are given by name."""
        scripts = [*workflows.github_scripts(), *workflows.github_scripts("preview")]
        (script,) = (script for script in scripts if script.name == name)
        known = {
            "STACK": "ci",
            "GH_TOKEN": "token",
            "GH_REPO": "acme/fleet",
            "PULL_REQUEST": "7",
        } | expressions
        summary = self.folder / "summary.md"
        outputs = self.folder / "outputs"
        summary.write_text("")
        outputs.write_text("")
        variables = {
            # A variable that the workflow forgets to hand over is not there.
            **{
                key: known.get(key, "") if "${{" in value else value
                for key, value in script.env.items()
            },
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_OUTPUT": str(outputs),
            "GITHUB_REPOSITORY": "acme/fleet",
            "GITHUB_REF_NAME": "main",
            "GITHUB_SHA": COMMIT,
            "PLAYED_GITHUB": str(self.folder),
        }
        lab = self.project.lab.env
        # Of the lab: where the state is, and its passphrase.
        variables |= {
            key: lab[key]
            for key in ("PULUMI_BACKEND_URL", "PULUMI_CONFIG_PASSPHRASE")
            if key in lab
        }
        variables["PATH"] = ":".join([*self.programs, str(self.folder), lab["PATH"]])
        variables["PLAYED_CODE"] = f"{self.code}"
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script.text],
            cwd=self.project.folder,
            env=lab | variables,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        found = dict(line.split("=", 1) for line in outputs.read_text().splitlines())
        return Done(done.returncode, done.stdout + done.stderr, summary.read_text(), found)

    def preview(self, **expressions: str) -> tuple[Done, int]:
        """The steps of job `preview`: what the first one left, and how the job ends."""
        done = self.step("preview: Preview", **expressions)
        assert done.code == 0, done.text
        report = self.step("preview: Comment")
        assert report.code == 0, report.text
        return done, self.step("preview: Verdict", STATUS=done.outputs["status"]).code

    def write(self, settings: Settings) -> None:
        self.project.write("ci", environment=settings)


class Played:
    """Programs in the place of `berth` and `pulumi`, which record their arguments and end with a
    code.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / ".venv" / "bin").mkdir(parents=True)
        for program in (folder / ".venv" / "bin" / "berth", folder / "pulumi"):
            text = (
                f'echo "$(basename "$0") $*" >> {folder}/ran; echo \'"name": "ci"\'; exit'
                " $PLAYED_CODE"
            )
            program.write_text(f"#!/bin/sh\n{text}\n")
            program.chmod(0o755)

    @property
    def ran(self) -> str:
        return (self._folder / "ran").read_text()

    def runner(self, runner: Runner, code: int = 0) -> Runner:
        """A runner with these programs."""
        checkout = Project(self._folder, runner.project.lab)
        return Runner(checkout, runner.folder, (str(self._folder),), code)

    def step(self, runner: Runner, name: str, code: int = 0) -> Done:
        return self.runner(runner, code).step(name)


@pytest.fixture(scope="module")
def runner(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Runner:
    project = Project.make(tmp_path_factory.mktemp("workflows") / "project", lab)
    (project.folder / ".venv").symlink_to(sys.prefix)
    folder = tmp_path_factory.mktemp("github")
    (folder / "gh").write_text(
        f'#!/bin/sh\nexec "{sys.executable}" "{Path(__file__).with_name("gh.py")}" "$@"\n'
    )
    (folder / "gh").chmod(0o755)
    (folder / "state.json").write_text(
        json.dumps(
            {
                "main": COMMIT,
                "merged": MERGED,
                "events": [],
                "now": BEFORE,
                "comments": [],
                "issues": [],
                "calls": [],
            }
        )
    )
    runner = Runner(project, folder)
    runner.write(environment(lab))
    project.run("pulumi", "stack", "init", "ci", "--no-select")
    return runner


@pytest.fixture
def settings(runner: Runner) -> Settings:
    return copy.deepcopy(environment(runner.project.lab))


@pytest.fixture
def up(runner: Runner, settings: Settings) -> Runner:
    """Runner with the environment up and unchanged."""
    runner.write(settings)
    if runner.project.outputs("ci").get("berths") != "ines":
        runner.project.up("ci")
    runner.set(main=COMMIT, events=[], now=BEFORE)
    return runner


def test_check_lists_the_environments_but_for_the_labs(runner: Runner, settings: Settings) -> None:
    runner.project.write("lab", environment=settings)
    done = runner.step("check: Check settings and policies")
    assert done.code == 0
    assert "✓ ci (environment, 3 policies kept)" in done.summary
    for job in ("check", "environments"):
        assert json.loads(runner.step(f"{job}: List environments").outputs["environments"]) == [
            "ci"
        ]
    (runner.project.folder / "stacks" / "Pulumi.lab.yaml").unlink()


def lists(runner: Runner, base: str) -> dict[str, list[str]]:
    outputs = runner.step("check: List environments", BASE=base).outputs
    return {name: json.loads(value) for name, value in outputs.items()}


def test_check_shows_each_problem_beside_its_line(runner: Runner, settings: Settings) -> None:
    runner.write(settings | {"zone": "nowhere", "engineers": {"ines": {"auth": "none"}}})
    done = runner.step("check: Check settings and policies")
    runner.write(settings)
    assert done.code == 2
    noted = [line for line in done.text.splitlines() if line.startswith("::error ")]
    assert [line.split(",")[0] for line in noted] == ["::error file=stacks/Pulumi.ci.yaml"] * 2
    assert any("environment.zone: 'nowhere' is not a zone" in line for line in noted)
    assert any("policy ray-auth: Ray of ines does not ask for a token" in line for line in noted)
    assert "environment.zone: 'nowhere' is not a zone" in done.summary


def test_a_policy_violation_fails_a_pull_request_and_no_label_helps(
    runner: Runner, settings: Settings
) -> None:
    settings["engineers"]["ines"]["dashboard"] = "public"
    runner.write(settings)
    done, verdict = runner.preview(ALLOW_DESTROY="true")
    runner.write(environment(runner.project.lab))
    assert verdict == 2
    assert (
        "It ended with exit code 2; the job's log says why."
        in runner.github["comments"][-1]["body"]
    )
    assert (
        "engineers.ines.dashboard: policy private-dashboard: Service ines-dashboard is a load"
        " balancer" in done.text
    )


def test_a_pull_request_has_one_comment_and_fails_without_the_label_that_allows_a_destruction(
    up: Runner, settings: Settings, tmp_path: Path
) -> None:
    stranger = {
        "id": 1,
        "body": "<!-- berth-preview:ci --> says a person",
        "user": {"type": "User"},
    }
    other = {
        "id": 2,
        "body": "<!-- berth-preview:prod -->\nof another stack",
        "user": {"type": "Bot"},
    }
    up.set(comments=[stranger, other])
    settings["pools"]["dev"]["machineType"] = "g2-standard-48"
    up.write(settings)
    done, verdict = up.preview(ALLOW_DESTROY="false")
    assert verdict == DESTRUCTIVE
    assert (up.project.folder / "plan.json").exists(), "what a job uploads"
    assert up.github["comments"][:2] == [stranger, other]
    (comment,) = up.github["comments"][2:]
    assert comment["body"].startswith("<!-- berth-preview:ci -->\n")
    assert comment["body"] == done.summary
    assert "give the pull request the label `allow-destroy`" in comment["body"]
    assert "ines" in comment["body"]
    played = Played(tmp_path)
    done, verdict = played.runner(up).preview(ALLOW_DESTROY="true")
    assert "berth preview -s ci --markdown --save plan.json --allow-destroy" in played.ran
    assert verdict == 0
    (again,) = up.github["comments"][2:]
    assert again["id"] == comment["id"]
    assert "allow-destroy" not in again["body"]


def test_nodes_run_as_an_account_that_berth_creates_with_two_roles(up: Runner) -> None:
    resources = up.project.resources("ci")
    (email,) = [
        resource["outputs"]["email"]
        for resource in resources
        if resource["type"].startswith("gcp:serviceaccount/")
    ]
    pools = [
        resource["inputs"]
        for resource in resources
        if resource["type"] == "gcp:container/nodePool:NodePool"
    ]
    assert {pool["nodeConfig"]["serviceAccount"] for pool in pools} == {email}
    roles = [
        resource["inputs"]["role"]
        for resource in resources
        if resource["type"].startswith("gcp:projects/")
    ]
    assert sorted(roles) == [
        "roles/artifactregistry.reader",
        "roles/container.defaultNodeServiceAccount",
    ]


def test_up_of_an_old_commit_undoes_nothing(up: Runner, settings: Settings) -> None:
    settings["engineers"] = {}
    up.write(settings)
    up.set(main="f00d")
    done = up.step("up: Up")
    assert done.code == 0
    assert done.summary == "ci: left alone, since main is at f00d by now\n"
    assert up.project.get("rayclusters", "-n", namespace_of("ines"))


def artifact(
    run: int, content: str, at: str = BEFORE, event: str = "pull_request_target"
) -> dict[str, Any]:
    """An artifact with a plan, and the run that left it."""
    made_by = {"event": event, "path": ".github/workflows/preview.yml@refs/heads/main"}
    times = {"created_at": at, "expired": False}
    return {
        "name": f"plan-ci-{HEAD}",
        "workflow_run": {"id": run},
        "run": made_by,
        "content": content,
    } | times


BEFORE_THE_MERGE = event("labeled", "allow-destroy", BEFORE)


@pytest.mark.parametrize(
    ("events", "allowed"),
    [
        ([], False),
        ([event("labeled", "allow-destroy", AFTER)], False),
        ([BEFORE_THE_MERGE, event("labeled", "urgent", BEFORE)], True),
        ([BEFORE_THE_MERGE, event("unlabeled", "allow-destroy", BEFORE)], False),
        ([BEFORE_THE_MERGE, event("unlabeled", "allow-destroy", AFTER)], True),
    ],
    ids=["no label", "after the merge", "before it", "taken away by a push", "taken away later"],
)
@pytest.mark.parametrize("job", ["up", "engineers"])
def test_only_a_label_for_the_commits_of_the_merge_allows_a_destruction(
    runner: Runner, tmp_path: Path, job: str, events: list[dict[str, str]], *, allowed: bool
) -> None:
    played = Played(tmp_path)
    runner.set(main=COMMIT, events=events, now=BEFORE)
    done = played.step(runner, f"{job}: Up")
    assert done.code == 0, done.text
    assert "berth preview -s ci --markdown" in played.ran
    assert ("--allow-destroy" in played.ran) == allowed


@pytest.mark.parametrize("job", ["up", "engineers"])
def test_the_last_plan_of_mains_preview_before_the_merge_is_applied(
    runner: Runner, tmp_path: Path, job: str
) -> None:
    """Neither a branch's workflow nor a label on the merged pull request leaves a plan that counts;
    test_fleet has what a plan refuses.
    """
    forged = artifact(2, "forged", event="pull_request")
    late = artifact(3, "late", at=AFTER)
    runner.set(main=COMMIT, events=[], artifacts=[late, artifact(1, "reviewed"), forged])
    played = Played(tmp_path)
    done = played.step(runner, f"{job}: Up")
    runner.set(artifacts=[])
    assert done.code == 0, done.text
    assert (tmp_path / "reviewed" / "plan.json").read_text() == "reviewed"
    assert "berth up -s ci --yes --plan reviewed/plan.json" in played.ran
    assert "pulumi up" not in played.ran


def test_the_label_is_taken_away_by_a_push(runner: Runner) -> None:
    runner.set(events=[BEFORE_THE_MERGE], now=BEFORE)
    assert runner.step("label: Take the label away").code == 0
    assert runner.github["events"][1:] == [event("unlabeled", "allow-destroy", BEFORE)]


def test_drift_opens_one_issue_keeps_it_up_to_date_and_closes_it(
    runner: Runner, tmp_path: Path
) -> None:
    """test_prod and test_identities find the drift that `berth` is played to find here."""
    played = Played(tmp_path)
    runner.set(issues=[])
    for _ in range(2):
        done = played.step(runner, "drift: Look for drift", DRIFTED)
        assert done.code == DRIFTED, done.text
        (issue,) = runner.github["issues"]
        assert (issue["title"], issue["state"]) == ("Drift in environment ci", "open")
        assert issue["body"] == done.summary
        runner.set(issues=[issue | {"body": "drift of yesterday"}])
    assert "berth preview -s ci --refresh --expect-no-changes" in played.ran
    assert played.step(runner, "drift: Look for drift").code == 0
    assert [item["state"] for item in runner.github["issues"]] == ["closed"]


def test_old_versions_open_one_issue_and_close_it(up: Runner, tmp_path: Path) -> None:
    node = up.project.get("nodes")[0]
    of_node = ("kubectl", "patch", "node", node["metadata"]["name"], "--subresource=status", "-p")
    version = {"kubeletVersion": node["status"]["nodeInfo"]["kubeletVersion"]}
    up.set(issues=[])
    up.project.run(
        *of_node, json.dumps({"status": {"nodeInfo": {"kubeletVersion": "v1.33.1-gke.1000"}}})
    )
    done = up.step("versions: Look for old versions")
    assert done.code == 0, done.text
    up.project.run(*of_node, json.dumps({"status": {"nodeInfo": version}}))
    (issue,) = up.github["issues"]
    assert (issue["title"], issue["state"]) == ("Old versions in environment ci", "open")
    assert "   - 1.33.1-gke.1000: support ended on 2026-08-03" in issue["body"]
    assert "GKE recreates every node" in issue["body"]
    plan = json.loads((up.project.folder / "plan.json").read_text())
    asked = {one["part"]: one["version"] for one in plan["versions"] if one["asked"] == "cluster"}
    assert (asked["kuberay"], asked["kuberay-crds"], asked["ray"]) == (
        versions.KUBERAY,
        "1.6",
        versions.RAY,
    )
    assert plan["definitions"]["rayclusters.ray.io"] == 1
    assert Played(tmp_path).step(up, "versions: Look for old versions").code == 0
    assert [item["state"] for item in up.github["issues"]] == ["closed"]


@pytest.mark.long
def test_an_engineers_own_stack_is_a_file_that_ci_applies(up: Runner) -> None:
    project = up.project

    def commit(message: str) -> str:
        for command in (
            ["add", "stacks"],
            ["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", message],
        ):
            project.run("git", *command)
        return project.run("git", "rev-parse", "HEAD").stdout.strip()

    project.run("git", "init", "--quiet")
    before = commit("environment")
    project.run("berth", "create", "kim", "-e", "ci", "--workers", "1", "--write-only")
    commit("kim")
    both = {"environments": ["ci"], "engineers": ["kim"], "stacks": ["ci", "kim"]}
    alone = {"environments": [], "engineers": ["kim"], "stacks": ["kim"]}
    assert lists(up, before) == alone
    assert lists(up, "0" * 40) == both, "where nobody knows what changed, everything is applied"
    assert lists(up, "")["environments"] == ["ci"], "of a schedule"
    new = up.step("preview: Preview", STACK="kim", ENGINEERS='["kim"]')
    assert (new.code, new.outputs["status"]) == (0, "0"), new.text
    assert "The merge creates it." in new.summary
    done = up.step("engineers: Up", STACK="kim")
    assert done.code == 0, done.text
    (cluster,) = project.get("rayclusters", "-n", namespace_of("kim"))
    assert cluster["status"]["state"] == "ready"


def test_up_applies_the_settings_and_destroys_where_the_pull_request_had_the_label(
    up: Runner, settings: Settings
) -> None:
    nodes = {node["metadata"]["name"] for node in up.project.get("nodes")}
    settings["engineers"] = {"jo": {"dashboard": "internal"}}
    up.write(settings)
    done = up.step("up: Up")
    assert done.code == DESTRUCTIVE, done.text
    assert "🛑 berth preview" in done.summary
    assert "jo" in done.summary
    assert {node["metadata"]["name"] for node in up.project.get("nodes")} == nodes
    assert up.project.get("rayclusters", "-n", namespace_of("ines"))
    assert up.project.get("services", "-n", namespace_of("jo")) == []
    up.set(events=[BEFORE_THE_MERGE])
    done = up.step("up: Up")
    assert done.code == 0, done.text
    assert up.project.get("rayclusters", "-n", namespace_of("ines")) == []
    services = {
        service["metadata"]["name"]: service
        for service in up.project.get("services", "-n", namespace_of("jo"))
    }
    assert services["jo-dashboard"]["spec"]["type"] == "LoadBalancer"
    assert (
        services["jo-dashboard"]["metadata"]["annotations"]["networking.gke.io/load-balancer-type"]
        == "Internal"
    )
    assert services["jo-head-svc"]["spec"]["type"] == "ClusterIP"
    assert [
        cluster["status"]["state"]
        for cluster in up.project.get("rayclusters", "-n", namespace_of("jo"))
    ] == ["ready"]


def gitlab(runner: Runner, job: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the script of one of the GitLab jobs, with GitLab's API played."""
    (script,) = (script for script in workflows.gitlab_scripts() if script.name == f"{job}: script")
    folder = runner.folder / "gitlab"
    if not folder.exists():
        folder.mkdir()
        curl = Path(__file__).with_name("gitlab_curl.py")
        (folder / "curl").write_text(f'#!/bin/sh\nexec "{sys.executable}" "{curl}" "$@"\n')
        (folder / "curl").chmod(0o755)
        (folder / "state.json").write_text(
            json.dumps({"notes": [{"id": 1, "body": "a person's"}], "issues": []})
        )
    lab = runner.project.lab.env
    known = {
        "STACK": "ci",
        "COMMENT_TOKEN": "token",
        "CI_API_V4_URL": "https://gitlab.test/api/v4",
        "CI_PROJECT_ID": "5",
        "CI_MERGE_REQUEST_IID": "7",
        "CI_COMMIT_BRANCH": "main",
        "PLAYED_GITLAB": str(folder / "state.json"),
        "PATH": f"{folder}:{lab['PATH']}",
    }
    return subprocess.run(
        # As GitLab's runner does it.
        ["bash", "-e", "-o", "pipefail", "-c", script.text],
        cwd=runner.project.folder,
        env=lab | known | variables,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def played(runner: Runner, what: str) -> list[dict[str, Any]]:
    return list(json.loads((runner.folder / "gitlab" / "state.json").read_text())[what])


@pytest.mark.long
def test_gitlabs_preview_keeps_one_note_and_asks_for_the_label(
    up: Runner, settings: Settings
) -> None:
    settings["pools"]["dev"]["machineType"] = "g2-standard-48"
    up.write(settings)
    for _ in range(2):
        done = gitlab(up, "preview")
        assert done.returncode == DESTRUCTIVE, done.stdout + done.stderr
        person, note = played(up, "notes")
        assert person["body"] == "a person's"
        assert note["body"].startswith("<!-- berth-preview:ci -->\n")
        assert "give the merge request the label `allow-destroy`" in note["body"]
    assert gitlab(up, "preview", CI_MERGE_REQUEST_LABELS="urgent,allow-destroy").returncode == 0
    assert "label" not in played(up, "notes")[1]["body"]


@pytest.mark.long
def test_gitlabs_up_and_drift(up: Runner, settings: Settings) -> None:
    repository = up.folder / "repository"
    for command in (
        ["init", "--quiet", "--initial-branch=main", str(repository)],
        [
            "-C",
            str(repository),
            "-c",
            "user.name=x",
            "-c",
            "user.email=x@x",
            "commit",
            "-qm",
            "x",
            "--allow-empty",
        ],
    ):
        subprocess.run(["git", *command], check=True)
    newest = subprocess.run(
        ["git", "-C", str(repository), "rev-parse", "HEAD"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    up.project.up("ci", "--refresh")
    settings["engineers"]["jo"] = {}
    up.write(settings)
    drifted = gitlab(up, "drift")
    assert drifted.returncode == DRIFTED, drifted.stdout + drifted.stderr
    assert [issue["title"] for issue in played(up, "issues")] == ["Drift in environment ci"]
    assert "jo" in played(up, "issues")[0]["description"]
    old = gitlab(up, "up", CI_REPOSITORY_URL=str(repository), CI_COMMIT_SHA="0ld")
    assert (old.returncode, "left alone" in old.stdout) == (0, True)
    done = gitlab(up, "up", CI_REPOSITORY_URL=str(repository), CI_COMMIT_SHA=newest)
    assert done.returncode == 0, done.stdout + done.stderr
    assert gitlab(up, "drift").returncode == 0
    assert len(played(up, "issues")) == 1


PULUMI = [
    arguments
    for script in [
        *workflows.github_scripts(),
        *workflows.github_scripts("preview"),
        *workflows.gitlab_scripts(),
    ]
    for arguments in workflows.commands(script.text, "pulumi")
]


def test_the_workflows_call_pulumi() -> None:
    assert PULUMI


@pytest.mark.parametrize("arguments", PULUMI, ids=" ".join)
def test_every_pulumi_command_is_one(lab: Lab, arguments: list[str]) -> None:
    words = itertools.takewhile(str.isalpha, arguments)  # such as `stack init`
    output = lab.run(["pulumi", *words, "--help"]).stdout
    for option in (argument for argument in arguments if argument.startswith("-")):
        assert f"{option} " in output.replace(",", " "), option

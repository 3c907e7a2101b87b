"""`berth preview` as a user runs it, with a program in Pulumi's place that says what Pulumi
said: streams and exit codes.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from berth.cli.main import app
from berth.components.core.problems import Problem
from berth.stacks.load.stack import SettingsError
from tests.unit import serving
from tests.unit.cases import table
from tests.unit.cli.fake_pulumi import FakePulumi, errors
from tests.unit.components.plan.recordings import FOLDER
from tests.unit.loaded import environment_of


class Project(FakePulumi):
    """A project with the recorded fleet's settings, and what `pulumi` will say there."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(folder, monkeypatch)
        (folder / "stacks").mkdir()
        (folder / "stacks" / "Pulumi.fleet.yaml").write_bytes((FOLDER / "fleet.yaml").read_bytes())

    def plans(self, recording: str, *events: dict[str, Any], code: int = 0, **more: Any) -> None:
        self.says(*events, recording=FOLDER / f"{recording}.jsonl", code=code, **more)

    def set(self, stack: str, **config: Any) -> None:
        text = yaml.safe_dump({"config": {f"berth:{key}": value for key, value in config.items()}})
        (self.folder / "stacks" / f"Pulumi.{stack}.yaml").write_text(text)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    return Project(tmp_path, monkeypatch)


RENDERINGS: Sequence[list[str]] = ([], ["--markdown"], ["--json"])


def preview(*arguments: str, stack: str = "fleet") -> Result:
    return CliRunner().invoke(app, ["preview", "-s", stack, *arguments])


@pytest.mark.parametrize(("recording", "options", "code"), table(__file__, "preview.yaml"))
def test_exit_codes(project: Project, recording: str, options: list[str], code: int) -> None:
    project.plans(recording)
    assert preview(*options).exit_code == code


def test_the_engine_is_asked_for_nothing_but_a_preview(project: Project) -> None:
    project.plans("noop")
    preview("--refresh")
    assert sorted(project.commands) == [
        "preview --refresh --stack fleet --json --color never",
        "stack history --json --page-size 10 --stack fleet",
        "stack output --json --show-secrets --stack fleet",
    ]


def applied(kind: str = "update", result: str = "succeeded", **edits: Any) -> dict[str, Any]:
    """An entry of Pulumi's history, whose settings are the fleet's with some others."""
    settings = yaml.safe_load((FOLDER / "fleet.yaml").read_text())["config"]["berth:environment"]
    config = {"berth:environment": {"objectValue": settings | edits}}
    return {"kind": kind, "result": result, "config": config}


@pytest.mark.parametrize(
    ("history", "shown"),
    [
        ([], []),
        ([applied(zone="us-east4-b"), applied(zone="older")], ["zone: us-east4-b → us-central1-b"]),
        ([applied("refresh"), applied(owner="infra")], ["owner: − infra"]),
        ([applied("destroy")], []),
        ([applied(result="failed", owner="infra")], []),
        # Ctrl-C before anything was changed, or after a part: the edit is still the reason.
        ([applied(result="failed"), applied(owner="infra")], ["owner: − infra"]),
        ([applied("destroy", "failed"), applied(owner="infra")], ["owner: − infra"]),
        ([applied(result="failed"), applied("destroy"), applied(owner="infra")], []),
    ],
)
def test_edited_settings_come_first(
    project: Project, history: list[dict[str, Any]], shown: list[str]
) -> None:
    project.plans("driver", history=history)
    lines = preview().stdout.splitlines()[1:]
    assert ("changed settings" in lines[0]) == bool(shown)
    assert [line.lstrip("│ ├└─") for line in lines[1 : 1 + len(shown)]] == shown


def test_the_report_goes_to_stdout_and_warnings_to_stderr(project: Project) -> None:
    project.plans("driver")
    done = preview()
    assert "± replace node pool" in done.stdout
    assert "forces the replacement" in done.stdout
    assert "warning" not in done.stdout
    assert (
        "warning: environment.pools.train.capacity: Google does not sell a4-highgpu-8g on demand"
        in done.stderr
    )
    assert "to accept that: --allow-destroy" in done.stderr


def test_json_is_a_document(project: Project) -> None:
    project.plans("driver")
    document = json.loads(preview("--json").stdout)
    assert (document["format"], document["stack"], document["verdict"]) == (1, "fleet", "destroys")
    assert document["moneyADay"]["now"] == {"min": "2400.00", "max": "2400.00"}


def test_markdown_is_a_comment(project: Project) -> None:
    project.plans("driver")
    assert preview("--markdown").stdout.startswith("<!-- berth-preview:fleet -->\n")


def test_two_renderings_at_once_are_refused(project: Project) -> None:
    done = preview("--json", "--markdown")
    assert (done.exit_code, done.stdout, project.commands) == (2, "", [])
    assert "--markdown and --json" in done.stderr


def test_wrong_settings_are_told_as_check_tells_them(project: Project) -> None:
    project.set(
        "bad",
        environment={
            "zone": "nowhere",
            "pools": {"cpu": {"machineType": "n2-standard-16", "nodes": 1}},
        },
    )
    done = preview(stack="bad")
    assert (done.exit_code, done.stdout, project.commands) == (2, "", [])
    assert done.stderr == CliRunner().invoke(app, ["check", "bad"]).stderr


def test_settings_that_only_the_program_can_refuse(project: Project) -> None:
    """An engineer's stack on an environment of another project: its state alone tells what fits."""
    project.set("alice", engineer={"environment": "org/infra/fleet"})
    message = str(SettingsError("alice", [Problem(("engineer",), "too much")], None))
    project.says(*errors(message), code=1)
    done = preview(stack="alice")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == "✗ alice\n  engineer: too much\n"


@pytest.mark.parametrize(
    ("stacks", "problem"),
    [
        (
            ["alice"],
            (
                "error: stack alice is in Pulumi's backend, with 1 resource, but"
                " stacks/Pulumi.alice.yaml does not exist here\nbring the file back, such as by"
                " git; or delete all that the stack has: berth destroy -s alice\n"
            ),
        ),
        (
            [],
            (
                "error: there is no stack 'alice': stacks/Pulumi.alice.yaml does not exist;"
                " known are fleet, grace\n"
            ),
        ),
    ],
)
@pytest.mark.parametrize("verb", ["status", "connect"])
def test_a_stack_without_a_file_is_said_as_what_it_is(
    project: Project, verb: str, stacks: list[str], problem: str
) -> None:
    project.set("grace", engineer={"environment": "fleet"})
    project.says(stacks=stacks)
    done = CliRunner().invoke(app, [verb, "-s", "alice"])
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", problem)


def test_an_engine_that_fails(project: Project) -> None:
    project.says(*errors("Preview failed: googleapi: Error 403: no", "preview failed"), code=1)
    done = preview()
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.strip() == "error: googleapi: Error 403: no"


def test_what_deletion_protection_refuses_is_a_plan_all_the_same(project: Project) -> None:
    words = (
        'unable to replace resource "urn"\nas it is currently marked for protection. To unprotect'
        " the resource, …"
    )
    project.plans("driver", *errors(words, "preview failed"), code=1)
    assert preview().exit_code == 3


def test_an_operation_that_is_unknown_is_no_plan(project: Project) -> None:
    step = {
        "op": "conjure",
        "urn": "urn:pulumi:fleet::berth::kubernetes:core/v1:ConfigMap::x",
        "type": "x",
    }
    project.plans("noop", {"resourcePreEvent": {"metadata": step}})
    done = preview()
    assert (done.exit_code, done.stdout) == (1, "")
    assert "the engine plans 'conjure', which this version of berth does not know" in done.stderr


def test_an_engine_that_only_complains(project: Project) -> None:
    project.says(stderr="error: getting stack configuration: passphrase must be set\n", code=1)
    done = preview()
    assert done.exit_code == 1
    assert done.stderr.strip() == "error: getting stack configuration: passphrase must be set"


def test_a_cluster_that_cannot_be_asked_is_told_once(project: Project) -> None:
    project.plans("driver", outputs={"kubeconfig": "no: kubeconfig"})
    done = preview()
    assert done.exit_code == 3
    (line,) = [line for line in done.stdout.splitlines() if "Pulumi's state only" in line]
    assert line.startswith("The kubeconfig cannot be used: ")
    assert line.endswith(", without RayClusters of other stacks.")


def no_login(handler: serving.Handler) -> None:
    """Answer as an API server does to a token that it does not know."""
    serving.answer(handler, {"kind": "Status", "message": "Unauthorized", "code": 401}, 401)


DEAD = "https://127.0.0.1:1"


@pytest.mark.parametrize("stack", ["fleet", "alice"])
@pytest.mark.parametrize("recording", ["noop", "create"])
@pytest.mark.parametrize("answers", [False, True], ids=["down", "unauthorized"])
def test_a_plan_without_the_cluster_is_never_without_risk(
    project: Project, stack: str, recording: str, answers: bool
) -> None:
    project.set("alice", engineer={"environment": "fleet"})
    with serving.serving(no_login) as server:
        address = server if answers else DEAD
        project.plans(recording, outputs={"kubeconfig": serving.kubeconfig(address)})
        plain, markdown, document = (preview(*options, stack=stack) for options in RENDERINGS)
    reason = (
        "the cluster does not know your login (Unauthorized)"
        if answers
        else f"the cluster does not answer at {DEAD} ("
    )
    assert [plain.exit_code, markdown.exit_code, document.exit_code] == [1, 1, 1]
    assert "the plan is not complete: the cluster was not asked" in plain.stderr
    for shown in (plain.stdout, markdown.stdout):
        assert "Risk: not known, since the cluster was not asked." in shown
        assert "Risk: none" not in shown
        assert "Nothing to do" not in shown
        assert f"T{reason[1:]}" in shown
        assert "so this compares with Pulumi's state only" in shown
    assert "⚠️ berth preview" in markdown.stdout
    assert json.loads(document.stdout)["stateOnly"].startswith(reason)


@pytest.mark.parametrize(
    ("options", "code"), [(["--expect-no-changes"], 4), (["--allow-destroy"], 1)]
)
def test_other_refusals_come_before_the_missing_cluster(
    project: Project, options: list[str], code: int
) -> None:
    project.plans("driver", outputs={"kubeconfig": serving.kubeconfig(DEAD)})
    assert preview(*options).exit_code == code


def sorted_as_pulumi_does(value: Any) -> Any:
    """Settings as the program gets them: Pulumi writes them as JSON with sorted keys."""
    return json.loads(json.dumps(value, sort_keys=True))


@pytest.mark.parametrize(
    ("edit", "told"), [({}, []), ({"currency": "EUR"}, ["currency"])], ids=["same", "another"]
)
def test_what_engineers_read_is_compared_as_the_state_has_it(
    project: Project, edit: dict[str, Any], told: list[str]
) -> None:
    settings = yaml.safe_load((FOLDER / "fleet.yaml").read_text())["config"]["berth:environment"]
    engineers = dict(sorted(settings["engineers"].items(), reverse=True))
    assert list(engineers) != sorted(engineers)
    project.set("fleet", environment=settings | {"engineers": engineers})
    applied_settings = sorted_as_pulumi_does(settings | edit)
    contract = environment_of("fleet", applied_settings).contract()
    document = contract.model_dump(mode="json", by_alias=True, exclude_none=True)
    project.plans("noop", outputs={"environment": document})
    done = preview("--json", "--expect-no-changes")
    assert json.loads(done.stdout)["toldToEngineers"] == told
    assert done.exit_code == (4 if told else 0)


def test_a_stack_that_was_never_up_has_no_cluster_to_ask(project: Project) -> None:
    project.plans("create")
    assert "could not be asked" not in preview().stdout

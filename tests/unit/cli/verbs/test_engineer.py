"""`berth engineer` and `berth create`, as run: what is written, refused, exit codes."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from berth.cli.main import app
from tests.unit.cases import table

ENVIRONMENT = Path(__file__).with_name("engineer_environment.yaml").read_text(encoding="utf-8")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: berth\n")
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "Pulumi.env.yaml").write_text(ENVIRONMENT)
    # No engine: what would need one says so, and does not fail.
    monkeypatch.setenv("PATH", "")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def engineer(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["engineer", *arguments])


def create(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["create", *arguments, "--write-only"])


def text(project: Path, stack: str = "env") -> str:
    return (project / "stacks" / f"Pulumi.{stack}.yaml").read_text()


def test_an_engineer_is_added_in_a_line(project: Path) -> None:
    done = engineer("add", "dave", "-s", "env", "--workers", "0..2", "--gpus", "2", "--pool", "dev")
    assert done.exit_code == 0, done.stderr
    assert (
        text(project)
        == ENVIRONMENT + "      dave: {workers: {min: 0, max: 2}, worker: {pool: dev, gpus: 2}}\n"
    )
    assert "berth up -s env" in done.stdout


def test_cores_and_memory_are_written_as_people_write_them(project: Path) -> None:
    sizes = ["--cpu", "8", "--memory", "32Gi", "--head-cpu", "500m", "--head-memory", "4Gi"]
    done = engineer("add", "dave", "-s", "env", *sizes)
    assert done.exit_code == 0, done.stderr
    line = "      dave: {worker: {cpu: 8, memory: 32Gi}, head: {cpu: 500m, memory: 4Gi}}\n"
    assert text(project) == ENVIRONMENT + line
    assert "already" in engineer("add", "dave", "-s", "env", *sizes).stdout
    assert create("erin", "-e", "env", *sizes).exit_code == 0
    assert text(project, "erin").endswith(
        "    worker: {cpu: 8, memory: 32Gi}\n    head: {cpu: 500m, memory: 4Gi}\n"
    )


@pytest.mark.parametrize(("option", "value", "problem"), table(__file__, "engineer.yaml"))
def test_sizes_are_held_to_the_settings(
    project: Path, option: str, value: str, problem: str
) -> None:
    done = engineer("add", "dave", "-s", "env", f"{option}={value}")
    assert done.exit_code == 2, done.output
    assert f"stacks/Pulumi.env.yaml:13: environment.engineers.dave.{problem}" in done.stderr
    assert text(project) == ENVIRONMENT


def test_adding_again_changes_nothing_and_other_settings_are_refused(project: Path) -> None:
    engineer("add", "dave", "-s", "env", "--workers", "2")
    once = text(project)
    again = engineer("add", "dave", "-s", "env", "--workers", "2", "--json")
    assert (again.exit_code, json.loads(again.stdout)["changed"]) == (0, False)
    other = engineer("add", "dave", "-s", "env", "--workers", "3")
    assert other.exit_code == 2
    assert "stacks/Pulumi.env.yaml:13: dave has a berth with other settings already" in other.stderr
    assert text(project) == once


def test_what_check_would_refuse_is_not_written(project: Path) -> None:
    done = engineer("add", "dave", "-s", "env", "--workers", "20", "--pool", "devv")
    assert (done.exit_code, done.stdout) == (2, "")
    assert (
        "stacks/Pulumi.env.yaml:13: environment.engineers.dave.worker.pool: there is no pool 'devv'"
        in done.stderr
    )
    assert text(project) == ENVIRONMENT
    crowded = engineer("add", "dave", "-s", "env", "--workers", "20", "--json")
    assert crowded.exit_code == 2
    result = json.loads(crowded.stdout)
    assert not result["changed"]
    assert any(
        "environment.engineers.dave.workers: 20 workers of 1 GPU are 20" in line
        for line in result["problems"]
    )
    assert text(project) == ENVIRONMENT


def test_a_dry_run_shows_the_difference(project: Path) -> None:
    done = engineer("add", "dave", "-s", "env", "--dry-run")
    assert done.exit_code == 0
    assert "+      dave: {}\n" in done.stdout
    assert text(project) == ENVIRONMENT


def test_an_engineer_is_removed_and_it_is_said_what_goes(project: Path) -> None:
    done = engineer("remove", "bob", "-s", "env")
    assert done.exit_code == 0, done.stderr
    assert text(project) == ENVIRONMENT.replace("      bob:\n        workers: 2 # two\n", "")
    assert "removes namespace berth-bob with everything in it" in done.stdout
    assert "could not be asked: pulumi is not on PATH" in done.stdout
    unknown = engineer("remove", "bobb", "-s", "env")
    assert unknown.exit_code == 2
    assert "has no engineer 'bobb'" in unknown.stderr


def test_an_engineers_own_stack_is_written_and_counts(project: Path) -> None:
    done = create("erin", "-e", "env", "--gpus", "2")
    assert done.exit_code == 0, done.stderr
    assert text(project, "erin").endswith(
        "config:\n  berth:engineer:\n    environment: env\n    worker: {gpus: 2}\n"
    )
    assert "Without CI, run: berth create erin" in " ".join(done.stdout.split())
    again = create("erin", "-e", "env")
    assert (again.exit_code, "nothing was changed" in again.stdout) == (0, True)
    other = create("erin", "-e", "env", "--gpus", "4")
    assert (other.exit_code, "exists with other settings" in other.stderr) == (2, True)
    assert create("bob", "-e", "env").exit_code == 2
    twice = engineer("add", "erin", "-s", "env")
    assert twice.exit_code == 2
    assert "by a stack of their own, erin" in twice.stderr
    listed = json.loads(engineer("list", "-s", "env", "--json").stdout)
    assert [
        (row["name"], row["stack"], row["workers"], row["gpus"], row["pool"]) for row in listed
    ] == [
        ("bob", "env", 2, 1, "dev"),
        ("carol", "env", 1, 1, "dev"),
        ("erin", "erin", 1, 2, "dev"),
    ]


def test_an_own_stack_takes_over_the_key_of_its_environments_secrets(project: Path) -> None:
    key = (
        "secretsprovider:"
        " gcpkms://projects/p/locations/l/keyRings/berth/cryptoKeys/pulumi\nencryptedkey: a2V5\n"
    )
    path = project / "stacks" / "Pulumi.env.yaml"
    path.write_text(path.read_text() + key)
    done = create("erin", "-e", "env")
    assert done.exit_code == 0, done.stderr
    assert text(project, "erin").endswith(f"environment: env\n{key}")
    assert "open a pull request with stacks/Pulumi.erin.yaml" in " ".join(done.stdout.split())


def test_shares_are_listed_as_shares(project: Path) -> None:
    path = project / "stacks" / "Pulumi.env.yaml"
    shared = (
        "capacity: spot, sharing: quarter} # one node\n    sharing:\n      quarter: {kind:"
        " time-slicing, replicas: 4}"
    )
    path.write_text(ENVIRONMENT.replace("capacity: spot} # one node", shared))
    done = engineer("list", "-s", "env")
    assert [" ".join(line.split()) for line in done.stdout.splitlines() if "env" in line] == [
        "bob env 2 1 share of 1/4 B200 dev",
        "carol env 1 1 share of 1/4 B200 dev",
    ]


def test_a_stack_that_is_no_environment(project: Path) -> None:
    create("erin", "-e", "env")
    for command in (
        ["add", "x", "-s", "erin"],
        ["remove", "x", "-s", "erin"],
        ["list", "-s", "erin"],
    ):
        done = engineer(*command)
        assert done.exit_code == 2
        assert "is not an environment" in done.stderr
    missing = engineer("list", "-s", "evn")
    assert (missing.exit_code, "did you mean 'env'?" in missing.stderr) == (2, True)
    assert project.is_dir()


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "with a byte order mark"])
@pytest.mark.parametrize("ends", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
def test_every_other_byte_stays(project: Path, ends: bytes, mark: bytes) -> None:
    file = project / "stacks" / "Pulumi.env.yaml"
    before = mark + ENVIRONMENT.encode().replace(b"\n", ends)
    file.write_bytes(before)
    done = engineer("add", "dave", "-s", "env", "--workers", "2")
    assert done.exit_code == 0, done.stderr
    assert file.read_bytes() == before + b"      dave: {workers: 2}" + ends
    done = engineer("remove", "dave", "-s", "env")
    assert done.exit_code == 0, done.stderr
    assert file.read_bytes() == before


def test_a_name_that_looks_like_markup(project: Path) -> None:
    assert project
    done = create("[/]", "-e", "env", "--memory", "much")
    assert done.exit_code == 2
    assert "✗ [/] would have these problems; nothing was written" in done.stderr

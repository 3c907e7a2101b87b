"""Settings taken from a pull request into main: files of stacks, and nothing that could run."""

import subprocess
from pathlib import Path

import pytest

from berth.cli.ci import proposed_settings

SETTINGS = "config:\n  berth:environment:\n    zone: us-central1-b\n"
PROGRAM = "raise SystemExit('mallory')\n"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout of main; a pull request has a branch."""
    for variable, value in {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}.items():
        monkeypatch.setenv(variable, value)
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "x")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "x@example.com")
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    write(
        tmp_path,
        {
            "Pulumi.yaml": "name: fleet\n",
            "__main__.py": "run()\n",
            "stacks/Pulumi.prod.yaml": SETTINGS,
        },
    )
    commit(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True
    ).stdout


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def commit(folder: Path) -> str:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=x", "--allow-empty")
    return git(folder, "rev-parse", "HEAD").strip()


def pull_request(checkout: Path, files: dict[str, str]) -> str:
    """A commit on a branch, with main checked out again."""
    git(checkout, "switch", "--quiet", "--create", "proposal")
    write(checkout, files)
    proposal = commit(checkout)
    git(checkout, "switch", "--quiet", "main")
    return proposal


def changed(checkout: Path) -> list[str]:
    """Files of main's checkout that differ from main."""
    return git(checkout, "status", "--porcelain", "--untracked-files=all").split()[1::2]


def test_a_pull_request_that_edits_the_program_gets_nothing(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    attack = {
        "__main__.py": PROGRAM,
        ".github/workflows/preview.yml": "on: push\n",
        ".github/actions/set-up/action.yml": "runs: {}\n",
        "policies/mine.py": PROGRAM,
        "requirements.txt": "mallory\n",
        "Pulumi.yaml": "name: mallory\n",
        "Makefile": "venv:\n",
        "stacks/sitecustomize.py": PROGRAM,
        "stacks/deep/Pulumi.prod.yaml": SETTINGS,
        "stacks/Pulumi.`id`.yaml": SETTINGS,
    }
    proposal = pull_request(
        checkout, attack | {"stacks/Pulumi.prod.yaml": SETTINGS.replace("-b", "-c")}
    )
    assert proposed_settings.main([proposal]) == 0
    assert changed(checkout) == ["stacks/Pulumi.prod.yaml"]
    assert "us-central1-c" in (checkout / "stacks/Pulumi.prod.yaml").read_text()
    output = capsys.readouterr().out
    assert output.startswith("This preview runs main's code. Changes of ")
    assert all(f"`{name}`" in output for name in attack if "id" not in name)
    assert "`stacks/Pulumi.?id?.yaml`" in output


def test_new_and_deleted_stacks_are_taken_and_what_main_did_since_stays(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(checkout, {"stacks/Pulumi.old.yaml": SETTINGS})
    commit(checkout)
    git(checkout, "switch", "--quiet", "--create", "proposal")
    (checkout / "stacks/Pulumi.old.yaml").unlink()
    write(checkout, {"stacks/Pulumi.new.yaml": SETTINGS})
    proposal = commit(checkout)
    git(checkout, "switch", "--quiet", "main")
    write(checkout, {"stacks/Pulumi.prod.yaml": SETTINGS.replace("-b", "-f")})
    commit(checkout)
    assert proposed_settings.main([proposal]) == 0
    assert sorted(changed(checkout)) == ["stacks/Pulumi.new.yaml", "stacks/Pulumi.old.yaml"]
    assert not (checkout / "stacks/Pulumi.old.yaml").exists()
    assert capsys.readouterr().out == ""


KUBECONFIG = "config: {}\nclusters: []\nusers: [{name: x, user: {exec: {command: sh}}}]\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (KUBECONFIG, "has clusters, users, which no stack's file has"),
        ("{config: {}, users: []}\n", "has users"),
        ("environment: [mallory/dev]\n" + SETTINGS, "has environment"),
        (SETTINGS + "  kubernetes:kubeconfig: x\n", "changes config other than berth:"),
        ("- a list\n", "is not a stack's file"),
        ("config: [\n", "is not YAML"),
        ("config: &a [*a]\nx: " + "[" * 3000 + "\n", "is not YAML"),
        ("#" * (1 << 20) + "\n" + SETTINGS, "is larger than 1 MiB"),
    ],
)
def test_a_file_that_is_not_a_stacks_is_refused_and_nothing_is_taken(
    checkout: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    proposal = pull_request(
        checkout, {"stacks/Pulumi.a.yaml": SETTINGS, "stacks/Pulumi.b.yaml": text}
    )
    assert proposed_settings.main([proposal]) == 2
    assert f"error: stacks/Pulumi.b.yaml: {words}" in capsys.readouterr().err
    assert changed(checkout) == []


@pytest.mark.parametrize("key", ["gcpkms://projects/mallory", "passphrase"])
def test_a_pull_request_chooses_no_key_for_the_secrets_of_a_stack(
    checkout: Path, capsys: pytest.CaptureFixture[str], key: str
) -> None:
    kept = "secretsprovider: gcpkms://projects/fleet\n"
    write(checkout, {"stacks/Pulumi.prod.yaml": kept + SETTINGS})
    commit(checkout)
    files = {"stacks/Pulumi.prod.yaml": f"secretsprovider: {key}\n{SETTINGS}"}
    assert proposed_settings.main([pull_request(checkout, files)]) == 2
    assert "changes secretsprovider, the key of the stack's secrets" in capsys.readouterr().err
    assert changed(checkout) == []


def test_a_file_of_another_spelling_is_no_stacks(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["Stacks/Pulumi.prod.yaml", "stacks/pulumi.prod.yaml", "stacks/Pulumi.prod.YAML"]
    assert proposed_settings.main([pull_request(checkout, dict.fromkeys(names, SETTINGS))]) == 0
    output = capsys.readouterr().out
    assert [name for name in names if name not in output] == []
    assert changed(checkout) == []


def test_a_link_is_refused(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git(checkout, "switch", "--quiet", "--create", "proposal")
    (checkout / "stacks/Pulumi.prod.yaml").unlink()
    (checkout / "stacks/Pulumi.prod.yaml").symlink_to("/etc/passwd")
    proposal = commit(checkout)
    git(checkout, "switch", "--quiet", "main")
    assert proposed_settings.main([proposal]) == 2
    assert "is not a regular file" in capsys.readouterr().err
    assert changed(checkout) == []


@pytest.mark.parametrize("commit_of_nobody", ["HEAD", "--output=x", "0" * 40, ""])
def test_a_commit_that_is_not_there(
    checkout: Path, capsys: pytest.CaptureFixture[str], commit_of_nobody: str
) -> None:
    assert proposed_settings.main([commit_of_nobody]) == 2
    assert "Traceback" not in capsys.readouterr().err
    assert changed(checkout) == []

"""Settings that a pull request proposes, taken into a checkout of main.

`python -m berth.cli.ci.proposed_settings COMMIT` runs in CI, where the next step has credentials.
It takes the files of stacks that the commit changes, and nothing else: no code, no policy, no
workflow, no requirements. A preview with these settings runs main's code. The output is Markdown,
and names the changed files that were left out.
"""

import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from berth.components.core.errors import BAD_INPUT, BadInputError, BerthError
from berth.components.core.project import project_folder
from berth.components.core.words import first_names
from berth.components.core.yaml_document import DocumentError, plain_value, read_yaml
from berth.stacks.files.stack_file import LARGEST, NAMESPACE

_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_FILE = re.compile(r"stacks/Pulumi\.[A-Za-z0-9_.-]{1,100}\.yaml", re.ASCII)
_REGULAR = "100644"
_MOST_SHOWN = 20

_ENCRYPTION = "secretsprovider"
"""Key of a stack's file with the service that encrypts the stack's secrets."""

_KEYS = {"config", _ENCRYPTION, "encryptedkey", "encryptionsalt"}
"""Keys that Pulumi has in a stack's file. A file with others could also be a kubeconfig, which
settings may name, and which may run programs."""


@dataclass(frozen=True)
class Proposal:
    """Changes of a commit."""

    taken: dict[str, str | None]
    """Content of the changed files of stacks; None for one that the commit deletes."""
    left: list[str]
    """Other changed files."""

    def markdown(self) -> str:
        """Return what the preview leaves out; empty if it has everything."""
        if not self.left:
            return ""
        names = [f"`{re.sub(r'[^-+./ @A-Za-z0-9_]', '?', name)}`" for name in self.left]
        shown = first_names(names, _MOST_SHOWN)
        return f"This preview runs main's code. Changes of {shown} are not in it.\n"


def proposal_of(commit: str) -> Proposal:
    """Return a commit's changes since it left the commit that is checked out.

    Raises:
        BadInputError: the commit is not there, or a stack's file in it cannot be taken.
    """
    if not _COMMIT.fullmatch(commit):
        raise BadInputError(
            f"{commit!r} is not the hash of a commit",
            "give the full hash of the pull request's head",
        )
    base = _git("merge-base", "HEAD", commit).strip()
    changed = _git("diff", "--name-only", "--no-renames", "-z", base, commit).split("\0")
    taken = {}
    left = []
    for name in filter(None, changed):
        if _FILE.fullmatch(name):
            taken[name] = _content(commit, name)
        else:
            left.append(name)
    return Proposal(taken, left)


def take_proposal(proposal: Proposal) -> None:
    """Write the files of stacks."""
    for name, content in proposal.taken.items():
        path = project_folder() / name
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_text(content, encoding="utf-8")


def _content(commit: str, name: str) -> str | None:
    """Return a stack's file in a commit; None if the commit deletes it."""
    entry = _git("ls-tree", commit, "--", name).split()
    if not entry:
        return None
    mode, _, blob, *_ = entry
    if mode != _REGULAR:
        raise BadInputError(
            "is not a regular file, so it is not taken",
            "commit the settings themselves",
            place=name,
        )
    if int(_git("cat-file", "-s", blob)) > LARGEST:
        raise BadInputError(
            f"is larger than {LARGEST >> 20} MiB, so it is not taken",
            "write settings as `berth explain` shows them",
            place=name,
        )
    text = _git("cat-file", "blob", blob)
    document = _document(text, name)
    others = [str(key) for key in document if key not in _KEYS]
    if others:
        raise BadInputError(
            f"has {', '.join(others)}, which no stack's file has, so it is not taken",
            "write settings as `berth explain` shows them",
            place=name,
        )
    path = project_folder() / name
    before = _document(path.read_text(encoding="utf-8"), name) if path.is_file() else {}
    if before and document.get(_ENCRYPTION) != before.get(_ENCRYPTION):
        raise BadInputError(
            f"changes {_ENCRYPTION}, the key of the stack's secrets, so it is not taken",
            "change it on main, where somebody approves it first",
            place=name,
        )
    if _config_of_providers(document) != (_config_of_providers(before) or {}):
        raise BadInputError(
            f"changes config other than {NAMESPACE}:…, which providers read, so it is not taken",
            "change it on main, where somebody approves it first",
            place=name,
        )
    return text


def _config_of_providers(document: dict[str, Any]) -> dict[str, Any] | None:
    """Return the config that is not berth's; None for a config that is not a mapping."""
    config = document.get("config") or {}
    if not isinstance(config, dict):
        return None
    return {
        str(key): value for key, value in config.items() if not str(key).startswith(f"{NAMESPACE}:")
    }


def _document(text: str, name: str) -> dict[str, Any]:
    try:
        document = plain_value(read_yaml(text))
    except DocumentError:
        raise BadInputError(
            "is not YAML, so it is not taken",
            "write settings as `berth explain` shows them",
            place=name,
        ) from None
    if not isinstance(document, dict):
        raise BadInputError(
            "is not a stack's file, so it is not taken",
            "write settings as `berth explain` shows them",
            place=name,
        )
    return document


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(project_folder()), *arguments]
    done = subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        problem = done.stderr.decode(errors="replace").strip().splitlines() or ["without a reason"]
        raise BadInputError(
            f"git {arguments[0]} failed: {problem[-1]}",
            "fetch the commit first; a newer push has a run of its own",
        )
    try:
        return done.stdout.decode()
    except UnicodeDecodeError:
        raise BadInputError(
            "a changed file, or its name, is not UTF-8, so nothing is taken",
            "write settings as `berth explain` shows them",
        ) from None


def main(arguments: Iterable[str]) -> int:
    """Take the settings; return the exit code."""
    try:
        (commit,) = arguments
        proposal = proposal_of(commit)
        take_proposal(proposal)
    except ValueError:
        sys.stderr.write("usage: python -m berth.cli.ci.proposed_settings COMMIT\n")
        return BAD_INPUT
    except BerthError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.code
    sys.stdout.write(proposal.markdown())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

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
_AS_EXPLAINED = "write settings as `berth explain` shows them"

_KEYS = {"config", "secretsprovider", "encryptedkey", "encryptionsalt"}
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
    """Read a commit's changes since it left the commit that is checked out."""
    if not _COMMIT.fullmatch(commit):
        raise BadInputError(
            f"{commit!r} is not the hash of a commit",
            "give the full hash of the pull request's head",
        )
    base = _git("merge-base", "HEAD", commit).strip()
    names = [
        name
        for name in _git("diff", "--name-only", "--no-renames", "-z", base, commit).split("\0")
        if name
    ]
    files = [name for name in names if _FILE.fullmatch(name)]
    return Proposal(
        {name: _content(commit, name) for name in files},
        [name for name in names if name not in files],
    )


def take_proposal(proposal: Proposal) -> None:
    """Write the files of stacks."""
    for name, content in proposal.taken.items():
        path = project_folder() / name
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_text(content, encoding="utf-8")


def _content(commit: str, name: str) -> str | None:
    entry = _git("ls-tree", commit, "--", name).split()
    if not entry:
        return None
    mode, _, blob, *_ = entry
    if mode != _REGULAR:
        raise _not_taken("is not a regular file", name, "commit the settings themselves")
    if int(_git("cat-file", "-s", blob)) > LARGEST:
        raise _not_taken(f"is larger than {LARGEST >> 20} MiB", name)
    text = _git("cat-file", "blob", blob)
    found = _document(text, name)
    if others := [str(key) for key in found if key not in _KEYS]:
        raise _not_taken(f"has {', '.join(others)}, which no stack's file has", name)
    path = project_folder() / name
    before = _document(path.read_text(encoding="utf-8"), name) if path.is_file() else {}
    if _of_providers(found) != (_of_providers(before) or {}):
        raise _not_taken(
            f"changes config other than {NAMESPACE}:…, which providers read",
            name,
            "change it on main, where somebody approves it first",
        )
    return text


def _of_providers(found: dict[str, Any]) -> dict[str, Any] | None:
    """Return the config that is not berth's; None for a config that is not a mapping."""
    config = found.get("config") or {}
    if not isinstance(config, dict):
        return None
    return {
        str(key): value for key, value in config.items() if not str(key).startswith(f"{NAMESPACE}:")
    }


def _document(text: str, name: str) -> dict[str, Any]:
    try:
        found = plain_value(read_yaml(text))
    except DocumentError:
        raise _not_taken("is not YAML", name) from None
    if not isinstance(found, dict):
        raise _not_taken("is not a stack's file", name)
    return found


def _not_taken(problem: str, name: str, remedy: str = _AS_EXPLAINED) -> BadInputError:
    return BadInputError(f"{problem}, so it is not taken", remedy, place=name)


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

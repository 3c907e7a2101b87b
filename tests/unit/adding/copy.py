"""Copy of the source tree in which a test adds something, as CONTRIBUTING.md tells."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

CLONE = Path(__file__).resolve().parents[3]
_COPIED = (
    "berth",
    "components",
    "stacks",
    "cli",
    "lab",
    "docs",
    "Pulumi.yaml",
    "__main__.py",
    "pyproject.toml",
)


@dataclass
class Copy:
    """Copy of the source tree.

    Attributes:
        root: folder of the copy.
        touched: source files that were changed or added, as paths in the tree.
    """

    root: Path
    touched: set[str] = field(default_factory=set)

    @classmethod
    def make(cls, root: Path) -> Copy:
        """Make a copy under an empty folder."""
        ignored = shutil.ignore_patterns(".lab")
        for name in _COPIED:
            source = CLONE / name
            if source.is_dir():
                shutil.copytree(source, root / name, symlinks=True, ignore=ignored)
            else:
                shutil.copy(source, root / name)
        return cls(root)

    def replace(self, path: str, old: str, new: str) -> None:
        """Replace text that occurs once in a file."""
        file = self.root / path
        text = file.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{path} has {old!r} {text.count(old)} times"
        file.write_text(text.replace(old, new), encoding="utf-8")
        self.touched.add(path)

    def insert_after(self, path: str, pattern: str, new: str) -> None:
        """Insert text after the one line that matches a pattern."""
        file = self.root / path
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        found = [index for index, line in enumerate(lines) if re.search(pattern, line)]
        assert len(found) == 1, f"{path} has {len(found)} lines like {pattern!r}"
        lines.insert(found[0] + 1, new)
        file.write_text("".join(lines), encoding="utf-8")
        self.touched.add(path)

    def append(self, path: str, new: str) -> None:
        """Append text to a file."""
        file = self.root / path
        file.write_text(file.read_text(encoding="utf-8") + new, encoding="utf-8")
        self.touched.add(path)

    def add(self, path: str, text: str) -> None:
        """Add a file."""
        file = self.root / path
        assert not file.exists()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        self.touched.add(path)

    def stack(self, name: str, text: str) -> None:
        """Write a stack's config file; it counts as a user's file, not as a touched one."""
        (self.root / f"stacks/Pulumi.{name}.yaml").write_text(text, encoding="utf-8")

    def run(self, *arguments: str, code: int = 0) -> str:
        """Output, stdout and stderr, of a `berth` command in the copy; fails on another exit
        code.
        """
        return self.python("-c", "from berth.cli.main import main; main()", *arguments, code=code)

    def python(self, *arguments: str, code: int = 0) -> str:
        """Output, stdout and stderr, of Python in the copy; fails on another exit code."""
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.root,
            env=os.environ | {"PYTHONPATH": str(self.root), "COLUMNS": "200"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr


def file(name: str) -> str:
    """Return the text of a file of files/: a module or settings that a test adds, or a program that
    it runs in the copy.
    """
    return Path(__file__).with_name("files").joinpath(name).read_text(encoding="utf-8")


def listed(title: str) -> set[str]:
    """Files that a section of CONTRIBUTING.md names, one `- path` a line after `Files:`."""
    text = (CLONE / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = re.search(
        rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, flags=re.DOTALL | re.MULTILINE
    )
    assert section, f"CONTRIBUTING.md has no section {title!r}"
    files = section[1].partition("Files:\n")[2]
    return set(re.findall(r"^- `([^`]+)`", files, flags=re.MULTILINE))

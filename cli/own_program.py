"""Program of the project: berth's own, which the command can run itself, or an edited one."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from berth.cli.repository.template import TEMPLATE
from berth.stacks.files import stack_file


def is_berths_own() -> bool:
    """Return whether the project's program is the one that berth ships, for this very Python.

    A program with resources of its own, or of another version of berth, runs as Pulumi runs it.
    """
    folder = stack_file.project()
    try:
        options = stack_file.project_settings()
        program = _code((folder / "__main__.py").read_text(encoding="utf-8"))
        shipped = _code((TEMPLATE / "main.txt").read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):
        return False
    runtime = options.get("runtime") if isinstance(options, dict) else None
    if not isinstance(options, dict) or "main" in options or program != shipped:
        return False
    chosen = runtime.get("options") if isinstance(runtime, dict) else None
    virtualenv = chosen.get("virtualenv") if isinstance(chosen, dict) else None
    # Pulumi takes the Python on PATH where there is no such folder.
    there = folder / str(virtualenv or "")
    return virtualenv is None or not there.exists() or there.resolve() == Path(sys.prefix).resolve()


def _code(text: str) -> str:
    """Return a program without comments and its docstring."""
    module = ast.parse(text)
    body = module.body[1:] if ast.get_docstring(module) else module.body
    return "\n".join(map(ast.dump, body))

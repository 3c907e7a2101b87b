"""Code of a service's applications: files beside the settings, read and checked first."""

import ast
import sys
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from pathlib import Path

from berth.components.core.errors import BadInputError
from berth.components.core.nearest import did_you_mean
from berth.components.core.problems import Problem, SettingPath
from berth.components.core.project import path_of_setting, shown_path
from berth.stacks.settings.environment import EnvironmentSettings

LIMIT_BYTES = 128 * 1024
"""Most bytes of all files: they become annotations, of which an object has 256 KiB at most
(https://kubernetes.io/docs/concepts/overview/working-with-objects/annotations)."""

_MOST_FILES = 5000
"""Most files that a folder of code is searched for: a folder of a whole machine has no end."""

_INSTEAD = (
    "put it into the image, or into an archive that `runtime_env: {working_dir: https://…zip}`"
    " names"
)

# Keys of a runtime environment that bring modules of their own.
_OTHER_CODE = ("working_dir", "py_modules", "image_uri", "container", "conda", "py_executable")


def read_code(path: Path) -> dict[str, str]:
    """Return the text of a Python file, or of a folder's files, by path.

    Hidden files, such as `.env`, and compiled ones are left out.
    """
    try:
        files, size = _files(path)
    except OSError as error:
        raise BadInputError(
            f"{shown_path(path)} cannot be read: {error.strerror}; look at the file and its"
            " permissions"
        ) from None
    if not any(name.endswith(".py") for name in files):
        raise BadInputError(
            f"{shown_path(path)} has no Python file (*.py); name a folder with the"
            " application's code"
        )
    if size > LIMIT_BYTES:
        largest = max(files.values(), key=lambda file: file.stat().st_size)
        raise BadInputError(
            f"{shown_path(path)} has {size} bytes, of which {shown_path(largest)} alone"
            f" {largest.stat().st_size}; pods take {LIMIT_BYTES} with them; {_INSTEAD}"
        )
    texts = {name: _text(file) for name, file in files.items()}
    for module in sorted(_modules(texts)):
        if module in sys.stdlib_module_names or module == "ray":
            raise BadInputError(
                f"module {module!r} of {shown_path(path)} hides the one that Python and Ray import;"
                " rename it"
            )
    return texts


def code_of_services(
    settings: EnvironmentSettings,
) -> tuple[dict[str, dict[str, str]], list[Problem]]:
    """Return the code's files of each service that has some, and problems with the code."""
    code: dict[str, dict[str, str]] = {}
    problems: list[Problem] = []
    for name, service in settings.services.items():
        if service.code is None:
            continue
        path: SettingPath = ("environment", "services", name)
        try:
            code[name] = read_code(path_of_setting(service.code))
        except BadInputError as error:
            problems.append(Problem((*path, "code"), str(error)))
            continue
        applications = service.serve_config.get("applications")
        for index, application in enumerate(applications if isinstance(applications, list) else ()):
            if isinstance(application, dict):
                place = (*path, "serveConfig", "applications", index)
                problems += _application(application, service.code, code[name], place)
    return code, problems


def _application(
    application: Mapping[str, object], code: str, files: Mapping[str, str], path: SettingPath
) -> Iterable[Problem]:
    """Yield the problem of an import path that finds nothing in the code."""
    import_path = application.get("import_path")
    if not isinstance(import_path, str) or not import_path:
        return  # a problem of ray/rules/services.py
    place = (*path, "import_path")
    separator = ":" if ":" in import_path else "."
    module, _, name = import_path.rpartition(separator)
    file = _file_of(module, files)
    if file is None:
        if not _has_other_code(application):
            modules = sorted(_modules(files))
            yield Problem(
                place,
                f"there is no module {module!r} in {code}{did_you_mean(module, modules)}; it has"
                f" {', '.join(modules)}",
            )
        return
    try:
        names = _names(ast.parse(files[file]))
    except SyntaxError as error:
        yield Problem(place, f"{code}: {file}:{error.lineno}: Python cannot read this: {error.msg}")
        return
    except (ValueError, RecursionError, MemoryError) as error:  # NUL, and too many brackets
        reason = str(error) or "too deep"
        yield Problem(place, f"{code}: {file}: Python cannot read this: {reason}")
        return
    first = name.split(".")[0]
    if names is not None and first not in names:
        yield Problem(
            place, f"module {module!r} of {code} has no {first!r}{did_you_mean(first, names)}"
        )


def _has_other_code(application: Mapping[str, object]) -> bool:
    """Return whether an application's runtime environment brings modules of its own."""
    runtime_env = application.get("runtime_env")
    return isinstance(runtime_env, dict) and any(key in runtime_env for key in _OTHER_CODE)


def _names(module: ast.Module) -> Collection[str] | None:
    """Return the names that a module defines at its top; None if only running it shows them."""
    names: set[str] = set()
    for node in ast.walk(
        ast.Module([part for part in module.body if not isinstance(part, _SCOPES)], [])
    ):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            if node.name == "*":
                return None
            names.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, _SCOPES):
            names.add(node.name)
    return names | {part.name for part in module.body if isinstance(part, _SCOPES)}


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _files(path: Path) -> tuple[dict[str, Path], int]:
    if path.is_file():
        return {path.name: path}, path.stat().st_size
    if not path.is_dir():
        raise BadInputError(
            f"there is no file or folder {shown_path(path)}; paths count from the project's folder"
        )
    paths = list(islice(path.rglob("*"), _MOST_FILES + 1))
    if len(paths) > _MOST_FILES:
        raise BadInputError(
            f"{shown_path(path)} has more than {_MOST_FILES} files; name the folder of the code"
            " alone"
        )
    files = {str(file.relative_to(path)): file for file in sorted(paths) if _counts(file, path)}
    return files, sum(file.stat().st_size for file in files.values())


def _counts(file: Path, folder: Path) -> bool:
    parts = file.relative_to(folder).parts
    return file.is_file() and not any(
        part.startswith(".") or part == "__pycache__" for part in parts
    )


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise BadInputError(f"{shown_path(file)} is not text (UTF-8); {_INSTEAD}") from None
    except OSError as error:
        raise BadInputError(
            f"{shown_path(file)} cannot be read: {error.strerror}; look at the file and its"
            " permissions"
        ) from None


def _modules(files: Iterable[str]) -> set[str]:
    """Return the names by which the files' outermost modules are imported."""
    return {Path(name).parts[0].removesuffix(".py") for name in files if name.endswith(".py")}


def _file_of(module: str, files: Collection[str]) -> str | None:
    stem = module.replace(".", "/")
    return next((name for name in (f"{stem}.py", f"{stem}/__init__.py") if name in files), None)

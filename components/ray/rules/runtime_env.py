"""Rules of Ray's runtime environments: of a job, an application of Ray Serve, or a deployment.

A runtime environment is a document of Ray's, so that its values are at any depth.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from berth.components.core.nearest import did_you_mean
from berth.components.core.problems import Problem, SettingPath

_KEYS = frozenset(
    (
        "conda",
        "config",
        "container",
        "env_vars",
        "excludes",
        "image_uri",
        "java_jars",
        "nsight",
        "pip",
        "py_executable",
        "py_modules",
        "uv",
        "worker_process_setup_hook",
        "working_dir",
    )
)
"""Ray's own keys
(https://docs.ray.io/en/latest/ray-core/handling-dependencies.html#api-reference)."""

# Special characters of a shell within double quotes: KubeRay's submitter quotes the runtime
# environment so (kuberay v1.6.2, ray-operator/controllers/ray/common/job.go,
# BuildJobSubmitCommand).
_SHELL_CHARACTERS = "$`"


def runtime_env_problems(
    runtime_env: Mapping[str, Any], path: SettingPath, *, by_shell: bool
) -> Iterator[Problem]:
    """Yield the problems of a runtime environment.

    Args:
        runtime_env: the runtime environment as written.
        path: its path in the settings.
        by_shell: whether KubeRay's submitter passes the runtime environment through a shell.
    """
    yield from _misspelled_keys(runtime_env, path)
    yield from _wrong_variables(runtime_env.get("env_vars"), (*path, "env_vars"))
    if by_shell:
        yield from _texts_that_a_shell_changes(runtime_env, path)


def _misspelled_keys(runtime_env: Mapping[str, Any], path: SettingPath) -> Iterator[Problem]:
    """Yield keys that look like one of Ray's own; a plugin of the image may know others."""
    for key in runtime_env:
        hint = did_you_mean(key, _KEYS)
        if key not in _KEYS and hint.startswith("; did you mean"):
            yield Problem((*path, key), f"unknown key {key!r}{hint}")


def _wrong_variables(variables: Any, path: SettingPath) -> Iterator[Problem]:
    if variables is None:
        return
    if not isinstance(variables, dict):
        yield Problem(path, f"{variables!r} is not a mapping; write NAME: VALUE")
        return
    for name, value in variables.items():
        if not isinstance(value, str):
            yield Problem((*path, name), f"{value!r} is not text; put it in quotes")


def _texts_that_a_shell_changes(value: Any, path: SettingPath) -> Iterator[Problem]:
    for where, text in _texts(value, path):
        marks = [mark for mark in _SHELL_CHARACTERS if mark in text]
        if marks:
            yield Problem(
                where,
                "KubeRay's submitter hands this to a shell, which would take"
                f" {marks[0]!r} for its own; take it out, or write `submissionMode: HTTPMode`,"
                " which uses no shell",
            )


def _texts(value: Any, path: SettingPath) -> Iterator[tuple[SettingPath, str]]:
    """Yield the texts of plain data with their paths."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts(inner, (*path, key))
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from _texts(inner, (*path, position))

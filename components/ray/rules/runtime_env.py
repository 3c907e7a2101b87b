"""Rules of Ray's runtime environments: of a job, an application of Ray Serve, or a deployment."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from berth.components.core.nearest import did_you_mean
from berth.components.core.problems import SettingPath
from berth.components.core.rules import Breach, Rules
from berth.components.core.settings import Settings

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

_SHELL_CHARACTERS = "$`"
"""Special characters of a shell within double quotes."""


@dataclass(frozen=True)
class RuntimeEnv:
    """A runtime environment as written.

    Attributes:
        values: its keys and values.
        by_shell: whether KubeRay's submitter passes the runtime environment through a shell.
    """

    values: Mapping[str, Any]
    by_shell: bool = False


RUNTIME_ENVS = Rules[RuntimeEnv](Settings)
"""Rules of a runtime environment, which is a document of Ray's: values are at any depth."""


@RUNTIME_ENVS.problem("**")
def misspelled_key(runtime_env: RuntimeEnv) -> Iterator[Breach]:
    """A key that looks like one of Ray's is Ray's; a plugin of the image may know others."""
    for key in runtime_env.values:
        hint = did_you_mean(key, _KEYS)
        if key not in _KEYS and hint.startswith("; did you mean"):
            yield Breach(f"unknown key {key!r}{hint}", at=(key,))


@RUNTIME_ENVS.problem("**")
def variables_that_are_not_text(runtime_env: RuntimeEnv) -> Iterator[Breach]:
    """Environment variables are texts by their names."""
    variables = runtime_env.values.get("env_vars")
    if variables is None:
        return
    if not isinstance(variables, dict):
        yield Breach(f"{variables!r} is not a mapping; write NAME: VALUE", at=("env_vars",))
        return
    for name, value in variables.items():
        if not isinstance(value, str):
            yield Breach(f"{value!r} is not text; put it in quotes", at=("env_vars", name))


@RUNTIME_ENVS.problem("**")
def text_that_a_shell_changes(runtime_env: RuntimeEnv) -> Iterator[Breach]:
    """KubeRay's submitter quotes a runtime environment by double quotes.

    Source: kuberay v1.6.2, ray-operator/controllers/ray/common/job.go, BuildJobSubmitCommand.
    """
    if not runtime_env.by_shell:
        return
    for place, text in _texts(runtime_env.values, ()):
        marks = [mark for mark in _SHELL_CHARACTERS if mark in text]
        if marks:
            yield Breach(
                f"KubeRay's submitter hands this to a shell, which would take {marks[0]!r} for its"
                " own; take it out, or write `submissionMode: HTTPMode`, which uses no shell",
                at=place,
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

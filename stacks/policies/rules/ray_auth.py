"""Policy `ray-auth`."""

from collections.abc import Iterator, Mapping
from typing import Any

from berth.components.core.manifest import value_at
from berth.stacks.policies.planned import as_list, object_name, ray_specs
from berth.stacks.policies.policy import Finding, Planned, Policy, PolicyContext


def _clusters_without_token(resource: Planned, _context: PolicyContext) -> Iterator[Finding]:
    """Yield RayClusters that do not ask for a token."""
    for spec in ray_specs(resource):
        name = object_name(resource)
        mode = value_at(spec, "authOptions", "mode")
        if mode != "token":
            found = (
                "does not ask for a token"
                if mode in (None, "", "disabled")
                else f"has authOptions.mode {mode}"
            )
            yield Finding(
                f"Ray of {name} {found}, so whoever reaches its head runs code as its owner"
            )
        elif others := sorted({value for value in _auth_modes(spec) if value != "token"}):
            # KubeRay does not overwrite it (kuberay v1.6.2, SetContainerTokenAuthEnvVars).
            modes = ", ".join(others)
            yield Finding(
                f"Ray of {name} has RAY_AUTH_MODE={modes} in `env`, which overrides `auth: token`",
                "remove it",
            )
        elif any("auth_mode" in line.lower() for line in _command_lines(spec)):
            yield Finding(
                f"Ray of {name} has RAY_AUTH_MODE in the command that starts it, which overrides"
                " `auth: token`",
                "take it out of `command` and `args`",
            )


def _groups(spec: Mapping[str, Any]) -> list[Any]:
    return [value_at(spec, "headGroupSpec"), *as_list(value_at(spec, "workerGroupSpecs"))]


def _containers(spec: Mapping[str, Any]) -> Iterator[Any]:
    for group in _groups(spec):
        yield from as_list(value_at(group, "template", "spec", "containers"))


def _auth_modes(spec: Mapping[str, Any]) -> Iterator[str]:
    for container in _containers(spec):
        for variable in as_list(value_at(container, "env")):
            if value_at(variable, "name") == "RAY_AUTH_MODE":
                yield str(value_at(variable, "value"))


def _command_lines(spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts from which a shell starts Ray.

    KubeRay writes `ray start`, with its parameters, after the command of the first container
    (kuberay v1.6.2, ray-operator/controllers/ray/common/pod.go, BuildPod).
    """
    for container in _containers(spec):
        for field in ("command", "args"):
            yield from map(str, as_list(value_at(container, field)))
    for group in _groups(spec):
        yield str(value_at(group, "rayStartParams"))


POLICY = Policy(
    name="ray-auth",
    asks="Every RayCluster requires its token.",
    why=(
        "Without a token, whoever reaches the head, including every pod of the cluster, runs"
        " code as its owner."
    ),
    remedy="use `auth: token`",
    judge=_clusters_without_token,
    applies_to="raycluster",
    setting=("auth",),
)

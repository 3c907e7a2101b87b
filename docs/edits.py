"""Effect of an edit of each setting: the program runs before and after it, and the preview judges.

Each edit changes one setting of an environment of docs/edits.yaml, to its example, to another of
its values or to nothing. What the program registers before and after is compared by Pulumi's own
kubernetes plugin and by the lab's rules of Google's provider, and `berth preview` says what the
difference does.
"""

from __future__ import annotations

import copy
import json
import logging
import sys
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pulumi
import yaml
from pulumi.runtime.rpc import UNKNOWN

from berth.cli.verbs.explain.effects import EFFECTS, OF_GROUP, SAME_AS_ENGINEERS
from berth.cli.verbs.explain.settings import Setting, root_settings, with_settings_inside
from berth.components.cluster.api import ClusterError
from berth.components.core.errors import BadInputError
from berth.components.gke.cluster_arguments import IGNORED_CHANGES as IGNORED_OF_CLUSTER
from berth.components.gke.effects.pool_size import SIZE_FIELDS
from berth.components.gke.node_pool_arguments import IGNORED_CHANGES as IGNORED_OF_POOL
from berth.components.gke.provider_fields import CLUSTER, NODE_POOL
from berth.components.plan import fleet
from berth.components.plan.effect import Level
from berth.components.plan.paths import MISSING, below, value_at
from berth.components.plan.plan import Operation, Plan, Property, ResourceState, Step
from berth.lab.plugins.gcp.kinds import Kind
from berth.lab.plugins.gcp.provider import TYPES
from berth.stacks.load.schema import schema
from berth.stacks.load.stack import Environment, load
from berth.stacks.preview.report import PreviewContext, ResourceChange, report_of
from docs.plugin import Plugin, running
from tests.unit.recording import Recorder, run

ENVIRONMENTS = Path(__file__).with_name("edits.yaml")
_MOST_EDITS = 5
"""Edits of one setting that are tried in one environment."""
_IGNORED = {CLUSTER: IGNORED_OF_CLUSTER, NODE_POOL: IGNORED_OF_POOL}
_MOST_CHOICES = 6
NOTHING = "nothing that runs"
IN_PLACE = "in place"
PHRASES = {
    NOTHING: "No resource changes: the setting is for berth's own commands and checks.",
    IN_PLACE: "Objects change in place. Nothing restarts.",
    "disturbs": "Something is away for a while, or a protection is gone; pods keep running.",
    "reconfigures the cluster": (
        "The control plane or a service of GKE changes; nodes and pods stay."
    ),
    "redeploys the applications": "Ray Serve restarts the applications that changed.",
    "moves the service to a second RayCluster": (
        "KubeRay starts a second RayCluster, moves traffic, removes the first."
    ),
    "restarts an operator": "An operator or driver restarts on its nodes.",
    "removes an operator": "An operator or driver is removed, or installed again.",
    "removes workers": "Workers go; Ray runs their tasks again elsewhere.",
    "runs the job again": (
        "The RayJob is recreated and runs again; what it did is lost if it still ran."
    ),
    "recreates the service": (
        "The RayService is deleted and created again; it answers nobody meanwhile."
    ),
    "restarts the RayCluster": (
        "KubeRay recreates all pods of the RayCluster; what runs in them is lost."
    ),
    "removes nodes": "GKE deletes nodes and evicts their pods.",
    "recreates the nodes of the pool": (
        "GKE recreates the pool's nodes one after the other and evicts their pods."
    ),
    "recreates the node pool": (
        "All nodes of the pool are deleted; new ones come if there is capacity."
    ),
    "recreates networks": "Networks are deleted and created again, with every node in them.",
    "recreates everything on the cluster": (
        "All objects are deleted on one cluster and created on another."
    ),
    "recreates the cluster": "The cluster with everything on it is deleted and created again.",
}
"""Phrases for the effect of an edit, from harmless to severe, with their meaning."""

# Edits that lead to another cluster, which no plan of one environment shows.
_ELSEWHERE = {
    "environment.cluster.existing.kubeconfig": f"{IN_PLACE} or recreates everything on the cluster",
    "environment.cluster.existing.context": f"{IN_PLACE} or recreates everything on the cluster",
    # A provider's default: the inputs of the resources do not name it.
    "environment.project": "recreates the cluster",
    "environment.region": "recreates the cluster",  # its zones change with it
    "environment.operators.dranet.manifest": "restarts an operator",  # a file of the user's own
    # Only the short form ignores the number at the start.
    "environment.engineers.ENGINEER.workerGroups.GROUP.workers.start": IN_PLACE,
    "engineer.environment": "recreates everything on the cluster",
    "engineer.name": "restarts the RayCluster",
    "engineer.part": "restarts the RayCluster",
    "engineer.login.kubeconfig": f"{IN_PLACE} or recreates everything on the cluster",
    "engineer.login.context": f"{IN_PLACE} or recreates everything on the cluster",
}

Resources = Mapping[tuple[str, str], Mapping[str, Any]]


@dataclass
class Fleet:
    """An environment with one setting edited or not: what its program registers.

    Attributes:
        values: the settings.
        loaded: the environment, resolved.
        resources: inputs of every resource, by type and name.
    """

    values: dict[str, Any]
    loaded: Environment
    resources: Resources = field(repr=False)

    @classmethod
    def of(cls, values: dict[str, Any]) -> Fleet:
        """Run the program of an environment.

        Raises:
            BadInputError: the settings are wrong.
        """
        from berth.stacks.program.environment import register_environment  # noqa: PLC0415 - takes seconds

        loaded = load("fleet", {"environment": values}, None)
        assert isinstance(loaded, Environment)  # noqa: S101
        with (
            patch("berth.stacks.program.environment.claims_api", _assumed),
            patch(
                "berth.components.operators.repair.ClusterApi",
                side_effect=ClusterError("there is no cluster"),
            ),
        ):
            recorder = run(lambda: register_environment(loaded), "fleet", recorder=_WithLinks())
        resources = {
            (found.type, found.name): _plain(found.inputs) for found in recorder.registrations
        }
        return cls(values, loaded, resources)


async def _assumed(*_: Any) -> str:
    return "v1"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items() if inner is not None}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value


def plan_between(before: Fleet, after: Fleet, plugin: Plugin) -> Plan:
    """Return the plan of the engine for an edit."""
    steps = []
    replaced = set[str]()
    for key in dict.fromkeys([*before.resources, *after.resources]):
        old = before.resources.get(key)
        new = _with_unknown(after.resources.get(key), replaced)
        kinds = (
            _differences(*key, old, new, after.loaded, plugin)
            if old is not None and new is not None
            else {}
        )
        step = _step(key, old, new, kinds)
        if step.operation == "replace" and step.type in TYPES:
            replaced.add(self_link(*key))
        steps.append(step)
    return Plan(steps)


def _with_unknown(
    inputs: Mapping[str, Any] | None, replaced: Container[str]
) -> Mapping[str, Any] | None:
    """Return inputs in which references to replaced resources are unknown, as to the engine.

    It deletes a resource with a fixed name before it creates it again.
    """
    if inputs is None:
        return None
    return {
        name: UNKNOWN if isinstance(value, str) and value in replaced else value
        for name, value in inputs.items()
    }


def self_link(kind: str, name: str) -> str:
    """Return the reference to a resource by which another one names it."""
    return f"self/{kind.rpartition(':')[2]}/{name}"


class _WithLinks(Recorder):
    """Recorder that gives each resource a reference of its own."""

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        resource, outputs = super().new_resource(args)
        return resource, outputs | {"selfLink": self_link(args.typ, args.name)}


def _differences(
    kind: str,
    name: str,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    loaded: Environment,
    plugin: Plugin,
) -> Mapping[str, Kind]:
    """Return the differences of a resource by path; the engine adds those that replace it."""
    if old == new:
        return {}
    if kind in TYPES:
        before = dict(old)
        after = dict(new)
        ignored = _IGNORED.get(kind, ())
        return TYPES[kind].differences(TYPES[kind].kept(before), after, ignored)
    if not kind.startswith("kubernetes:"):
        return {}
    workloads = (berth.workload for berth in loaded.berths if berth.settings.name == name)
    workload = next((found for found in workloads if kind.endswith(f":{found.main_kind}")), None)
    found = plugin.differences(kind, old, new, workload.ignore_changes if workload else ())
    replacing = tuple(workload.replace_on_changes) if workload else ()
    return {
        path: difference.as_replace() if replacing and path.startswith(replacing) else difference
        for path, difference in found.items()
    }


def _step(
    key: tuple[str, str],
    old: Mapping[str, Any] | None,
    new: Mapping[str, Any] | None,
    kinds: Mapping[str, Kind],
) -> Step:
    kind, name = key
    changed = [
        Property(path, _operation(found), _at(old, path), _at(new, path), found.replaces)
        for path, found in kinds.items()
    ]
    operation: Operation = "same"
    if old is None or new is None:
        operation = "create" if old is None else "delete"
    elif changed:
        operation = "replace" if any(found.replaces for found in kinds.values()) else "update"
    before, after = (
        None if inputs is None else ResourceState(inputs, inputs, "") for inputs in (old, new)
    )
    return Step(
        operation=operation,
        urn=f"urn::{kind}::{name}",
        type=kind,
        name=name,
        custom=not kind.startswith("berth:"),
        old=before,
        new=after,
        properties=changed,
        deleted_first=True,
    )


def _operation(kind: Kind) -> Any:
    """Return the engine's word for a difference: `add`, `delete` or `update`."""
    return kind.name.removesuffix("_REPLACE").lower()


def _at(inputs: Mapping[str, Any] | None, path: str) -> Any:
    found = value_at(inputs or {}, path)
    return None if found is MISSING else found


def edits_of(setting: Setting, values: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield copies of an environment's settings in which one setting has another value or none."""
    for place in _places(values, setting.path.removeprefix("environment.").split(".")):
        present = _get(values, place)
        choices = setting.choices if len(setting.choices) <= _MOST_CHOICES else []
        for value in [*setting.example_values, *choices, MISSING]:
            if value == present or (value is MISSING and present is MISSING):
                continue
            edited = copy.deepcopy(values)
            _set(edited, place, value)
            yield edited


def is_edited(setting: Setting) -> bool:
    """Return whether an edit of a setting is looked at; a holder of other settings is not."""
    if setting.name.isupper() or setting.path.endswith("[]"):
        return False
    return not any(setting.children()) or not setting.type.startswith("mapping")


def effect_of(setting: Setting, fleets: Mapping[str, Fleet], plugin: Plugin) -> str | None:
    """Return what an edit of a setting does, in phrases; None if no edit could be tried."""
    tried = False
    for before in fleets.values():
        found = set[str]()
        tries = 0
        for values in edits_of(setting, before.values):
            if tries == _MOST_EDITS:
                break
            try:
                edited = Fleet.of(values)
            except BadInputError:
                continue
            tried = True
            tries += 1
            changes = report_of(
                plan_between(before, edited, plugin), PreviewContext("fleet", "environment")
            ).changes
            if changes:
                found.add(max(map(phrase_of, changes), key=list(PHRASES).index))
        if found:
            return " or ".join(sorted(found, key=list(PHRASES).index))
    return NOTHING if tried else None


_ANY = ("update", "replace", "delete")
_GONE = ("replace", "delete")
_OPERATORS = ("kubernetes:helm.sh/v3:Release", "kubernetes:apps/v1:DaemonSet")
_RULES: list[tuple[tuple[str, ...], tuple[str, ...], Level, str]] = [
    ((fleet.GKE_CLUSTER,), _GONE, Level.HARMLESS, "recreates the cluster"),
    ((fleet.GKE_CLUSTER,), _ANY, Level.DISTURBS, "reconfigures the cluster"),
    ((fleet.NODE_POOL,), _GONE, Level.HARMLESS, "recreates the node pool"),
    ((fleet.NODE_POOL,), _ANY, Level.DISTURBS, "recreates the nodes of the pool"),
    ((fleet.RAY_CLUSTER,), _ANY, Level.DESTROYS, "restarts the RayCluster"),
    ((fleet.RAY_CLUSTER,), _ANY, Level.DISTURBS, "removes workers"),
    ((fleet.RAY_JOB,), _GONE, Level.HARMLESS, "runs the job again"),
    ((fleet.RAY_SERVICE,), _GONE, Level.HARMLESS, "recreates the service"),
    ((fleet.RAY_SERVICE,), _ANY, Level.DISTURBS, "redeploys the applications"),
    (
        ("gcp:compute/network:Network", "gcp:compute/subnetwork:Subnetwork"),
        _GONE,
        Level.DISTURBS,
        "recreates networks",
    ),
    (_OPERATORS, _GONE, Level.DISTURBS, "removes an operator"),
    (_OPERATORS, _ANY, Level.DISTURBS, "restarts an operator"),
]
"""Phrases by type, operation and least level of a change; the first one that fits."""


def phrase_of(change: ResourceChange) -> str:
    """Return the phrase for one change."""
    if (
        change.type == fleet.NODE_POOL
        and change.operation == "update"
        and change.level
        and _resized(change)
    ):
        return "removes nodes"
    if (
        change.type == fleet.RAY_SERVICE
        and change.operation == "update"
        and change.effects
        and not change.level
    ):
        return "moves the service to a second RayCluster"
    for types, operations, least, phrase in _RULES:
        if change.type in types and change.operation in operations and change.level >= least:
            return phrase
    return "disturbs" if change.level else IN_PLACE


def _resized(change: ResourceChange) -> bool:
    return any(below(found.path, prefix) for found in change.properties for prefix in SIZE_FIELDS)


def _places(value: Any, path: list[str]) -> Iterator[list[Any]]:
    """Yield the places of a setting's path in some values, with keys for the placeholders."""
    first, *rest = path
    name = first.removesuffix("[]")
    if name.isupper():
        keys: list[Any] = list(value) if isinstance(value, dict) else []
    else:
        keys = [name]
    for key in keys:
        inner = value.get(key, {}) if isinstance(value, dict) else {}
        if rest and not isinstance(inner, dict | list):
            continue  # another form: `workers: 2` has no `workers.min`
        if first.endswith("[]"):
            for index, entry in enumerate(inner or []):
                yield from ([key, index, *place] for place in _places(entry, rest))
        elif rest:
            yield from ([key, *place] for place in _places(inner, rest))
        else:
            yield [key]


def _get(values: Any, place: list[Any]) -> Any:
    for part in place:
        try:
            values = values[part]
        except (KeyError, TypeError):
            return MISSING
    return values


def _set(values: Any, place: list[Any], value: Any) -> None:
    *above, last = place
    for part in above:
        if isinstance(values, dict) and values.get(part) is None:
            values[part] = {}
        values = values[part]
    if value is MISSING:
        values.pop(last, None)
    else:
        values[last] = value


def fleets() -> dict[str, Fleet]:
    """Return the environments of docs/edits.yaml."""
    logging.disable(logging.CRITICAL)  # Pulumi logs the warnings of every run
    values = yaml.safe_load(ENVIRONMENTS.read_text(encoding="utf-8"))
    return {name: Fleet.of(environment) for name, environment in values.items()}


def settings() -> list[Setting]:
    """Return the settings whose edits are looked at."""
    return [
        setting
        for setting in with_settings_inside(root_settings(schema())[0])
        if setting.path != "environment"
        and is_edited(setting)
        and setting.path not in _ELSEWHERE
        and not setting.path.startswith(SAME_AS_ENGINEERS)
        and OF_GROUP not in setting.path
    ]


def main(prefixes: list[str]) -> int:
    """Write cli/verbs/explain/effects.json, for all settings or some prefixes; the exit status.

    What was found before Ctrl-C is written; the other settings keep their effects.
    """
    found: dict[str, str | None] = json.loads(EFFECTS.read_text(encoding="utf-8"))["settings"]
    looked_at = settings()
    try:
        with running() as plugin:
            environments = fleets()
            for setting in looked_at:
                if not prefixes or setting.path.startswith(tuple(prefixes)):
                    found[setting.path] = effect_of(setting, environments, plugin)
    finally:
        effects = {setting.path: found.get(setting.path) for setting in looked_at} | _ELSEWHERE
        document = {"effects": PHRASES, "settings": effects}
        EFFECTS.write_text(
            json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
        )
    missing = [path for path, effect in effects.items() if effect is None]
    for path in missing:
        sys.stderr.write(f"error: no environment of {ENVIRONMENTS.name} can have another {path}\n")
    return 2 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Plan that the engine's events describe: what is done to which resource, and why. Pure."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from berth.components.core.errors import BerthError
from berth.components.core.plain_secrets import SECRET
from berth.components.plan.paths import LATER, MISSING, differing, revealed, value_at

Event = Mapping[str, Any]
"""Event of the engine, as `pulumi up --json` prints it (sdk/go/common/apitype/events.go)."""

BERTH = "berth:index:Berth"
"""Pulumi's type of a berth, which has the berth's name and is the parent of all of its objects."""

BY_BERTH = "BERTH_COMMAND"
"""Variable of the runs of the engine that a command of berth begins. The command itself says what
they do, and shows no debug messages: their program needs neither warn of losses nor send any."""

STACK = "pulumi:pulumi:Stack"
"""Pulumi's type of a stack, which has the stack's outputs."""

Operation = Literal["same", "create", "update", "replace", "delete"]
ChangeKind = Literal["add", "update", "delete"]

_PLAIN: dict[str, Operation] = {operation: operation for operation in get_args(Operation)}
_PLAIN |= {"import": "create", "import-replacement": "replace"}
# Reads change nothing; the steps of a refresh are drift.
_NO_CHANGE = {
    "read",
    "read-replacement",
    "refresh",
    "discard",
    "discard-replaced",
    "remove-pending-replace",
}
_OF_REPLACEMENT: dict[str, Operation] = {
    "delete-replaced": "delete",
    "create-replacement": "create",
}
"""Parts of a replacement; alone, they end one that a killed update began."""
_KINDS: dict[str, ChangeKind] = {
    "add": "add",
    "add-replace": "add",
    "update": "update",
    "update-replace": "update",
    "delete": "delete",
    "delete-replace": "delete",
}
"""Kinds of changes by the engine's names (pulumi, sdk/go/common/apitype/events.go)."""
_OF_PULUMI = ("pulumi:providers:", "pulumi:pulumi:")
_OF_BRIDGE = re.compile(r"(effectiveLabels|pulumiLabels)\b|(.*\.)?__")
"""Paths of a provider's own fields, which no program sets: all labels that a resource of Google
then has, and fields that the bridge keeps in the state, such as `__meta`."""
_ELEMENT = re.compile(r"\[\d+\]$")


@dataclass(frozen=True)
class ResourceState:
    """Resource before or after a step; secrets of inputs are masked, `parent` is a URN.

    A resource that is `retained` stays when it goes from the stack.
    """

    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]
    parent: str
    retained: bool = False


@dataclass(frozen=True)
class Property:
    """Property that changes, at a path as the engine writes it; None is no value."""

    path: str
    kind: ChangeKind
    old: Any
    new: Any
    forces_replacement: bool = False


@dataclass(frozen=True)
class Step:
    """Step of a plan: what the engine does to one resource."""

    operation: Operation
    urn: str
    type: str
    """Pulumi's type, without the types of its parents."""
    name: str
    """Last part of the URN."""
    custom: bool
    """The resource exists outside of Pulumi; else it is a component, which only groups."""
    old: ResourceState | None
    new: ResourceState | None
    properties: Sequence[Property] = ()
    deleted_first: bool = False
    """A replacement deletes the old resource before it creates the new one."""

    @property
    def before(self) -> Mapping[str, Any]:
        """Inputs before; empty for a new resource."""
        return self.old.inputs if self.old else {}

    @property
    def after(self) -> Mapping[str, Any]:
        """Inputs afterward; empty for a deleted resource."""
        return self.new.inputs if self.new else {}


@dataclass(frozen=True)
class Plan:
    """Plan of the engine: a step for each resource, unchanged ones included, and drift."""

    steps: Sequence[Step]
    drift: Sequence[Step] = ()
    warnings: Sequence[str] = ()

    @property
    def changes(self) -> list[Step]:
        """Steps that change something outside of Pulumi: no components, no providers."""
        return [step for step in self.steps if step.operation != "same" and is_thing(step)]

    @property
    def unchanged(self) -> int:
        """Number of resources outside of Pulumi that stay as they are."""
        return sum(step.operation == "same" and is_thing(step) for step in self.steps)


def is_thing(step: Step) -> bool:
    """Return whether a resource exists outside of Pulumi."""
    return step.custom and not step.type.startswith(_OF_PULUMI)


def is_of_thing(step: Event) -> bool:
    """Return whether the engine's step is about a resource that exists outside of Pulumi."""
    return _is_custom(step) and not step["type"].startswith(_OF_PULUMI)


def _is_custom(step: Event) -> bool:
    return bool((step.get("new") or step.get("old") or {}).get("custom"))


def plan_of(events: Iterable[Event]) -> Plan:
    """Return the plan that the events of the engine's preview describe.

    Raises:
        BerthError: an event has an operation that is not known here.
    """
    by_urn: dict[str, list[Event]] = {}
    drift: list[Step] = []
    warnings: list[str] = []
    for event in events:
        if "resourcePreEvent" in event:
            step = event["resourcePreEvent"]["metadata"]
            operation = step["op"]
            if operation not in _NO_CHANGE | {*_PLAIN, *_OF_REPLACEMENT}:
                raise BerthError(
                    f"the engine plans {operation!r}, which this version of berth does not know;"
                    " update it"
                )
            if operation not in _NO_CHANGE:
                by_urn.setdefault(step["urn"], []).append(step)
        elif "resOutputsEvent" in event:
            step = event["resOutputsEvent"]["metadata"]
            drifted = _drifted(step) if step["op"] == "refresh" else None
            if drifted is not None and is_thing(drifted):
                drift.append(drifted)
        elif text := _warning(event):
            warnings.append(text)
    steps = [_step(steps) for steps in by_urn.values()]
    return Plan(steps, drift, list(dict.fromkeys(warnings)))


def _warning(event: Event) -> str:
    diagnostic = event.get("diagnosticEvent")
    if diagnostic and diagnostic["severity"] == "warning":
        return str(diagnostic["message"]).strip()
    policy = event.get("policyEvent")
    if policy and policy.get("message"):
        return f"policy {policy['policyName']}: {policy['message'].strip()}"
    return ""


def _step(steps: Sequence[Event]) -> Step:
    """Return one step for a resource.

    The engine reports a replacement as three steps; the one named `replace` has the reasons.
    """
    operations = [step["op"] for step in steps]
    deleted_first = False
    if "replace" in operations:
        main = steps[operations.index("replace")]
        operation: Operation = "replace"
        deleted_first = "delete-replaced" in operations[: operations.index("replace")]
    else:
        main = steps[-1]
        operation = {**_OF_REPLACEMENT, **_PLAIN}[main["op"]]
    step = _of_event(main, operation)
    if operation in ("update", "replace"):
        step = replace(step, properties=_properties(main, step.old, step.new))
    return replace(step, deleted_first=deleted_first)


def _drifted(step: Event) -> Step | None:
    """Return the drift that a refresh found in one resource; None for no drift."""
    old = _state(step.get("old"))
    new = _state(step.get("new"))
    if old is not None and new is None:
        return _of_event(step, "delete")
    if not step.get("detailedDiff") and not step.get("diffs"):
        return None
    if all(map(_OF_BRIDGE.match, step.get("detailedDiff") or [""])):
        return None
    return replace(_of_event(step, "update"), properties=_properties(step, old, new, outputs=True))


def _of_event(step: Event, operation: Operation) -> Step:
    """Return the step of an event, without properties."""
    return Step(
        operation=operation,
        urn=step["urn"],
        type=step["type"],
        name=step["urn"].rsplit("::", 1)[-1],
        custom=_is_custom(step),
        old=_state(step.get("old")),
        new=None if operation == "delete" else _state(step.get("new")),
    )


def _state(state: Event | None) -> ResourceState | None:
    if state is None:
        return None
    inputs = revealed(state.get("inputs") or {})
    outputs = revealed(state.get("outputs") or {})
    if state["type"].endswith(":Secret"):
        inputs = _without_data(inputs)
        outputs = _without_data(outputs)
    return ResourceState(
        inputs, outputs, state.get("parent") or "", bool(state.get("retainOnDelete"))
    )


def _without_data(values: Mapping[str, Any]) -> dict[str, Any]:
    """Mask the values of a Kubernetes Secret, which the engine may not know to be secret."""
    hidden = {
        key: dict.fromkeys(values[key], SECRET) for key in ("data", "stringData") if values.get(key)
    }
    return {**values, **hidden}


def _properties(
    step: Event, old: ResourceState | None, new: ResourceState | None, *, outputs: bool = False
) -> list[Property]:
    """Return the properties that a step changes, those that force a replacement first.

    Args:
        step: the engine's step.
        old: the resource before; None for a new one.
        new: the resource afterward; None for a deleted one.
        outputs: whether outputs have changed, as in a refresh, rather than inputs.
    """
    before = old or ResourceState({}, {}, "")
    after = new or ResourceState({}, {}, "")
    kinds = _kinds_of_changes(step, before, after)
    shown = {path: kind for path, kind in kinds.items() if not _OF_BRIDGE.match(path)}
    forcing = _forcing(step, kinds, shown)
    properties = []
    for path, word in shown.items():
        kind = _KINDS.get(word, "update")
        # Where an element of a list comes or goes, the other list may have another one there.
        comes = kind == "add" and _ELEMENT.search(path)
        goes = kind == "delete" and _ELEMENT.search(path)
        old_value = None if comes else _value(before, path, outputs=outputs)
        new_value = None if goes else _value(after, path, outputs=outputs)
        properties += _property(path, kind, [old_value, new_value], forces=path in forcing)
    return sorted(properties, key=lambda changed: not changed.forces_replacement)


def _forcing(step: Event, kinds: Mapping[str, str], shown: Collection[str]) -> Collection[str]:
    """Return the paths that force a replacement, of those that are shown.

    The bridge's own field is the reason where the provider's code, and not its schema, asks for a
    replacement: a subnetwork whose range does not grow. Then all others force it.
    """
    forcing = {path for path, kind in kinds.items() if kind.endswith("-replace")}
    forcing = forcing or {*(step.get("keys") or ())}
    return shown if forcing and not forcing.intersection(shown) else forcing


def _kinds_of_changes(step: Event, before: ResourceState, after: ResourceState) -> dict[str, str]:
    """Return the engine's kind of the change at each path that a step changes."""
    detailed = step.get("detailedDiff") or {}
    kinds = {path: str(difference["diffKind"]) for path, difference in detailed.items()}
    if not kinds:
        # A provider without detailed differences: the inputs show them.
        kinds = dict.fromkeys(differing(before.inputs, after.inputs), "update")
    if not any(kind.endswith("-replace") for kind in kinds.values()):
        for path in step.get("keys") or ():
            kinds.setdefault(path, "update")
    return kinds


def _property(
    path: str, kind: ChangeKind, values: Sequence[Any], *, forces: bool
) -> list[Property]:
    """Return a changed property; of a mapping before and after, the parts that differ.

    A value that is the same before and after changes nothing, whatever the provider says, and so
    does nothing that comes.
    """
    old, new = values
    if kind == "add" and not forces and old is None and new is None:
        return []
    if not forces and old == new and old is not None and not _hidden(old):
        return []
    if not forces and isinstance(old, Mapping) and isinstance(new, Mapping):
        return [replace(part, path=_joined(path, part.path)) for part in differences(old, new)]
    return [Property(path, kind, old, new, forces)]


def _joined(path: str, part: str) -> str:
    return f"{path}{part}" if part.startswith("[") else f"{path}.{part}"


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Property]:
    """Return the parts in which two mappings differ."""
    paths = differing(old, new)
    return [_difference(path, value_at(old, path), value_at(new, path)) for path in paths]


def _difference(path: str, before: Any, after: Any) -> Property:
    if before is MISSING:
        return Property(path, "add", None, after)
    if after is MISSING:
        return Property(path, "delete", before, None)
    return Property(path, "update", before, after)


def _hidden(value: Any) -> bool:
    """Return whether a value may differ from one that looks the same."""
    if isinstance(value, Mapping):
        return any(_hidden(inner) for inner in value.values())
    if isinstance(value, list):
        return any(_hidden(inner) for inner in value)
    return value in (SECRET, LATER)


def _value(state: ResourceState, path: str, *, outputs: bool) -> Any:
    """Return the value of the inputs, else of the outputs; for a refresh the other way round."""
    sources = (state.outputs, state.inputs) if outputs else (state.inputs, state.outputs)
    for source in sources:
        value = value_at(source, path)
        if value is not MISSING:
            return value
    return None

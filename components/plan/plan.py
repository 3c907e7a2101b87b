"""Plan that the engine's events describe: what is done to which resource, and why. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from berth.components.core.errors import BerthError
from berth.components.plan.paths import LATER, MISSING, SECRET, differing, revealed, value_at

Event = Mapping[str, Any]
"""Event of the engine, as `pulumi up --json` prints it (sdk/go/common/apitype/events.go)."""

BERTH = "berth:index:Berth"
"""Pulumi's type of a berth, which has the berth's name and is the parent of all of its objects."""

Operation = Literal["same", "create", "update", "replace", "delete"]
Change = Literal["add", "update", "delete"]

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
_OF_PULUMI = ("pulumi:providers:", "pulumi:pulumi:")


@dataclass(frozen=True)
class State:
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
    kind: Change
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
    old: State | None
    new: State | None
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
    drift, warnings = [], []
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
            if step["op"] == "refresh" and (drifted := _drifted(step)):
                drift.append(drifted)
        elif text := _warning(event):
            warnings.append(text)
    steps = [_step(steps) for steps in by_urn.values()]
    return Plan(steps, [step for step in drift if is_thing(step)], list(dict.fromkeys(warnings)))


def _warning(event: Event) -> str:
    diagnostic, policy = event.get("diagnosticEvent"), event.get("policyEvent")
    if diagnostic and diagnostic["severity"] == "warning":
        return str(diagnostic["message"]).strip()
    return (
        f"policy {policy['policyName']}: {policy['message'].strip()}"
        if policy and policy.get("message")
        else ""
    )


def _step(steps: Sequence[Event]) -> Step:
    """Return one step for a resource.

    The engine reports a replacement as three steps; the one named `replace` has the reasons.
    """
    operations = [step["op"] for step in steps]
    if "replace" in operations:
        main = steps[operations.index("replace")]
        operation: Operation = "replace"
        first = "delete-replaced" in operations[: operations.index("replace")]
    else:
        main, first = steps[-1], False
        operation = {**_OF_REPLACEMENT, **_PLAIN}[main["op"]]
    found = _of_event(main, operation)
    properties = (
        _properties(main, found.old, found.new) if operation in ("update", "replace") else ()
    )
    return replace(found, properties=properties, deleted_first=first)


def _drifted(step: Event) -> Step | None:
    """Return the drift that a refresh found in one resource; None for no drift."""
    old, new = _state(step.get("old")), _state(step.get("new"))
    gone = old is not None and new is None
    if not gone and not step.get("detailedDiff") and not step.get("diffs"):
        return None
    if gone:
        return _of_event(step, "delete")
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


def _state(state: Event | None) -> State | None:
    if state is None:
        return None
    inputs, outputs = revealed(state.get("inputs") or {}), revealed(state.get("outputs") or {})
    if state["type"].endswith(":Secret"):
        inputs, outputs = _without_data(inputs), _without_data(outputs)
    return State(inputs, outputs, state.get("parent") or "", bool(state.get("retainOnDelete")))


def _without_data(values: Mapping[str, Any]) -> dict[str, Any]:
    """Mask the values of a Kubernetes Secret, which the engine may not know to be secret."""
    hidden = {
        key: dict.fromkeys(values[key], SECRET) for key in ("data", "stringData") if values.get(key)
    }
    return {**values, **hidden}


def _properties(
    step: Event, old: State | None, new: State | None, *, outputs: bool = False
) -> list[Property]:
    before, after = (old or State({}, {}, "")), (new or State({}, {}, ""))
    reasons = list(step.get("keys") or ())
    kinds: dict[str, Any] = {
        path: diff["diffKind"] for path, diff in (step.get("detailedDiff") or {}).items()
    }
    if not kinds:
        # A provider without detailed differences: the inputs show them.
        kinds = dict.fromkeys(differing(before.inputs, after.inputs), "update")
    forced = {path for path, kind in kinds.items() if kind.endswith("-replace")}
    if not forced:
        forced = set(reasons)
        kinds |= {path: "update" for path in reasons if path not in kinds}
    found = []
    for path, kind in kinds.items():
        values = [_value(before, path, outputs=outputs), _value(after, path, outputs=outputs)]
        found += _property(path, kind.removesuffix("-replace"), values, forces=path in forced)
    return sorted(found, key=lambda changed: not changed.forces_replacement)


def _property(path: str, kind: Change, values: Sequence[Any], *, forces: bool) -> list[Property]:
    """Return a changed property; of a mapping before and after, the parts that differ.

    A value that is the same before and after changes nothing, whatever the provider says.
    """
    old, new = values
    if not forces and old == new and old is not None and not _hidden(old):
        return []
    if not forces and isinstance(old, Mapping) and isinstance(new, Mapping):
        parts = differences(old, new)
        paths = (
            f"{path}{part.path}" if part.path.startswith("[") else f"{path}.{part.path}"
            for part in parts
        )
        return [replace(part, path=path) for part, path in zip(parts, paths, strict=True)]
    return [Property(path, kind, old, new, forces)]


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Property]:
    """Return the parts in which two mappings differ."""
    parts = [(part, value_at(old, part), value_at(new, part)) for part in differing(old, new)]
    return [
        Property(
            part,
            "add" if before is MISSING else "delete" if after is MISSING else "update",
            None if before is MISSING else before,
            None if after is MISSING else after,
        )
        for part, before, after in parts
    ]


def _hidden(value: Any) -> bool:
    """Return whether a value may differ from one that looks the same."""
    if isinstance(value, Mapping):
        return any(_hidden(inner) for inner in value.values())
    if isinstance(value, list):
        return any(_hidden(inner) for inner in value)
    return value in (SECRET, LATER)


def _value(state: State, path: str, *, outputs: bool) -> Any:
    """Return the value of the inputs, else of the outputs; for a refresh the other way round."""
    sources = (state.outputs, state.inputs) if outputs else (state.inputs, state.outputs)
    return next(
        (found for source in sources if (found := value_at(source, path)) is not MISSING), None
    )


_PENDING = re.compile(
    r"^\s*\* (?P<urn>urn:pulumi:\S+), interrupted while (?P<doing>\w+)$", re.MULTILINE
)


def pending_creates(warning: str) -> list[str]:
    """Return the URNs of resources whose creation is pending, from the engine's warning of them.

    The text is that of pulumi, pkg/resource/deploy/deployment_executor.go. Every update repeats it.
    """
    return [found["urn"] for found in _PENDING.finditer(warning) if found["doing"] == "creating"]


def remedy_of(warning: str, stack: str) -> str:
    """Return how to end pending creations; "" where a warning of the engine names none.

    A plain `pulumi refresh` leaves pending creations in the state.
    """
    if not (urns := pending_creates(warning)):
        return ""
    named = ", ".join(urn.rpartition("::")[2] for urn in urns)
    return (
        f"an update was killed while it created {named}, which may exist or not; look there, then"
        f" clear what is pending in the state: pulumi refresh -s {stack} --clear-pending-creates"
        " --yes"
    )

"""Verdicts of Google's provider on edits, recorded, and berth's and the lab's beside them.

`verdicts.json` has the resources that are edited, and one edit a line. The provider's word is its
detailed difference; what an update does to nodes follows from the requests that it sends.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from berth.components.gke.cluster_arguments import IGNORED_CHANGES as IGNORED_OF_CLUSTER
from berth.components.gke.field_rules import field_problems
from berth.components.gke.node_pool_arguments import IGNORED_CHANGES as IGNORED_OF_POOL
from berth.components.gke.provider_fields import CLUSTER, NODE_POOL
from berth.components.plan.effect import Level
from berth.components.plan.paths import MISSING
from berth.components.plan.plan import Event, plan_of
from berth.lab.plugins.gcp.provider import TYPES
from berth.stacks.preview.report import PreviewContext, report_of
from tests.provider.edits import Changes, with_changes
from tests.provider.engine import Verdict
from tests.provider.plugin import Properties
from tests.provider.rest import Request

FILE = Path(__file__).with_name("verdicts.json")
_IGNORED = {CLUSTER: IGNORED_OF_CLUSTER, NODE_POOL: IGNORED_OF_POOL}

Outcome = Literal["refused", "replace", "update", "nothing"]
Nodes = Literal["", "stay", "recreated", "deleted", "unknown"]
"""Fate of nodes; "" where the edit sends nothing, or replaces the resource."""

RECREATING = frozenset(
    "machineType diskType diskSizeGb imageType nodeVersion workloadMetadataConfig kubeletConfig"
    " linuxNodeConfig gcfsConfig gvnic fastSocket confidentialNodes containerdConfig loggingConfig"
    " storagePools desiredImageType desiredShieldedNodes desiredIntraNodeVisibilityConfig".split()
)
"""Fields of requests for which GKE recreates nodes (https://docs.cloud.google.com:
kubernetes-engine/docs/concepts/managing-clusters, "Manual changes that recreate the nodes")."""
STAYING = frozenset(
    "tags resourceLabels upgradeSettings management resourceManagerTags bootDisk"
    " nodePoolId name nodeDrainConfig".split()
)
"""Fields of requests for node pools for which GKE leaves nodes, and the pods on them, as they are.
Labels and taints are not of them: drivers and taints may end pods. The boot disk is sent with each
change of the machine type; what is in it decides."""


@dataclass(frozen=True)
class Recorded:
    """Verdict on one edit.

    Attributes:
        of: name of the resource in `resources`.
        what: words for the edit.
        new: the changes of its inputs.
        real: kinds of the provider's differences by its paths; `refused` where it refuses.
        reasons: properties that force a replacement, by the provider's word.
        requests: requests of the update: method, end of the path, what is sent of it.
        nodes: what becomes of nodes.
        counts: number of nodes of the pool before the update and after each request.
        fails: why the update fails, on an API that refuses nothing.
        panic: whether the provider panics.
    """

    of: str
    what: str
    new: Changes
    outcome: Outcome
    real: Mapping[str, str] = field(default_factory=dict)
    reasons: Sequence[str] = ()
    requests: Sequence[str] = ()
    nodes: Nodes = ""
    counts: Sequence[int] = ()
    fails: str = ""
    panic: bool = False

    @property
    def name(self) -> str:
        """Name of the edit among all."""
        return f"{self.of}: {self.what}"


@dataclass(frozen=True)
class Base:
    """Resource that is edited: `cluster` names that of a pool in the file."""

    type: str
    name: str
    inputs: Properties
    outputs: Properties
    cluster: str = ""


def recorded_of(of: str, what: str, new: Changes, verdict: Verdict) -> Recorded:
    """Return a verdict as it is recorded."""
    difference = verdict.difference
    if verdict.panic:
        return Recorded(of, what, new, "refused", panic=True)
    if difference is None:
        return Recorded(of, what, new, "refused")
    real = {path: kind.name.lower().replace("_", "-") for path, kind in difference.kinds.items()}
    if difference.replaces:
        return Recorded(of, what, new, "replace", real, difference.reasons)
    states = list(_states(verdict))
    counts = [sum(state.values()) for state in states]
    return Recorded(
        of=of,
        what=what,
        new=new,
        outcome="update" if real else "nothing",
        real=real,
        requests=[_in_short(request) for request in verdict.requests],
        nodes=_fate(verdict.requests, states),
        counts=counts if len(set(counts)) > 1 else (),
        fails=" ".join(verdict.problems)[:200],
    )


def _in_short(request: Request) -> str:
    """Return a request's method, the end of its path and the names of what is sent."""
    end = request.path.rpartition("/")[2]
    kind = request.path.split("/")[-2]
    sent = _sent(request)
    if ":setSize" in end:
        return f"{request.method} {kind}/{end} {sent['nodeCount']}"
    zones = sent.get("locations") or sent.get("desiredLocations")
    names = sorted(key for key in sent if key not in ("name", "nodePoolId", "bootDisk"))
    return f"{request.method} {kind}/{end} {' '.join(names)}" + (f" {zones}" if zones else "")


def _sent(request: Request) -> Mapping[str, Any]:
    body = request.body or {}
    return body.get("update") or body.get("serviceAccount") or body


def _states(verdict: Verdict) -> Iterator[dict[str, int]]:
    """Yield a pool's nodes by zone, before an update and after each of its requests.

    A pool of the autoscaler counts with one node in each zone.
    """
    old = verdict.before
    if old is None or old.type != NODE_POOL:
        return
    size = 1 if "autoscaling" in old.inputs else int(old.outputs.get("nodeCount") or 0)
    zones = old.outputs.get("nodeLocations") or [old.outputs["location"]]
    yield dict.fromkeys(zones, size)
    for request in verdict.requests:
        size = _sent(request).get("nodeCount", size)
        zones = _sent(request).get("locations", zones)
        yield dict.fromkeys(zones, size)


def _fate(requests: Sequence[Request], states: Sequence[Mapping[str, int]]) -> Nodes:
    """Return what becomes of nodes by the requests of an update."""
    sent: set[str] = set()
    for request in requests:
        if "/clusters/" in request.path:
            sent |= _sent(request).keys()
    for before, after in pairwise(states):
        if any(after.get(zone, 0) < size for zone, size in before.items()):
            return "deleted"
    if sent & RECREATING:
        return "recreated"
    of_pools = any("/nodePools/" in request.path for request in requests)
    unknown = sent - STAYING - {"nodeCount", "locations"} if of_pools else set()
    return "unknown" if unknown else "stay" if requests else ""


@dataclass(frozen=True)
class Word:
    """Word of the lab on an edit, with the level of the effect that berth sees in it."""

    outcome: Outcome
    level: Level = Level.HARMLESS
    paths: Sequence[str] = ()


def lab_word(base: Base, bases: Mapping[str, Base], edit: Recorded) -> Word:
    """Return what the lab's plugin says of an edit."""
    new = with_changes(base.inputs, edit.new)
    if field_problems(new, TYPES[base.type].facts):
        return Word("refused")
    kinds = TYPES[base.type].differences(base.inputs, new, _IGNORED.get(base.type, ()))
    real = {path: kind.name.lower().replace("_", "-") for path, kind in kinds.items()}
    replaces = any(kind.replaces for kind in kinds.values())
    outcome: Outcome = "replace" if replaces else "update" if real else "nothing"
    level = _level(base, new, real, replaces=replaces, cluster=bases.get(base.cluster))
    return Word(outcome, level, sorted(real))


def berth_word(base: Base, bases: Mapping[str, Base], edit: Recorded) -> Level:
    """Return what `berth preview` says where the engine shows the provider's difference."""
    new = with_changes(base.inputs, edit.new)
    replaces = edit.outcome == "replace"
    cluster = bases.get(base.cluster)
    return _level(base, new, edit.real, replaces=replaces, cluster=cluster, reasons=edit.reasons)


def _level(
    base: Base,
    new: Properties,
    kinds: Mapping[str, str],
    *,
    replaces: bool,
    cluster: Base | None = None,
    reasons: Sequence[str] = (),
) -> Level:
    """Return the level of the effect of a difference, by the engine's events."""
    if not kinds and not replaces:
        return Level.HARMLESS
    events = [] if cluster is None else [_event("same", cluster, cluster.inputs)]
    if replaces:
        events.append(_event("delete-replaced", base, new))
    operation = "replace" if replaces else "update"
    events.append(_event(operation, base, new, kinds=kinds, reasons=reasons))
    changes = report_of(plan_of(events), PreviewContext("stack", "environment")).changes
    return max((change.level for change in changes), default=Level.HARMLESS)


def _event(
    operation: str,
    base: Base,
    new: Properties,
    *,
    kinds: Mapping[str, str] | None = None,
    reasons: Sequence[str] = (),
) -> Event:
    """Return an event of the engine about a resource."""
    urn = f"urn:pulumi:stack::berth::{base.type}::{base.name}"
    step = {
        "op": operation,
        "urn": urn,
        "type": base.type,
        "old": {"type": base.type, "custom": True, "inputs": base.inputs, "outputs": base.outputs},
        "new": {"type": base.type, "custom": True, "inputs": new, "outputs": base.outputs},
        "keys": list(reasons),
        "detailedDiff": {
            path: {"diffKind": kind, "inputDiff": False} for path, kind in (kinds or {}).items()
        },
    }
    return {"resourcePreEvent": {"metadata": step}}


@dataclass(frozen=True)
class Differing:
    """Edits on which words differ, by their names, with both words.

    Attributes:
        lab: the lab's plugin says something else than the provider.
        less: berth says less than the provider does, by the provider's differences or the lab's.
        alarms: berth says that work ends, and nothing of the kind happens.
    """

    lab: dict[str, str] = field(default_factory=dict)
    less: dict[str, str] = field(default_factory=dict)
    alarms: dict[str, str] = field(default_factory=dict)


def words_that_differ(bases: Mapping[str, Base], edits: Sequence[Recorded]) -> Differing:
    """Return the edits on which the provider, the lab and berth differ."""
    differing = Differing()
    for edit in edits:
        if edit.panic:
            continue
        base = bases[edit.of]
        lab = lab_word(base, bases, edit)
        berth = berth_word(base, bases, edit)
        if lab.outcome != edit.outcome:
            differing.lab[edit.name] = f"{lab.outcome} {lab.paths}; really {edit.outcome}"
        needed = _least_level(base, edit)
        if berth < needed:
            differing.less[edit.name] = f"{berth.word}; really {needed.word}: {edit.requests}"
        elif lab.outcome == edit.outcome and lab.level < needed:
            differing.less[edit.name] = f"{lab.level.word} by the lab; really {needed.word}"
        if berth > _most_level(edit):
            differing.alarms[edit.name] = f"{berth.word}; really {edit.requests or edit.outcome}"
    return differing


def _least_level(base: Base, edit: Recorded) -> Level:
    """Return the level that berth has to name at least."""
    if edit.outcome == "replace":
        return Level.DESTROYS if base.type in (CLUSTER, NODE_POOL) else Level.HARMLESS
    return Level.DISTURBS if edit.nodes in ("deleted", "recreated") else Level.HARMLESS


def _most_level(edit: Recorded) -> Level:
    """Return the level that berth may name at most."""
    if edit.outcome == "replace" or edit.nodes in ("deleted", "recreated", "unknown"):
        return Level.DESTROYS
    return Level.DISTURBS


def write(bases: Mapping[str, Base], edits: Sequence[Recorded]) -> None:
    """Write the file: a line for each resource and for each edit."""
    resources = ",\n".join(f"{json.dumps(name)}: {line_of(base)}" for name, base in bases.items())
    lines = ",\n".join(line_of(edit) for edit in edits)
    text = f'{{"resources": {{\n{resources}\n}},\n"edits": [\n{lines}\n]}}\n'
    FILE.write_text(text, encoding="utf-8")


def line_of(row: Base | Recorded) -> str:
    """Return a line of the file, without empty values."""
    given = {key: value for key, value in vars(row).items() if value not in ("", (), [], {}, False)}
    if isinstance(row, Recorded):
        given["new"] = [
            [list(place)] if value is MISSING else [list(place), value] for place, value in row.new
        ]
    return json.dumps(given, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def read() -> tuple[dict[str, Base], list[Recorded]]:
    """Return the recorded resources and edits."""
    content = json.loads(FILE.read_text(encoding="utf-8"))
    bases = {
        name: Base(**{"inputs": {}, "outputs": {}, **row})
        for name, row in content["resources"].items()
    }
    edits = []
    for row in content["edits"]:
        changes = [(tuple(place), rest[0] if rest else MISSING) for place, *rest in row["new"]]
        edits.append(Recorded(**{**row, "new": changes}))
    return bases, edits

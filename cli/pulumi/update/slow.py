"""Steps of an update that take long: what is being done to which resource, and since when. Pure."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from berth.components.plan.fleet import NODE_POOL
from berth.components.plan.plan import Event
from berth.stacks.preview.report import ResourceChange

FIRST_SECONDS = 120.0
"""Time after which a step takes long. It is said again each time that it has doubled."""

_MINUTE = 60

_DOING = {
    "create": "creating",
    "create-replacement": "creating",
    "update": "changing",
    "delete": "deleting",
    "delete-replaced": "deleting",
}
"""Steps that ask something of a resource's owner, in words; the engine has others of its own."""

_NO_OPERATION = (
    "what GKE does: gcloud container operations list --filter=status=RUNNING; if nothing with this"
    " pool, it refuses the pool for now, such as for a full reservation, and Google's provider asks"
    " again without a word"
)
"""Meaning of a long silence about a node pool (`berth docs troubleshooting`)."""


@dataclass
class _RunningStep:
    """Step that has begun and not ended."""

    what: str
    """Action on the resource, in words."""
    hint: str
    """Meaning of a long silence; empty where it has none of its own."""
    began: float
    due: float = FIRST_SECONDS
    """Seconds after its beginning at which the step is said next."""


class SlowSteps:
    """Steps that have begun and not ended, kept up to date by the engine's events."""

    def __init__(self, clock: Callable[[], float], changes: Iterable[ResourceChange]) -> None:
        self._clock = clock
        self._changes = {change.urn: change for change in changes}
        self._running: dict[str, _RunningStep] = {}

    def see(self, event: Event) -> None:
        """Take an event in."""
        if begun := event.get("resourcePreEvent"):
            step = begun["metadata"]
            doing = _DOING.get(step["op"])
            change = self._changes.get(step["urn"])
            if doing and change:
                self._running[step["urn"]] = _RunningStep(
                    f"{_named(change)}: {doing}",
                    _NO_OPERATION if change.type == NODE_POOL else "",
                    self._clock(),
                )
        elif ended := event.get("resOutputsEvent") or event.get("resOpFailedEvent"):
            self._running.pop(ended["metadata"]["urn"], None)

    def due(self) -> list[str]:
        """Return a line for each step that has taken long, or twice as long as when it last was."""
        now = self._clock()
        lines = []
        for step in list(self._running.values()):
            seconds = now - step.began
            if seconds >= step.due:
                step.due = 2 * seconds
                minutes = f"{step.what} for {int(seconds // _MINUTE)} min"
                lines.append(f"{minutes}; {step.hint}" if step.hint else minutes)
        return lines


def _named(change: ResourceChange) -> str:
    """Return a resource with its component: `berth alice: RayCluster alice`."""
    resource = f"{change.resource} {change.name}"
    return resource if resource == change.component else f"{change.component}: {resource}"

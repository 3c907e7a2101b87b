"""Verdicts on a Job that requests a GPU: whether it was scheduled, and how it ended. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from berth.components.cluster.api import Object
from berth.components.cluster.nodes import is_simulated
from berth.components.cluster.pods import why_not_ready
from berth.components.proof.checks import SIMULATED, Check
from berth.components.proof.cuda_vector_add import SUCCESS

_RAN = "cuda-vector-add"


@dataclass(frozen=True)
class Ran:
    """Job as last seen, with its pod, node, warnings, and the end of its log."""

    job: Object | None
    pod: Object | None = None
    node: Object | None = None
    log: str = ""
    log_problem: str = ""
    events: Sequence[Object] = field(default_factory=tuple)
    waited: str = ""
    """How long berth waited for the Job: `5m`."""

    @property
    def last_line(self) -> str:
        """The log's last line that is not blank; empty without one."""
        lines = [line.strip() for line in self.log.splitlines() if line.strip()]
        return lines[-1] if lines else ""


def judge_job(run: Ran, resource: str, success: str = SUCCESS) -> list[Check]:
    """Check whether a Job that requested a resource was scheduled, and whether it added."""
    if run.pod is None or run.node is None:
        return [
            Check("scheduling", "fail", _why_not_scheduled(run)),
            Check(_RAN, "skipped", "it was not scheduled"),
        ]
    node = run.node["metadata"]["name"]
    return [
        Check("scheduling", "pass", f"1 {resource} on {node}"),
        _judge_end(run, run.pod, run.node, success),
    ]


def checks_without_job(reason: str) -> list[Check]:
    """Return the checks of a Job that was not created."""
    return [Check("scheduling", "skipped", reason), Check(_RAN, "skipped", "no Job was made")]


def job_progress(run: Ran) -> str:
    """Return a Job's state, for people who wait for it."""
    ended = ending_of(run.job) if run.job is not None else None
    if ended:
        state, reason = ended
        return "Complete" if state == "Complete" else f"Failed: {reason}"
    if run.pod is None:
        return "waiting for its pod"
    if (run.pod.get("status") or {}).get("phase") == "Succeeded":
        return "its pod has succeeded"
    return why_not_ready(run.pod) or "its container runs"


def ending_of(job: Object) -> tuple[str, str] | None:
    """Return how a Job ended, `Complete` or `Failed`, with the reason; None while it runs."""
    for condition in (job.get("status") or {}).get("conditions") or []:
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
            reason = f"{condition.get('reason', '')}: {condition.get('message', '')}"
            return condition["type"], reason.strip(": ")
    return None


def _judge_end(run: Ran, pod: Object, node: Object, success: str) -> Check:
    ended = ending_of(run.job) if run.job is not None else ("Failed", "the Job is gone")
    if ended is None:
        state = why_not_ready(pod) or "its container runs"
        return Check(_RAN, "fail", f"not ended after {run.waited}: {state}")
    state, reason = ended
    if state == "Failed":
        return Check(_RAN, "fail", _why_failed(run, pod, reason))
    if is_simulated(node):
        return Check(_RAN, "simulated", SIMULATED)
    if success in run.log:
        return Check(_RAN, "pass", f"its log says: {success}")
    end = f"it ends: {run.last_line}" if run.log else run.log_problem or "it is empty"
    return Check(_RAN, "fail", f"the Job is Complete, but its log doesn't say {success!r}: {end}")


def _why_failed(run: Ran, pod: Object, reason: str) -> str:
    """Return the pod's reason, or the Job's, with the end of the log."""
    if pod.get("status", {}).get("phase") == "Failed":
        reason = why_not_ready(pod) or reason
    return f"{reason}; its log ends: {run.last_line}" if run.last_line else reason


def _why_not_scheduled(run: Ran) -> str:
    if run.pod is not None:
        return f"not after {run.waited}: {why_not_ready(run.pod)}"
    if run.job is None:
        return "the Job is gone"
    ended = ending_of(run.job)
    if ended:
        return ": ".join(ended)
    texts = [str(event.get("message") or event.get("reason")) for event in run.events]
    return f"not after {run.waited}: {'; '.join(dict.fromkeys(texts)) or 'the Job has no pod'}"

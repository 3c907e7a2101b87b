"""Failures of Pulumi, in the engine's words and with berth's remedies."""

import re
from collections.abc import Sequence

from berth.cli.pulumi.engine import Outcome
from berth.cli.shell.console import ProblemsError
from berth.components.cluster.conflicts import conflict_advice
from berth.components.core.errors import BadInputError, BerthError
from berth.components.core.nearest import did_you_mean
from berth.components.plan.plan import Event
from berth.stacks.files import stack_file
from berth.stacks.files.locks import Lock, lock_in_error

LOGGED_OUT = "Pulumi is not logged in to a state backend"
LOG_IN = "pulumi login gs://YOUR-STATE-BUCKET"

_LONGEST_ERROR = 2000
SUMS_UP = {"preview failed", "update failed", "destroy failed"}
"""Errors of the engine that only say that there were others."""

# pulumi, pkg/cmd/pulumi/stack/stack.go
_UNKNOWN = re.compile(r"no stack named .*found")
# Words of Go's network library in errors of the backend, of plugins and of downloads.
_NO_CONNECTION = re.compile(
    r"dial tcp|no such host|connection refused|i/o timeout|network is unreachable"
)


class UnknownStackError(BadInputError):
    """The state backend has no such stack."""


def is_logged_out(stderr: str) -> bool:
    """Return whether Pulumi failed because it is not logged in."""
    return (
        "PULUMI_ACCESS_TOKEN" in stderr
        or "not logged in" in stderr.lower()
        or "pulumi login" in stderr
    )


def errors_of(events: Sequence[Event]) -> list[str]:
    """Return the errors that the engine reported, each once, without those that only sum up."""
    errors = [
        event["diagnosticEvent"]["message"].strip().removeprefix("Preview failed: ")
        for event in events
        if event.get("diagnosticEvent", {}).get("severity") == "error"
    ]
    errors += [
        event["policyEvent"]["message"].strip() for event in events if "policyEvent" in event
    ]
    return [error for error in dict.fromkeys(errors) if error and error not in SUMS_UP]


def failure_of(stack: str, outcome: Outcome) -> BerthError:
    """Return the error for a failed command, in the engine's words and with berth's remedy."""
    if _UNKNOWN.search(outcome.stderr):
        return _unknown_stack(stack)
    if not outcome.events and is_logged_out(outcome.stderr):
        return BerthError(f"{LOGGED_OUT}; run: {LOG_IN}, or bring the lab up: make lab")
    errors = errors_of(outcome.events)
    if lock := lock_in_error("\n".join([*errors, outcome.stderr])):
        return lock_error(stack, lock)
    if not errors:
        return _failure_without_errors(outcome)
    if lines := _problems_of_settings(stack, errors):
        return ProblemsError(stack, lines)
    text = "\n".join(errors)
    if all(map(_NO_CONNECTION.search, errors)):
        return BerthError(
            f"Pulumi needs a connection that failed: {text[:_LONGEST_ERROR]}",
            "check the network, and run this again",
        )
    advice: list[str] = []
    for error in errors:
        advice += [line for line in conflict_advice(error, stack) if line not in advice]
    return BerthError(_shortened(text), "; ".join(advice))


def lock_error(stack: str, lock: Lock) -> BerthError:
    """Return the error for a stack that is locked, with the command that is safe."""
    cancel = f"pulumi cancel -s {stack}"
    if lock.is_dead:
        return BerthError(
            f"stack {stack} is locked by an update that was killed: process {lock.pid} of"
            f" {lock.user} of {lock.since} no longer runs on this machine",
            f"{cancel}, then the same command again: it goes on where that update ended",
        )
    place = "this machine" if lock.is_here else lock.host
    where = f"process {lock.pid} of {lock.user} on {place}, since {lock.since}"
    remedy = "wait for its end"
    if not lock.is_here:
        remedy += f"; if it runs no more: {cancel}"
    return BerthError(f"stack {stack} is locked by another update: {where}", remedy)


def _unknown_stack(stack: str) -> UnknownStackError:
    if stack_file.stack_path(stack).exists():
        return UnknownStackError(
            f"stack {stack} is not in Pulumi's backend yet; run: pulumi stack init {stack}"
        )
    similar = did_you_mean(stack, stack_file.stack_names())
    return UnknownStackError(
        f"there is no stack {stack!r}, neither in Pulumi's backend nor in stacks/{similar}",
        "correct the name, or run berth in the folder of your Pulumi project",
    )


def _problems_of_settings(stack: str, errors: Sequence[str]) -> list[str]:
    """Return the lines with which the program refuses settings (stacks/load/stack.py)."""
    for text in errors:
        first, *rest = text.splitlines()
        if first.startswith(f"stack {stack}: ") and "in its settings; nothing was changed" in first:
            return rest
    return []


def _failure_without_errors(outcome: Outcome) -> BerthError:
    """Return the error of a command of which only standard error and the exit code speak."""
    words = outcome.stderr.strip().removeprefix("error: ")
    no_connection = [line for line in outcome.stderr.splitlines() if _NO_CONNECTION.search(line)]
    if no_connection and "plugin" in outcome.stderr:
        return BerthError(
            f"Pulumi cannot download a plugin: {words[:_LONGEST_ERROR]}",
            "check the network; pulumi plugin ls lists the installed plugins",
        )
    if no_connection:
        line = no_connection[0].strip().removeprefix("error: ")
        return BerthError(
            f"Pulumi cannot reach its state backend: {line[:_LONGEST_ERROR]}",
            "check the network; pulumi whoami --verbose names the backend",
        )
    if words:
        return BerthError(_shortened(words))
    if outcome.code < 0:
        return BerthError(
            f"pulumi was killed by signal {-outcome.code}", "run the same command again"
        )
    return BerthError(
        "pulumi failed without a reason", "run Pulumi itself, which may show more: pulumi preview"
    )


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_ERROR else f"{text[:_LONGEST_ERROR]}…"

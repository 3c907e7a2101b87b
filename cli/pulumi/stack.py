"""Stacks in Pulumi's state backend, and the engine's failures in berth's words."""

import json
import re
from collections.abc import Sequence
from typing import Any

from berth.cli.pulumi.program import Outcome, run_pulumi
from berth.cli.shell.console import ProblemsError
from berth.components.cluster.conflicts import conflict_advice
from berth.components.core.errors import BadInputError, BerthError
from berth.components.core.nearest import did_you_mean
from berth.components.plan.plan import Event
from berth.stacks.files import stack_file

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


def stack_outputs(stack: str) -> dict[str, Any]:
    """Return a stack's outputs, secret ones in clear text."""
    return dict(
        json.loads(_asked(stack, "stack", "output", "--json", "--show-secrets", "--stack", stack))
    )


def settings_of_last_update(stack: str) -> dict[str, Any]:
    """Return the settings of a stack's last update, by key; none if it failed, or is not known."""
    asked = run_pulumi("stack", "history", "--json", "--page-size", "10", "--stack", stack)
    updates = [] if asked.returncode else json.loads(asked.stdout)
    last = next((update for update in updates if update["kind"] in ("update", "destroy")), None)
    if last is None or (last["kind"], last["result"]) != ("update", "succeeded"):
        return {}
    config = {
        key.removeprefix(f"{stack_file.NAMESPACE}:"): value for key, value in last["config"].items()
    }
    return {key: value["objectValue"] for key, value in config.items() if "objectValue" in value}


def selected_stack() -> str:
    """Return the stack that `pulumi stack select` chose; "" for none, or if Pulumi does not say."""
    done = run_pulumi("stack", "--show-name")
    return "" if done.returncode else done.stdout.strip()


def backend_url() -> str:
    """Return the URL of the state's backend, such as `gs://bucket`; "" if Pulumi does not say."""
    done = run_pulumi("whoami", "--json")
    return "" if done.returncode else str(json.loads(done.stdout).get("url") or "")


def stacks_in_backend() -> dict[str, int]:
    """Return the project's stacks in the backend, with the number of resources of each."""
    found = json.loads(_asked("", "stack", "ls", "--json"))
    return {
        str(stack["name"]).rsplit("/", 1)[-1]: int(stack.get("resourceCount") or 0)
        for stack in found
    }


def create_stack(stack: str) -> None:
    """Create a stack in the backend, with the secrets provider that its file names."""
    provider = stack_file.pulumi_keys(stack).get("secretsprovider", "")
    more = ["--secrets-provider", provider] if provider else []
    _asked(stack, "stack", "init", stack, "--no-select", *more)


def _asked(stack: str, *arguments: str) -> str:
    done = run_pulumi(*arguments)
    if done.returncode:
        raise failure_of(stack, Outcome(stderr=done.stderr))
    return done.stdout


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


def _unknown_stack(stack: str) -> UnknownStackError:
    if stack_file.stack_path(stack).exists():
        return UnknownStackError(
            f"stack {stack} is not in Pulumi's backend yet; run: pulumi stack init {stack}"
        )
    known = did_you_mean(stack, stack_file.stack_names())
    return UnknownStackError(
        f"there is no stack {stack!r}, neither in Pulumi's backend nor in stacks/{known}",
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

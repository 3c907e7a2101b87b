"""Stacks in Pulumi's state backend."""

import json
from typing import Any

from berth.cli.pulumi.engine import Outcome
from berth.cli.pulumi.failures import failure_of
from berth.cli.pulumi.program import run_pulumi
from berth.stacks.files import stack_file


def stack_outputs(stack: str) -> dict[str, Any]:
    """Return a stack's outputs, secret ones in clear text."""
    return dict(
        json.loads(_asked(stack, "stack", "output", "--json", "--show-secrets", "--stack", stack))
    )


def settings_of_last_update(stack: str) -> dict[str, Any]:
    """Return the settings of a stack's last update that succeeded, by key.

    None if the stack was destroyed since, or if there is no such update. One that failed or was
    interrupted is passed over: what it was to do, and perhaps did not, is still the reason of the
    next plan.
    """
    asked = run_pulumi("stack", "history", "--json", "--page-size", "10", "--stack", stack)
    updates = [] if asked.returncode else json.loads(asked.stdout)
    done = [
        update
        for update in updates
        if update["kind"] in ("update", "destroy") and update["result"] == "succeeded"
    ]
    if not done or done[0]["kind"] == "destroy":
        return {}
    settings = {}
    for key, value in done[0]["config"].items():
        if "objectValue" in value:
            settings[key.removeprefix(f"{stack_file.NAMESPACE}:")] = value["objectValue"]
    return settings


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
    resources = {}
    for stack in json.loads(_asked("", "stack", "ls", "--json")):
        name = str(stack["name"]).rsplit("/", 1)[-1]
        resources[name] = int(stack.get("resourceCount") or 0)
    return resources


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

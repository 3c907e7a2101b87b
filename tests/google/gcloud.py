"""gcloud's own linter of commands."""

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.commands import ShownCommand


class NoLinterError(Exception):
    """The installed gcloud has no linter."""


def wrong_commands(commands: Iterable[ShownCommand], folder: Path) -> dict[str, str]:
    """Return what gcloud's linter says about commands that gcloud would refuse, by the command.

    Args:
        commands: what to judge, in one call of gcloud.
        folder: an empty folder, for the list and gcloud's own settings.

    Raises:
        NoLinterError: gcloud has no `meta lint-gcloud-commands`, which Google does not promise.
    """
    by_id = {str(number): command for number, command in enumerate(commands, 1)}
    listed = [{"id": key, "command_string": item.text} for key, item in by_id.items()]
    file = folder / "commands.json"
    file.write_text(json.dumps(listed), encoding="utf-8")
    done = subprocess.run(
        ["gcloud", "meta", "lint-gcloud-commands", f"--commands-file={file}", "--serialize"],
        env={
            **os.environ,
            "CLOUDSDK_CONFIG": str(folder / "settings"),
            "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "true",
            "CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK": "true",
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode != 0:
        raise NoLinterError(done.stderr.strip())
    verdicts = json.loads(done.stdout)
    return {
        f"{command.place}: {command.text}": verdict["error_message"]
        for key, command in by_id.items()
        for verdict in verdicts[key]
        if not verdict["success"] and not (command.is_name and _is_of_arguments(verdict))
    }


def _is_of_arguments(verdict: Mapping[str, str]) -> bool:
    """Whether a command exists and lacks its arguments only."""
    return "must be specified" in verdict["error_message"].lower() or (
        verdict["error_message"] == "Command name argument expected"
    )

"""State backend of one plan: a folder with a stack's state, without what stays as it is.

The engine copies each resource of a state several times for its events, those too that a plan
leaves out: for the berths of an environment of 100 that takes as long as the rest of the plan. And
a bucket is not asked again for what is known.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from berth.cli import state_file
from berth.cli.update.unchanged import State


@contextlib.contextmanager
def backend_without(urns: Iterable[str], state: State) -> Iterator[str]:
    """Make a backend that is a folder; give its URL, and remove it in the end.

    Args:
        urns: URNs of resources that are left out, none of which another resource depends on.
        state: exported state of the stack, with encrypted secrets.
    """
    deployment, left_out = state["deployment"], set(urns)
    resources = [item for item in deployment["resources"] if item["urn"] not in left_out]
    stack, project = resources[0]["urn"].removeprefix("urn:pulumi:").split("::")[:2]
    with tempfile.TemporaryDirectory(prefix="berth-plan-") as folder:
        state_file.write(Path(folder), project, stack, {**state, "deployment": {**deployment, "resources": resources}})
        yield Path(folder).as_uri()

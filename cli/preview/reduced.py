"""State backend of one plan: a folder with a stack's state, without what stays as it is.

The engine copies each resource of a state several times for its events, those too that a plan
leaves out: for the berths of an environment of 100 that takes as long as the rest of the plan. And
a bucket is not asked again for what is known.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

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
    # The layout of a folder or bucket (pulumi, pkg/backend/diy/store.go and meta.go, and
    # sdk/go/common/apitype/core.go, VersionedCheckpoint).
    checkpoint = {"stack": stack, "latest": {**deployment, "resources": resources}}
    versioned = {**{key: value for key, value in state.items() if key != "deployment"}, "checkpoint": checkpoint}
    with tempfile.TemporaryDirectory(prefix="berth-plan-") as folder:
        file = Path(folder, ".pulumi", "stacks", project, f"{stack}.json")
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(versioned), encoding="utf-8")
        Path(folder, ".pulumi", "meta.yaml").write_text("version: 1\n", encoding="utf-8")
        yield Path(folder).as_uri()

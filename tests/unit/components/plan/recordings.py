"""Recordings of the real engine in a lab, for tests of what `berth preview` makes of them.

    export PULUMI_ENABLE_STREAMING_JSON_PREVIEW=1
    pulumi preview -s STACK --json --show-sames --non-interactive |
        python -m tests.unit.components.plan.recordings tests/golden/preview/NAME.jsonl

keeps the parts that tests look at. The fleet of the recordings is `fleet.yaml` beside them.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from berth.components.plan.plan import Event
from tests.conftest import GOLDEN

FOLDER = GOLDEN / "preview"

_STEP = ("op", "urn", "type", "keys", "diffs", "detailedDiff")
_STATE = ("type", "custom", "parent", "inputs", "outputs")
# Unchanged ones of these are looked at too: where pools are, and whose pods are on them.
_KNOWN = (
    "gcp:container/nodePool:NodePool",
    "gcp:container/cluster:Cluster",
    "kubernetes:ray.io/v1:RayCluster",
)
_LONG = {"masterAuth", "endpoint", "selfLink", "instanceGroupUrls", "managedInstanceGroupUrls"}


def recorded(name: str) -> list[Event]:
    """The events of a recorded preview."""
    lines = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def live() -> list[dict[str, Any]]:
    """The RayClusters that the cluster had meanwhile: the fleet's, and alice's of her own stack."""
    return list(json.loads((FOLDER / "rayclusters.json").read_text(encoding="utf-8")))


def reduced(event: dict[str, Any]) -> dict[str, Any] | None:
    """Return the parts of an event that are compared; None for no part."""
    for key in ("resourcePreEvent", "resOutputsEvent"):
        if key in event:
            step = event[key]["metadata"]
            if key == "resourcePreEvent" and step["op"] == "refresh":
                return None
            if key == "resOutputsEvent" and (
                step["op"] != "refresh" or not (step.get("diffs") or not step["new"])
            ):
                return None
            return {key: {"metadata": _step(step)}}
    diagnostic = event.get("diagnosticEvent")
    if diagnostic and diagnostic["severity"] in ("warning", "error"):
        return {"diagnosticEvent": diagnostic}
    return None


def _step(step: dict[str, Any]) -> dict[str, Any]:
    found = {name: step[name] for name in _STEP if step.get(name)}
    for side in ("old", "new"):
        state = step.get(side)
        if state:
            state = {name: state[name] for name in _STATE if state.get(name)}
            # What is not shown of a state only makes the recording long.
            if not step["type"].startswith("gcp:container/") and step["op"] != "refresh":
                state.pop("outputs", None)
            if "outputs" in state:
                state["outputs"] = {
                    key: value for key, value in state["outputs"].items() if key not in _LONG
                }
            if step["op"] in ("same", "refresh", "create") and step["type"] not in _KNOWN:
                state.pop("inputs", None)
        found[side] = state
    return found


def _main(lines: Iterator[str], path: Path) -> None:
    events = [event for line in lines if (event := reduced(json.loads(line)))]
    path.write_text(
        "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events), encoding="utf-8"
    )


if __name__ == "__main__":
    _main(iter(sys.stdin), Path(sys.argv[1]))

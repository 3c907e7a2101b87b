"""The lab's GPU Operator against recordings of the real one, case by case."""

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from berth.lab.home import CLONE
from tests.unit.cases import table
from tests.unit.lab.devices.operator_player import Player

RECORDINGS = CLONE.parent / "shared" / "upstream" / "gpu-operator" / "recordings"
CORE = Path(__file__).with_name("recorded_operator.json")

TABLE: dict[str, Any] = table(__file__, "recorded_operator.yaml")
PLAYED = TABLE["played"]
UNKNOWN = TABLE["of cases"]
PARTS = ("of cases", "of daemonsets", "of containers", "labels", "volumes", "variables")
CONFIG_PATHS = {"/config", "/available-configs"}
CHECKS = {"toolkit-validation", "cuda-validation"}
"""Init containers whose fixed variables the lab leaves out: they say what to check."""


def recordings() -> list[Path]:
    return sorted(RECORDINGS.glob("*.json"))


def recorded(name: str) -> dict[str, Any]:
    return dict(json.loads(next(RECORDINGS.glob(f"{name}-*.json")).read_text()))


def core() -> dict[str, Any]:
    """Cases that every run plays; a text that begins with @ stands for a shared part."""
    document = json.loads(CORE.read_text())
    parts = document["parts"]

    def full(value: Any) -> Any:
        if isinstance(value, str) and value.startswith("@"):
            return full(parts[value])
        if isinstance(value, dict):
            return {key: full(inner) for key, inner in value.items()}
        return [full(inner) for inner in value] if isinstance(value, list) else value

    return dict(full(document["cases"]))


def is_part(some: Any, whole: Any) -> bool:
    """Whether a value is the other one, with keys of objects, steps or fields left out."""
    if isinstance(some, dict):
        return all(key in whole and is_part(value, whole[key]) for key, value in some.items())
    if isinstance(some, list) and len(some) < len(whole):
        return all(any(is_part(part, other) for other in whole) for part in some)
    if isinstance(some, list):
        return len(some) == len(whole) and all(map(is_part, some, whole))
    return bool(some == whole)


def needed() -> None:
    if not RECORDINGS.is_dir():
        pytest.skip(f"the recordings are not here: {RECORDINGS.relative_to(CLONE.parent)}")


def test_every_recording_is_played_or_named_with_a_reason() -> None:
    needed()
    assert {path.name.partition("-")[0] for path in recordings()} == {*PLAYED, *TABLE["not run"]}


@pytest.mark.parametrize("name", PLAYED)
def test_the_lab_does_what_the_real_operator_did(name: str) -> None:
    needed()
    play(recorded(name))


@pytest.mark.parametrize("name", sorted(core()))
def test_the_lab_does_the_core_of_what_the_real_operator_did(name: str) -> None:
    play(core()[name])


def test_the_core_is_a_copy_of_the_recordings() -> None:
    needed()
    for name, case in core().items():
        assert is_part(case, recorded(name)), name


@pytest.mark.parametrize("name", sorted(core())[:3])
def test_the_player_notices_what_is_otherwise(name: str) -> None:
    case = copy.deepcopy(core()[name])
    node = next(iter(case["output"]["nodeLabelsAdded"]))
    case["output"]["nodeLabelsAdded"][node]["nvidia.com/gpu.other"] = "true"
    with pytest.raises(AssertionError):
        play(case)


def play(case: Mapping[str, Any]) -> None:
    """Play a case, and compare the lab's operator with the recording after each step."""
    player = Player(case)
    compare(player, case["output"], copy.deepcopy(player.labels))
    for step in case.get("then") or []:
        if step["step"] in TABLE["otherwise"]:
            continue
        where = f"{case['case']}, {step['step']}"
        if case["case"].partition("-")[0] in TABLE["undone"]:
            player.undo()
            player.settle({})
        specs = {name: daemonset["spec"] for name, daemonset in player.daemonsets.items()}
        # The digest of a spec, not the spec: the change of a step is none of the operator's.
        player.change(step["change"])
        before = copy.deepcopy(player.labels)
        compare(player, step["output"], before)
        after = {name: daemonset["spec"] for name, daemonset in player.daemonsets.items()}
        assert changes(specs, after) == expected_changes(step), where


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, list[str]]:
    found = {
        "created": sorted(after.keys() - before.keys()),
        "deleted": sorted(before.keys() - after.keys()),
        "specUpdated": sorted(
            name for name in before.keys() & after.keys() if before[name] != after[name]
        ),
    }
    return {kind: names for kind, names in found.items() if names}


def expected_changes(step: Mapping[str, Any]) -> dict[str, list[str]]:
    """The recorded changes of DaemonSets, but replaced pods, which are Kubernetes' own work."""
    found = {
        kind: sorted(names)
        for kind, names in step["daemonSetChanges"].items()
        if kind != "podsReplaced"
    }
    found.pop("recreated", None)  # the same one again
    if "nodeSelectorAdded" in step["change"]:
        found.pop("specUpdated")  # the step's own doing
    return found


def compare(
    player: Player, output: Mapping[str, Any], before: Mapping[str, Mapping[str, str]]
) -> None:
    known = {
        "nodeLabelsAdded",
        "nodeLabelsChanged",
        "nodeLabelsRemoved",
        "daemonSets",
        "runtimeClasses",
    }
    assert output.keys() <= {*known, "clusterPolicyStatus", *UNKNOWN}
    player.settle({entry["name"]: _pending(entry["podsOnNodes"]) for entry in output["daemonSets"]})
    compare_labels(player, output, before)
    assert sorted(player.daemonsets) == sorted(entry["name"] for entry in output["daemonSets"])
    for entry in output["daemonSets"]:
        compare_daemonset(player, entry)
    assert player.classes == output["runtimeClasses"]
    assert player.status == output["clusterPolicyStatus"]


def _pending(nodes: list[str]) -> list[str]:
    return [node.removesuffix(" (Pending)") for node in nodes if node.endswith(" (Pending)")]


def compare_labels(
    player: Player, output: Mapping[str, Any], before: Mapping[str, Mapping[str, str]]
) -> None:
    for name, now in player.labels.items():
        then = before[name]
        added = {key: value for key, value in now.items() if key not in then}
        expected = output["nodeLabelsAdded"].get(name, {})
        assert added == {
            key: value for key, value in expected.items() if key not in TABLE["labels"]
        }
        changed = {
            key: {"from": then[key], "to": now[key]}
            for key in then
            if key in now and now[key] != then[key]
        }
        expected = output.get("nodeLabelsChanged", {}).get(name, {})
        assert changed == {
            key: value for key, value in expected.items() if key not in TABLE["labels"]
        }
        assert sorted(then.keys() - now.keys()) == sorted(
            output.get("nodeLabelsRemoved", {}).get(name, [])
        )


def compare_daemonset(player: Player, recorded: Mapping[str, Any]) -> None:
    """Compare every field that is recorded of a DaemonSet, but those that are named as unknown."""
    daemonset = player.daemonsets[recorded["name"]]
    metadata = daemonset["metadata"]
    spec = daemonset["spec"]
    template = spec["template"]["metadata"]
    pod = spec["template"]["spec"]
    found = {
        "name": metadata["name"],
        "nodeSelector": pod["nodeSelector"],
        "labels": metadata["labels"],
        "podLabels": template["labels"],
        "owner": [
            {key: owner[key] for key in ("kind", "name", "controller", "blockOwnerDeletion")}
            for owner in metadata["ownerReferences"]
        ],
        "matchLabels": spec["selector"]["matchLabels"],
        "updateStrategy": spec["updateStrategy"],
        "tolerations": in_any_order(pod["tolerations"]),
        "priorityClassName": pod["priorityClassName"],
        "runtimeClassName": pod.get("runtimeClassName"),
        "shareProcessNamespace": pod.get("shareProcessNamespace"),
    }
    parts = {"podsOnNodes", "initContainers", "containers", "configMapVolumes"}
    assert recorded.keys() <= {*found, *parts, *TABLE["of daemonsets"]}
    for key in recorded.keys() & found.keys():
        expected = in_any_order(recorded[key]) if key == "tolerations" else recorded[key]
        assert found[key] == expected, f"{metadata['name']}: {key}"
    if "tolerations" in recorded:
        assert found["runtimeClassName"] == recorded.get("runtimeClassName")
        ordinary = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}
        assert found["updateStrategy"] == recorded.get("updateStrategy", ordinary)
    assert player.nodes_of(metadata["name"]) == sorted(
        node.removesuffix(" (Pending)") for node in recorded["podsOnNodes"]
    )
    for part in ("initContainers", "containers"):
        if part in recorded:
            compare_containers(pod[part], recorded[part], all_fields="owner" in recorded)
    for volume, name in (recorded.get("configMapVolumes") or {}).items():
        if volume not in TABLE["volumes"]:
            assert {"name": volume, "configMap": {"name": name}} in pod["volumes"]


def compare_containers(found: list[Any], recorded: list[Any], *, all_fields: bool) -> None:
    """Compare containers; only full recordings have variables that bear on no setting."""
    assert [container["name"] for container in found] == [
        container["name"] for container in recorded
    ]
    for mine, theirs in zip(found, recorded, strict=True):
        assert theirs.keys() <= {"name", "env", "mounts", *TABLE["of containers"]}
        variables = {entry["name"]: entry["value"] for entry in mine["env"]}
        if mine["name"] in CHECKS:
            assert variables.items() <= (theirs.get("env") or {}).items()
            continue
        expected = {
            key: value
            for key, value in (theirs.get("env") or {}).items()
            if key not in TABLE["variables"]
        }
        assert expected.items() <= variables.items(), mine["name"]
        assert not all_fields or variables == expected, mine["name"]
        mounts = {mount["mountPath"]: mount["name"] for mount in mine.get("volumeMounts") or []}
        assert mounts == {
            path: name
            for path, name in (theirs.get("mounts") or {}).items()
            if path in CONFIG_PATHS
        }


def in_any_order(objects: list[dict[str, str]]) -> list[str]:
    return sorted(json.dumps(entry, sort_keys=True) for entry in objects)


def test_what_is_unknown_is_recorded_somewhere() -> None:
    needed()
    text = "".join(path.read_text() for path in recordings())
    assert [field for part in PARTS for field in TABLE[part] if f'"{field}"' not in text] == []

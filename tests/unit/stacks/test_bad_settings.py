"""Bad settings of every kind, by the text that the user reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from berth.stacks.files import stack_file
from berth.stacks.load.stack import SettingsError, load
from tests.unit.loaded import environment_values, places_of_problems

GOOD: dict[str, Any] = environment_values(dev={"machineType": "a4-highgpu-8g", "nodes": 4})


def problems(environment: Any) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load("test", {"environment": environment}, None)
    return caught.value.lines


def with_engineer(**shape: Any) -> dict[str, Any]:
    return GOOD | {"engineers": {"alice": shape}}


CASES = {
    "unknown key": (
        GOOD | {"engineer": {}},
        "environment.engineer: unknown key 'engineer'; did you mean 'engineers'?",
    ),
    "unknown key deep down": (
        with_engineer(worker={"gpu": 1}),
        "environment.engineers.alice.worker.gpu: unknown key 'gpu'; did you mean 'gpus'?",
    ),
    "snake case": (
        with_engineer(ray_version="2.60.0"),
        "environment.engineers.alice.ray_version: unknown key 'ray_version'; did you mean 'rayVersion'?",
    ),
    "missing": ({"zone": "us-central1-b", "pools": GOOD["pools"]}, "environment.project: is required"),
    "no pools": (GOOD | {"pools": {}}, "environment.pools: needs at least one entry"),
    "bad project": (GOOD | {"project": "Lab"}, "environment.project: 'Lab' is not a Google Cloud project id"),
    "bad zone": (GOOD | {"zone": "us-central1"}, "environment.zone: 'us-central1' is not a zone"),
    "bad machine type": (
        GOOD | {"pools": {"dev": {"machineType": "a4-highgpu-8", "nodes": 1}}},
        "'a4-highgpu-8' is not a machine type that berth knows; did you mean 'a4-highgpu-8g'?",
    ),
    "negative nodes": (
        GOOD | {"pools": {"dev": {"machineType": "a4-highgpu-8g", "nodes": -1}}},
        "environment.pools.dev.nodes: input should be greater than or equal to 0 (given: -1)",
    ),
    "bounds the wrong way round": (
        GOOD | {"pools": {"dev": {"machineType": "a4-highgpu-8g", "nodes": {"min": 3, "max": 1}}}},
        "environment.pools.dev.nodes: min (3) is more than max (1)",
    ),
    "name Kubernetes refuses": (
        GOOD | {"engineers": {"Alice": {}}},
        "environment.engineers.Alice: 'Alice' is a name that Kubernetes would refuse",
    ),
    "name too long": (
        GOOD | {"engineers": {"a" * 51: {}}},
        "has 51 characters; Kubernetes and KubeRay leave room for 50",
    ),
    "name that berth needs itself": (
        GOOD | {"engineers": {"verify": {}}},
        "environment.engineers.verify: 'verify' is reserved: `berth verify` runs its Jobs in namespace berth-verify",
    ),
    "pool that doesn't exist": (
        with_engineer(worker={"pool": "devel"}),
        "environment.engineers.alice.worker.pool: there is no pool 'devel'; did you mean 'dev'?",
    ),
    "which pool": (
        GOOD
        | {"pools": GOOD["pools"] | {"two": {"machineType": "g2-standard-8", "nodes": 1}}, "engineers": {"alice": {}}},
        "environment.engineers.alice.worker.pool: is required, since several pools are with GPUs: dev, two",
    ),
    "more GPUs than a node": (
        with_engineer(worker={"gpus": 9}),
        (
            "environment.engineers.alice.worker.gpus: a worker asks for 9 GPUs, but a node of pool 'dev' "
            "(a4-highgpu-8g) has 8"
        ),
    ),
    "more GPUs than the pool can ever have": (
        with_engineer(workers={"min": 0, "max": 5}, worker={"gpus": 8}),
        "environment.engineers.alice.workers: 5 workers of 8 GPUs are 40, but pool 'dev' tops out at 32 GPUs",
    ),
    "more cores than a node": (
        with_engineer(head={"cpu": 17}),
        "environment.engineers.alice.head.cpu: a head asks for 17 cores, but n2-standard-16 has 16",
    ),
    "more memory than a node": (
        with_engineer(worker={"memory": "4Ti"}),
        "a worker asks for 4Ti of memory, but a4-highgpu-8g has 3968Gi",
    ),
    "ten engineers on too few GPUs": (
        GOOD | {"engineers": {f"eng-{number}": {"worker": {"gpus": 4}} for number in range(10)}},
        "eng-8 4 + eng-9 4 = 40 are asked; add nodes or ask for less",
    ),
    "too many heads for the cores": (
        GOOD | {"engineers": {f"eng-{number}": {"head": {"cpu": 4}} for number in range(5)}},
        "pool 'cpu' tops out at 16 cores (1 × n2-standard-16)",
    ),
    "engineer and cluster of one name": (
        GOOD | {"engineers": {"train": {}}, "clusters": {"train": {}}},
        "environment.clusters.train: 'train' is both an engineer and a cluster",
    ),
    "text for a number": (
        with_engineer(workers="two"),
        "environment.engineers.alice.workers: 'two' is not a whole number",
    ),
    "bad quantity": (with_engineer(head={"memory": "8GB"}), "'8GB' is not a Kubernetes quantity; write for example"),
    "bad duration": (
        with_engineer(wait={"timeout": "soon"}),
        "'soon' is not a duration; write for example 90s, 10m, 2h or 7d",
    ),
    "bad choice": (with_engineer(wait={"until": "done"}), "'done' is not one of 'ready' or 'submitted'"),
    "Ray without tokens": (
        with_engineer(rayVersion="2.40.0", image="mine"),
        "Ray 2.40.0 has no token authentication",
    ),
    "image of another Ray": (
        with_engineer(image="rayproject/ray:2.54.0-py311"),
        "the image's tag says Ray 2.54.0, but rayVersion is 2.60.0",
    ),
    "overlapping ranges": (
        GOOD | {"network": {"podRange": "10.0.0.0/14"}},
        "environment.network.podRange: 10.0.0.0/14 overlaps nodeRange 10.0.0.0/20",
    ),
    "public range": (GOOD | {"network": {"podRange": "8.8.0.0/16"}}, "'8.8.0.0/16' is not a private range"),
    "no mapping": (GOOD | {"pools": ["dev"]}, "environment.pools: ['dev'] is not a mapping"),
    "nothing at all": (None, "environment.pools: is required"),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_settings(case: str) -> None:
    environment, expected = CASES[case]
    lines = problems(environment)
    assert any(expected in line for line in lines), lines


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, "the stack sets neither berth:environment nor berth:engineer; it must set one of them"),
        (
            {"environment": GOOD, "engineer": {"environment": "lab"}},
            "the stack sets both berth:environment and berth:engineer; it must set one of them",
        ),
        ({"enviroment": GOOD}, "unknown key 'berth:enviroment'; did you mean 'environment'?"),
    ],
)
def test_a_stack_is_one_kind(values: dict[str, Any], expected: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load("test", values, None)
    assert any(expected in line for line in caught.value.lines), caught.value.lines


def test_all_problems_come_at_once_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "Pulumi.test.yaml"
    text = """\
config:
  berth:environment:
    project: berth-lab
    zone: nowhere
    pools:
      cpu: {machineType: n2-standard-16, nodes: 1}
      dev:
        machineType: a4-highgpu-8g
        nodez: 4
    engineers:
      alice:
        worker:
          pool: ddev
          gpus: many
"""
    assert places_of_problems(path, text, "test") == [
        ("4", "environment.zone"),
        ("7", "environment.pools.dev.nodes"),
        ("9", "environment.pools.dev.nodez"),
        ("13", "environment.engineers.alice.worker.pool"),
        ("14", "environment.engineers.alice.worker.gpus"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("config:\n  berth:environment: {\n", ":3: "),
        ("config:\n  a: 1\n  a: 2\n", ":3: found duplicate key"),
        ("hello", "has no `config:`"),
        ("", "has no `config:`"),
    ],
)
def test_a_file_that_is_no_config(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "Pulumi.test.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(stack_file.StackFileError) as caught:
        stack_file.read(path)
    assert expected in str(caught.value)
    assert str(path) in str(caught.value)

"""Every table at every width: no word is cut, and no line is longer than the terminal."""

from __future__ import annotations

from io import StringIO
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console, Group
from rich.text import Text

from berth.cli import check, engineers, fabric_proof, gpu_proof, status, watch
from berth.cli.doctor.examine import Examination
from berth.cli.doctor.findings import Finding
from berth.cli.doctor.report import lines
from berth.cli.grid import Entry, Grid, folded
from berth.cli.verbs import lab
from berth.components.proof import PoolProof
from berth.components.proof.checks import Check
from berth.lab.report import State
from tests.unit.cli import test_status, test_workloads

WIDTHS = [40, 60, 80, 120, 140, 200]
EVIDENCE = (
    "2 of 3 nodes are ready; gke-train-0a1b2c3d-x1y2 has nvidia.com/gpu.shared 8 instead of 16, cordoned by admin"
)
CHECKS = [Check("nodes", "fail", EVIDENCE), Check("cuda-vector-add", "pass", "ran on gke-train-0 in 12 s")]


def fleet() -> Group:
    failing = {"chat": {"status": "DEPLOY_FAILED", "message": "No module named 'a'"}}
    pending = {"pendingServiceStatus": {"rayClusterName": "chat-abcde", "applicationStatuses": failing}}
    seen = test_workloads.fleet(
        jobs=[test_workloads.job("Running", "RUNNING")],
        services=[test_workloads.service(**pending, activeServiceStatus={})],
        clusters=[test_workloads.ray_cluster(kind, f"{kind}-x") for kind in ("engineer", "cluster", "service")],
    )
    node = test_status.node("a", {"cloud.google.com/gke-nodepool": "pairs"})
    nics = test_status.fabric(test_status.Recorded(node))
    return Group(status.table(seen), status.table(nics))


def gpus() -> Group:
    pools = [PoolProof(pool, "nvidia.com/gpu", CHECKS) for pool in ("dev", "train-with-a-long-name")]
    return gpu_proof.table(gpu_proof.Proof("lab", "lab", "a1b2c3", left_behind=False, pools=pools))


def nccl() -> Group:
    cause = SimpleNamespace(text="the pods have no claim of NICs", look="kubectl get resourceclaims -n berth-train")
    found = SimpleNamespace(checks=CHECKS, causes=[cause])
    proof = SimpleNamespace(cluster="train", namespace="berth-train", found=found, counts={"fail": 1, "pass": 1})
    return fabric_proof.table(cast("fabric_proof.Proof", proof))


def doctor() -> Group:
    findings = [
        Finding("tools", "fine", "pulumi v3.200.0 and its plugins are here, and the state's folder can be written"),
        Finding(
            "reservation", "missing", EVIDENCE, "gcloud compute reservations update a4-prod --vm-count 4 --zone us-x1-b"
        ),
    ]
    return lines(Examination("prod", "environment", findings, "the lab, with a cloud that is simulated here"))


def waiting() -> Grid:
    return watch._queue_table([watch.Waiting("alice", "worker", 2, EVIDENCE, "2026-01-31T12:00:00Z")])  # noqa: SLF001


PICTURES: dict[str, Any] = {
    "status": fleet,
    "status --watch": waiting,
    "check --policies": check.policies_table,
    "verify gpu": gpus,
    "verify fabric": nccl,
    "doctor": doctor,
}


def rendered(picture: Any, width: int) -> str:
    text = StringIO()
    Console(file=text, width=width, soft_wrap=True, highlight=False).print(picture)
    return text.getvalue()


def cells(picture: Any) -> list[str]:
    """The texts of all tables, as they were put in."""
    if isinstance(picture, Group):
        return [cell for part in picture.renderables for cell in cells(part)]
    if isinstance(picture, Grid):
        columns = [column for row in picture._rows for column in row]  # noqa: SLF001
        return [picture.title, *picture.columns, *(cell.plain for cell in columns)]
    if isinstance(picture, Entry):
        return [picture.label.plain, picture.text, picture.exact.plain]
    return [picture.plain]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PICTURES)
def test_no_table_loses_a_word(name: str, width: int) -> None:
    picture = PICTURES[name]()
    text = rendered(picture, width)
    shown = text.replace(":", " ").split()
    words = [word for cell in cells(picture) for word in cell.replace(":", " ").split()]
    assert len(words) > 10
    assert [word for word in words if word not in shown] == []
    assert "…" not in text


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["status --watch", "check --policies"])
def test_no_table_is_wider_than_the_terminal(name: str, width: int) -> None:
    text = rendered(PICTURES[name](), width)
    assert [line for line in text.splitlines() if len(line.rstrip()) > width and " " in line.strip()] == []


@pytest.mark.parametrize("width", WIDTHS)
def test_the_labs_processes(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = StringIO()
    monkeypatch.setattr(lab, "out", Console(file=text, width=width, soft_wrap=True, highlight=False))
    problem = "its port 127.0.0.1:38211 does not answer: connection refused"
    state = State("kube-controller-manager", "controllers of Kubernetes", None, 4711, 50 << 20, (38211,), "x.log")
    broken = State("etcd", "the API server's database", problem, None, 0, (), "etcd.log")
    lab._print_lab([state, broken], {"dev": 1, "prod": 2})  # noqa: SLF001
    words = text.getvalue().split()
    assert {*state.name.split(), *state.purpose.split(), *problem.split(), "works", "4711", "50", "38211"} <= {*words}
    assert "simulated cloud: 3 resources (1 in project dev, 2 in project prod)" in text.getvalue()


@pytest.mark.parametrize("width", WIDTHS)
def test_the_list_of_engineers(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = StringIO()
    monkeypatch.setattr(engineers, "out", Console(file=text, width=width, soft_wrap=True, highlight=False))
    assert engineers.show("lab", as_json=False) == 0
    assert {"bob", "carol", "dev", "lab"} <= {*text.getvalue().split()}
    assert max(map(len, text.getvalue().splitlines())) <= width


def grid(**settings: Any) -> Grid:
    table = Grid("pool", "check", "evidence", title="train", **settings)
    table.add_row("dev", "nodes", "two of two nodes are ready")
    table.add_row("dev", "jobs", Text("[all] of them ran", style="green"))
    return table


def test_a_table_becomes_a_list_of_records() -> None:
    assert rendered(grid(grouped=True), 26) == (
        "train\n\npool: dev\n  check: nodes\n  evidence: two of two\n    nodes are ready\n"
        "\npool: dev\n  check: jobs\n  evidence: [all] of them\n    ran\n"
    )


def test_a_group_is_named_once_in_a_table() -> None:
    table = rendered(grid(grouped=True), 80)
    assert [line.split() for line in table.splitlines() if "─" not in line and line.strip()] == [
        ["train"],
        ["pool", "check", "evidence"],
        ["dev", "nodes", "two", "of", "two", "nodes", "are", "ready"],
        ["jobs", "[all]", "of", "them", "ran"],
    ]


def test_a_row_has_a_cell_for_each_column() -> None:
    with pytest.raises(ValueError, match="1 cells for 3 columns"):
        grid().add_row("dev")


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("one two three", 9, ["  one two", "    three"]),
        ("one", 2, ["  one"]),
        ("kubectl get resourceclaims", 12, ["  kubectl", "    get", "    resourceclaims"]),
        ("first\nsecond", 40, ["  first", "    second"]),
        ("日本 日本 日本", 11, ["  日本 日本", "    日本"]),
        ("", 10, ["  "]),
    ],
)
def test_a_folded_text(text: str, width: int, lines: list[str]) -> None:
    assert folded(Text(text), width, first=2, after=4).plain.split("\n") == lines

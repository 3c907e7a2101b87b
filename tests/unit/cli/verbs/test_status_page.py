"""`berth status --html`: one page with the whole fleet, which loads nothing and runs nothing."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

from berth.cli.main import app
from berth.cli.reach import fleet
from berth.cli.reach.fabric_reports import FabricReport, newest_reports
from berth.cli.verbs.status.page import fleet_page, write_page
from berth.components.core.errors import BadInputError
from berth.components.hardware.gpu_unit import GpuUnit
from berth.components.lifecycle import Life
from berth.components.ray.live.fleet import (
    Fleet,
    LiveGroup,
    LiveJob,
    LivePool,
    LiveRayCluster,
    LiveService,
)
from berth.components.ray.live.nodes import Holder, Node

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
CREATED = "2026-01-29T12:00:00Z"


def a_pool(
    name: str, machine: str, nodes: int, gpus: int, used: int, unit: str = "GPU"
) -> LivePool:
    sharing = "time-slicing × 4, memory not isolated" if unit != "GPU" else ""
    gpu_unit = GpuUnit("B200") if unit == "GPU" else GpuUnit("B200", "share", per_gpu=4)
    return LivePool(
        name, machine, nodes, nodes, nodes, gpus, used, 0, 0, 0, sharing, unit, gpu_unit
    )


def a_ray(
    name: str, state: str = "ready", life: Life | None = None, reasons: tuple[str, ...] = ()
) -> LiveRayCluster:
    return LiveRayCluster(
        name=name,
        namespace=f"berth-{name}",
        ray_cluster=name,
        stack="lab",
        pool="dev",
        state=state,
        ready=not reasons,
        workers_ready=0 if reasons else 2,
        workers_desired=2,
        gpus=2,
        nics=0,
        reasons=list(reasons),
        life=life or Life(CREATED),
        groups=[LiveGroup("workers", "dev", 0 if reasons else 2, 2, 2)],
    )


def a_fleet() -> Fleet:
    waiting = (
        "worker pod cannot be scheduled: 0/4 nodes are available: 1 Insufficient nvidia.com/gpu"
    )
    suspended = Life(CREATED, expires="2026-02-12T12:00:00Z", suspended_by="idle", idle="2h")
    return Fleet(
        stack="lab",
        environment="lab",
        pools=[
            a_pool("cpu", "n2-standard-16", 2, 0, 0),
            a_pool("dev", "a4-highgpu-8g", 1, 32, 5, "share"),
        ],
        berths=[
            a_ray("alice"),
            a_ray("bob", "unready", reasons=(waiting,)),
            a_ray("carol", "suspended", suspended),
        ],
        clusters=[replace(a_ray("train"), pool="train", gpus=16)],
        jobs=[
            LiveJob(
                name="eval",
                namespace="berth-eval",
                ray_job="eval-1",
                ray_cluster="",
                stack="lab",
                state="FAILED",
                ready=False,
                created=CREATED,
                ended=CREATED,
                reasons=["it ended with 1"],
            )
        ],
        services=[
            LiveService(
                name="chat",
                namespace="berth-chat",
                stack="lab",
                pool="dev",
                state="ready",
                ready=True,
                applications_running=1,
                applications=1,
                serving=1,
                workers_ready=1,
                workers_desired=1,
                gpus=1,
                address="http://chat:8000",
                created=CREATED,
                reasons=[],
            )
        ],
        nodes=[
            Node(
                "gke-lab-dev-0",
                "dev",
                ready=True,
                gpus=32,
                holders=[Holder("alice", 2), Holder("bob", 3)],
            ),
            Node("gke-lab-train-0", "train", ready=False, gpus=8, holders=[Holder("train", 8)]),
        ],
    )


class Tags(HTMLParser):
    """Elements of a page, and the texts of its cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, "elements are closed in the order in which they were opened"

    def classes(self, name: str) -> Iterator[str]:
        return (
            value
            for _, attributes in self.found
            if name in (value := attributes.get("class") or "").split()
        )


def test_the_page_has_everything_of_the_fleet() -> None:
    text = fleet_page(a_fleet(), NOW)
    for word in (
        "Fleet of lab",
        "2026-01-31 12:00 UTC",
        "a4-highgpu-8g",
        "5/32 shares",
        "gke-lab-dev-0",
        "eval",
    ):
        assert word in text
    assert "bob is not ready: worker pod cannot be scheduled" in text
    assert "eval failed: it ended with 1" in text
    assert "carol is suspended, as nothing ran on it for 2h" in text
    assert "27/32 shares of 1/4 B200 free" in text


def test_each_gpu_is_a_box_of_its_holder() -> None:
    tags = Tags(fleet_page(replace(a_fleet(), nodes=[a_fleet().nodes[0]]), NOW))
    assert tags.open == []
    boxes = list(tags.classes("slot"))
    assert len(boxes) == 32 + 2, "a box for each share, and one for each name"
    assert [boxes.count(f"slot of{number}") for number in range(2)] == [2 + 1, 3 + 1]


def test_the_page_loads_nothing_and_runs_nothing() -> None:
    evil = '<script>alert(1)</script>" onload="x'
    fleet = replace(a_fleet(), environment=evil, berths=[a_ray(evil, evil, reasons=(evil,))])
    fleet = replace(fleet, nodes=[Node(evil, evil, ready=True, gpus=1, holders=[Holder(evil, 1)])])
    tags = Tags(fleet_page(fleet, NOW))
    assert {tag for tag, _ in tags.found} <= set(
        "html head meta title style body h1 h2 p ul li span div strong"
        " table thead tbody tr th td".split()
    )
    assert {name for _, attributes in tags.found for name in attributes} <= {
        "lang",
        "charset",
        "name",
        "content",
    } | {
        "class",
        "data-head",
    }


def test_a_fleet_of_nothing_is_a_page_too() -> None:
    text = fleet_page(Fleet("lab", "lab", [], [], []), NOW)
    assert "everything is ready" in text
    assert Tags(text).open == []


def test_the_verb_writes_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "fleet_of", lambda _: a_fleet())
    target = tmp_path / "fleet.html"
    target.write_text("older")
    result = CliRunner().invoke(app, ["status", "-s", "lab", "--html", str(target)])
    assert (result.exit_code, result.stdout) == (1, ""), "bob is not ready"
    assert target.read_text().startswith("<!doctype html>")
    assert [path.name for path in tmp_path.iterdir()] == ["fleet.html"]
    assert (
        CliRunner()
        .invoke(app, ["status", "-s", "lab", "--html", "-"])
        .stdout.startswith("<!doctype html>")
    )


def test_a_file_that_cannot_be_written_is_an_error_and_the_older_one_stays(tmp_path: Path) -> None:
    with pytest.raises(
        BadInputError, match=r"--html: .*no/fleet.html cannot be written: No such file"
    ):
        write_page(a_fleet(), tmp_path / "no" / "fleet.html")
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(BadInputError, match="Is a directory; nothing was written"):
        write_page(a_fleet(), folder)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("other", ["--json", "--watch"])
def test_the_page_is_instead_of_the_other_forms(other: str) -> None:
    result = CliRunner().invoke(app, ["status", "-s", "lab", "--html", "x.html", other])
    assert result.exit_code == 2
    assert f"does not go with {other}" in result.stderr


def test_the_newest_fabric_proof_of_a_cluster_is_linked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for number, (run, environment) in enumerate(
        (("old", "lab"), ("new", "lab"), ("other", "prod"))
    ):
        folder = tmp_path / "build/fabric-proof" / f"train-{run}"
        folder.mkdir(parents=True)
        content = {
            "environment": environment,
            "cluster": "train",
            "run": run,
            "counts": {"pass": 2, "fail": 0},
        }
        (folder / "evidence.json").write_text(json.dumps(content))
        (folder / "report.html").write_text("report")
        os.utime(folder / "evidence.json", (number, number))
    broken = tmp_path / "build/fabric-proof/broken"
    broken.mkdir()
    (broken / "evidence.json").write_text("[]")
    (found,) = newest_reports("lab", tmp_path / "pages")
    assert found == FabricReport(
        cluster="train",
        run="new",
        counts={"pass": 2, "fail": 0},
        link="../build/fabric-proof/train-new/report.html",
    )
    text = fleet_page(a_fleet(), NOW, [found])
    assert (
        '<a href="../build/fabric-proof/train-new/report.html">train, run new</a>: 2 pass, 0 fail'
        in text
    )

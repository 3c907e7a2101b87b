"""`berth logs` and what waits, from objects as the API server gives them."""

from typing import Any, cast

import pytest
from typer.testing import CliRunner

from berth.cli.main import app
from berth.cli.reach.berths import LiveBerth
from berth.cli.reach.environment import LiveEnvironment
from berth.cli.reach.operator_log import lines_about, readable_line
from berth.cli.reach.pods import head_or_worker
from berth.cli.verbs.status.live_view import Waiting, queue_of
from berth.components.cluster.api import PODS
from berth.components.core.errors import BadInputError, BerthError
from tests.unit.cases import table
from tests.unit.recorded_cluster import RecordedCluster


def berth(*pods: dict[str, Any], suspend: bool = False) -> LiveBerth:
    groups = [{"groupName": "cpu"}, {"groupName": "gpu"}]
    spec = {"suspend": suspend, "workerGroupSpecs": groups}
    cluster = {"metadata": {"name": "bob", "namespace": "berth-bob"}, "spec": spec}
    return LiveBerth(
        "bob", cast("LiveEnvironment", None), RecordedCluster({PODS: list(pods)}), cluster
    )


def pod(name: str, kind: str, **status: Any) -> dict[str, Any]:
    labels = {"ray.io/node-type": kind, "ray.io/cluster": "bob", "berth/engineer": "bob"}
    created = "2026-01-01T00:00:00Z"
    return {
        "metadata": {
            "name": name,
            "namespace": "berth-bob",
            "labels": labels,
            "creationTimestamp": created,
        },
        "spec": {},
        "status": {"phase": "Pending"} | status,
    }


def test_which_pods_log() -> None:
    own = berth(pod("w-2", "worker"), pod("w-1", "worker"), pod("h", "head"))
    assert head_or_worker(own, None)["metadata"]["name"] == "h"
    assert [head_or_worker(own, number)["metadata"]["name"] for number in ("1", "2")] == [
        "w-1",
        "w-2",
    ]
    with pytest.raises(BadInputError, match="bob has 2 workers; there is no worker 3"):
        head_or_worker(own, "3")
    with pytest.raises(BerthError, match="berth wake bob"):
        head_or_worker(berth(suspend=True), None)
    with pytest.raises(BerthError, match="no head pod yet"):
        head_or_worker(berth(), None)


def test_a_worker_is_counted_in_its_group() -> None:
    found = [pod(name, "worker") for name in ("bob-cpu-w-1", "bob-gpu-w-2", "bob-gpu-w-1")]
    for one in found:
        one["metadata"]["labels"]["ray.io/group"] = one["metadata"]["name"].split("-")[1]
    own = berth(*found)
    assert [
        head_or_worker(own, name)["metadata"]["name"] for name in ("gpu/1", "gpu/2", "cpu/1", "2")
    ] == [
        "bob-gpu-w-1",
        "bob-gpu-w-2",
        "bob-cpu-w-1",
        "bob-gpu-w-1",
    ]
    with pytest.raises(
        BadInputError, match="bob has 1 worker in group cpu; there is no worker cpu/2"
    ):
        head_or_worker(own, "cpu/2")
    with pytest.raises(
        BadInputError, match="bob has no group of workers 'gpus'; did you mean 'gpu'"
    ):
        head_or_worker(own, "gpus/1")


@pytest.mark.parametrize("worker", ["0", "gpu/", "/1", "gpu/0", "Gpu/1", "one"])
def test_what_names_no_worker_is_refused(worker: str) -> None:
    done = CliRunner().invoke(app, ["logs", "bob", "--worker", worker])
    assert done.exit_code == 2
    assert "write 1 or gpu/1" in " ".join(done.output.split())


def test_three_logs_are_not_one() -> None:
    done = CliRunner().invoke(app, ["logs", "bob", "--head", "--operator"])
    assert (done.exit_code, "choose one" in done.stderr) == (2, True)


def test_the_operators_lines_are_of_this_berth_alone() -> None:
    lines = [
        '{"RayCluster":{"name":"bob","namespace":"berth-bob"}}',
        '{"RayCluster":{"name":"bobby","namespace":"berth-bobby"}}',
        "reconciling berth-bob/bob",
        "starting",
    ]
    assert list(lines_about(berth(), lines)) == [lines[0], lines[2]]


@pytest.mark.parametrize(("line", "shown"), table(__file__, "logs.yaml"))
def test_a_line_of_the_operator_is_readable(line: str, shown: str) -> None:
    assert readable_line(line) == shown


def test_what_waits_for_what() -> None:
    unschedulable = {
        "type": "PodScheduled",
        "status": "False",
        "message": "0/2 nodes are available.",
    }
    pods = [pod(f"w-{number}", "worker", conditions=[unschedulable]) for number in range(2)]
    ready = pod("h", "head", conditions=[{"type": "Ready", "status": "True"}])
    assert queue_of([*pods, ready], []) == [
        Waiting(
            "bob",
            "worker",
            2,
            "cannot be scheduled: 0/2 nodes are available.",
            "2026-01-01T00:00:00Z",
        )
    ]

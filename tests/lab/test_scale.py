"""Many berths cost as many requests as few: `berth status`, and the wait of an update. Long: an
environment of its own for figures that rarely change.
"""

import json
from collections.abc import Iterable, Iterator

import pytest

from bench.berths import Berths
from berth.components.cluster.api import NAMESPACES, ClusterApi
from berth.components.core.owner import STACK_LABEL
from berth.components.ray.evidence import Key
from berth.components.ray.readiness import Awaited, Wait
from chaos.fleet import ENV, Fleet, launched
from chaos.proxy import Request
from tests.lab.conftest import Lab
from tests.lab.project import started

pytestmark = [pytest.mark.lab, pytest.mark.long]

FEW, MANY = 3, 60
LATE = "waiting for the KubeRay operator"


@pytest.fixture(scope="module")
def fleet(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """An environment that is up, reached through the counting proxy."""
    with launched(tmp_path_factory.mktemp("scale"), lab) as fleet:
        yield fleet


def api_of(fleet: Fleet) -> ClusterApi:
    """Return the cluster without the proxy."""
    return ClusterApi(fleet.lab.kubeconfig.read_text())


def lists(requests: Iterable[Request]) -> list[str]:
    """Return the paths of the lists among requests, with their queries."""
    return sorted(request.path for request in requests if request.method == "GET" and "watch=true" not in request.path)


@pytest.fixture(scope="module")
def few(fleet: Fleet) -> Berths:
    return Berths(api_of(fleet), ENV, "few", FEW)


@pytest.fixture(scope="module")
def many(few: Berths, fleet: Fleet) -> Berths:  # noqa: ARG001 - the few are alone first
    return Berths(api_of(fleet), ENV, "many", MANY)


def status(fleet: Fleet) -> tuple[list[str], dict[str, list[str]]]:
    """Return the lists of `berth status`, and the reasons of berths that are not ready."""
    seen: list[Request] = []
    with fleet.proxy.disturbed(before=seen.append):
        document = fleet.project.status(ENV)
    return lists(seen), {berth["name"]: berth["reasons"] for berth in document["berths"] if not berth["ready"]}


def test_status_asks_as_often_about_many_berths_as_about_few(
    fleet: Fleet, few: Berths, request: pytest.FixtureRequest
) -> None:
    asked_about_few, reasons = status(fleet)
    assert set(reasons) == {name for _, name in few.keys}
    many: Berths = request.getfixturevalue("many")
    asked_about_many, reasons = status(fleet)
    assert set(reasons) == {name for _, name in [*few.keys, *many.keys]}
    assert asked_about_many == asked_about_few
    assert len(set(asked_about_many)) == len(asked_about_many), "no list twice"


def waited(fleet: Fleet, berths: Berths, stack: str) -> list[str]:
    """Return the lists of a wait for berths that are late, explained, and then ready."""
    explained: dict[Key, str] = {}

    def report(resource: Awaited, text: str) -> None:
        if text.startswith(f"{LATE}: "):
            explained[resource.key] = text
            if len(explained) == len(berths.keys):
                berths.are_suspended()

    wait = Wait(
        stack,
        fleet.kubeconfig.read_text(),
        [Awaited("RayCluster", "ready", key, "1h") for key in berths.keys],
        namespaces={namespace for namespace, _ in berths.keys},
        report=report,
        put_off=lambda resource, going: pytest.fail(f"{resource} does not wait for {going}"),
    )
    seen: list[Request] = []
    with fleet.proxy.disturbed(before=seen.append):
        assert wait.run() == {}
    assert len(explained) == len(berths.keys)
    return lists(seen)


def test_a_wait_lists_as_often_for_many_late_berths_as_for_few(fleet: Fleet, few: Berths, many: Berths) -> None:
    of_few, of_many = waited(fleet, few, "few"), waited(fleet, many, "many")
    assert of_few == [path.replace("many", "few") for path in of_many]


def test_the_watch_lists_nothing_twice(fleet: Fleet, many: Berths) -> None:
    seen: list[Request] = []
    with fleet.proxy.disturbed(before=seen.append):
        command = ("berth", "status", "-s", ENV, "--watch", "--json", "--interval", "0.5")
        with started(fleet.project, *command) as watch:
            assert watch.stdout is not None
            assert json.loads(watch.stdout.readline())["berths"]
            before = lists(seen)
            many.api.patch(f"{NAMESPACES}/{many.keys[0][0]}", {"metadata": {"labels": {STACK_LABEL: "x"}}}, "test")
            changed = json.loads(watch.stdout.readline())
    assert "x" in {berth["stack"] for berth in changed["berths"]}
    assert lists(seen) == before

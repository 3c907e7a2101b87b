"""`berth up` without checkpoints of the state, killed in its middle: the next one puts everything
in order, also where the settings have changed in between. Long:
`make chaos` kills at many more moments, and plain Pulumi, too.
"""

from collections.abc import Iterator

import pytest

from berth.cli.pulumi.update.runs import MANY
from chaos.fleet import ENV, Fleet, environment, launched
from chaos.kills import own_objects, update_killed
from tests.lab.conftest import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

NAMES = [f"eng-{number:02}" for number in range(MANY)]
KILLED_AT = 30
"""Write of an update that makes berths: six a berth."""
KILLED_DELETING_AT = 6
"""Write of an update that deletes berths: a RayCluster and a namespace a berth."""
UP = ("berth", "up", "-s", ENV, "--yes")


@pytest.fixture(scope="module")
def fleet(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """An environment that is up, reached through the proxy."""
    with launched(tmp_path_factory.mktemp("killed"), lab) as fleet:
        yield fleet


def settings_of(fleet: Fleet, *names: str) -> None:
    fleet.project.write(
        ENV, environment=environment(fleet.kubeconfig, fleet.lab.home.charts, names)
    )


def test_a_killed_update_is_finished_by_the_next_one(fleet: Fleet) -> None:
    """A berth that left the settings in between is shown, with the command that removes it."""
    settings_of(fleet, "bob", *NAMES)
    killed = update_killed(fleet, "killed", UP, write=KILLED_AT, target="engine")
    assert killed.code != 0
    began = {name for name in NAMES if f"Namespace /berth-{name}" in fleet.objects(ENV)}
    assert began, "the engine was killed too early"
    assert not [name for name in fleet.known(ENV) if "eng-" in name], (
        "the update did write checkpoints"
    )
    gone = min(began)
    rest = [name for name in NAMES if name != gone]
    settings_of(fleet, "bob", *rest)
    fleet.project.run("pulumi", "cancel", "-s", ENV, "--yes")
    again = fleet.run("again", *UP)
    assert again.code == 0, again.text
    assert fleet.project.status(ENV)["notInState"] == [f"berth-{gone}"]
    remove = ("kubectl", "delete", "namespace", f"berth-{gone}")
    assert " ".join(remove) in fleet.project.run("berth", "status", "-s", ENV, check=False).stdout
    assert " ".join(remove) in fleet.project.run("berth", "doctor", "-s", ENV, check=False).stdout
    fleet.project.run(*remove)
    assert fleet.project.status(ENV)["notInState"] == []
    found = own_objects(fleet, ENV)
    assert set(found) - fleet.known(ENV) == set()
    assert {name for name in NAMES if f"Namespace /berth-{name}" in found} == set(rest)
    assert fleet.project.preview(ENV) == {}


def test_a_killed_removal_is_finished_by_the_next_one(fleet: Fleet) -> None:
    """The state still has the berths that are gone."""
    settings_of(fleet, "bob", *NAMES)
    fleet.run("before", *UP)
    settings_of(fleet, "bob")
    killed = update_killed(
        fleet, "killed", (*UP, "--allow-destroy"), write=KILLED_DELETING_AT, target="engine"
    )
    assert killed.code != 0
    assert [name for name in fleet.known(ENV) if "eng-" in name], "the update did write checkpoints"
    fleet.project.run("pulumi", "cancel", "-s", ENV, "--yes")
    again = fleet.run("again", *UP, "--allow-destroy")
    assert again.code == 0, again.text
    assert {name for name in own_objects(fleet, ENV) if "eng-" in name} == set()
    assert {name for name in fleet.known(ENV) if "eng-" in name} == set()

"""gcloud's own linter on the commands that pages, workflows and messages show."""

import shutil
from pathlib import Path

import pytest

from tests.commands import ShownCommand, shown_commands
from tests.google.gcloud import NoLinterError, wrong_commands

NEWER = {
    "--enable-secret-sync": "docs.cloud.google.com/secret-manager/docs/sync-k8-secrets",
}
"""Options that an older gcloud lacks (528 does), with Google's page about them."""


@pytest.fixture(scope="module")
def commands() -> list[ShownCommand]:
    return shown_commands("gcloud")


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("docs/gke.md", "gcloud storage buckets update gs://some-project-berth-state --versioning"),
        # Options come from a variable of the page, and a line goes on in the next one.
        (
            "images/README.md",
            (
                "gcloud builds submit --project=some-project --region=1"
                " --service-account=projects/some-project/serviceAccounts/1"
                " --default-buckets-behavior=regional-user-owned-bucket --timeout=1h"
                " --tag=1/ray-podman:2.60.0-py311 images/ray-podman"
            ),
        ),
        (
            "cli/verbs/doctor/google_cloud/reservations.py",
            "gcloud compute reservations blocks list 1 --zone=1 --project=1",
        ),
        ("cli/verbs/doctor/google_cloud/permissions.py", "gcloud config get account"),
    ],
)
def test_commands_of_pages_and_messages_are_collected(
    commands: list[ShownCommand], place: str, text: str
) -> None:
    assert ShownCommand(place, text) in commands


def test_gcloud_takes_every_command(commands: list[ShownCommand], tmp_path: Path) -> None:
    if shutil.which("gcloud") is None:
        pytest.skip("gcloud is not installed: its linter judges no command here")
    bad = [
        ShownCommand("canary", "gcloud container clusters get-credentials prod --zonne=us-east1-b"),
        ShownCommand("canary", "gcloud container cluster list"),
    ]
    try:
        wrong = wrong_commands([*commands, *bad], tmp_path)
    except NoLinterError as error:
        pytest.skip(f"this gcloud has no linter of commands: {error}")
    caught = {place for place in wrong if place.startswith("canary")}
    assert len(caught) == len(bad)
    assert {
        place: problem
        for place, problem in wrong.items()
        if place not in caught and not any(option in place for option in NEWER)
    } == {}

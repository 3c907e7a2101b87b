"""Machine of the unit tests: without an account at Google and without a lab, whoever runs them."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from berth.cli.shell import lab_here
from berth.components.core.project import project_or_none
from berth.lab.home import CLONE

SLOW = """
    adding chaos/test_campaign.py cli/reach/test_completion.py cli/test_failures.py cli/test_main.py
    cli/test_manners.py cli/test_saved_plan.py cli/test_update.py
    cli/verbs/test_doctor_machine.py cli/verbs/test_doctor_rights.py cli/verbs/test_new.py
    cli/verbs/test_notebook.py components/gke/test_provider_fields.py
    components/gke/test_unknown_values.py components/programs/test_keeper.py
    stacks/test_image_mirror.py test_errors.py test_fuzz.py test_gcloud_commands.py
    test_imports.py test_site.py
""".split()
"""Files and folders that start programs or read everything: half of the time of the unit tests."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow tests, which `make test-quick` leaves out."""
    slow = {Path(__file__).parent / name for name in SLOW}
    for item in items:
        if item.path in slow or item.path.parent in slow:
            item.add_marker("slow")


@pytest.fixture(autouse=True)
def _event_loop() -> None:
    """Give the thread an event loop: Pulumi's outputs need one, and `asyncio.run` takes it away."""
    policy = asyncio.get_event_loop_policy()
    try:
        policy.get_event_loop()
    except RuntimeError:
        policy.set_event_loop(policy.new_event_loop())


@pytest.fixture(scope="session", autouse=True)
def _no_google_account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Refuse logins to GKE: an installed credential plugin would ask for a token of the user's."""
    program: Path = tmp_path_factory.mktemp("nobody") / "gke-gcloud-auth-plugin"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(program.parent), prepend=os.pathsep)
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_lab_of_the_clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Hide a lab that is up in the clone, which commands in the process of a test would enter."""
    nobodys = tmp_path_factory.mktemp("no-lab")

    def project() -> Path | None:
        found = project_or_none()
        return nobodys if found == CLONE else found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lab_here, "project_or_none", project)
        yield

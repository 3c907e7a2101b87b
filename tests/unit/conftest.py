"""Machine of the unit tests: without an account at Google and without a lab, whoever runs them."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from berth.cli.shell import lab_here
from berth.lab.home import CLONE
from berth.stacks.files import stack_file


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

    def project() -> Path:
        found = stack_file.project()
        return nobodys if found == CLONE else found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lab_here, "project", project)
        yield

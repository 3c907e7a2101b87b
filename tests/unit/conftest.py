"""Machine of the unit tests: without an account at Google, whoever runs them."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def _no_google_account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Refuse logins to GKE: an installed credential plugin would ask for a token of the user's."""
    program: Path = tmp_path_factory.mktemp("nobody") / "gke-gcloud-auth-plugin"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(program.parent), prepend=os.pathsep)
        yield

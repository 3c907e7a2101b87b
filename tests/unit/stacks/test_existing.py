"""Existing cluster: a kubeconfig that cannot be used is a problem of the settings."""

from pathlib import Path

import pytest

from berth.components.gke import ExistingCluster
from berth.stacks.load.stack import SettingsError
from berth.stacks.program.platform import existing_platform
from tests.unit.components.cluster.test_kubeconfig import write


def test_a_missing_kubeconfig_is_a_settings_error_with_what_makes_one(tmp_path: Path) -> None:
    settings = ExistingCluster(kubeconfig=str(tmp_path / "missing"))
    with pytest.raises(SettingsError) as raised:
        existing_platform("dev", settings, None)
    first, second = str(raised.value).splitlines()
    assert first == "stack dev: 1 problem in its settings; nothing was changed"
    assert second.startswith(
        f"environment.cluster.existing.kubeconfig: there is no file {tmp_path}/missing; write one"
    )


def test_a_credential_in_a_file_with_a_relative_path_is_refused(tmp_path: Path) -> None:
    user = {"client-certificate": "me.crt", "client-key-data": "a2V5"}
    (tmp_path / "me.crt").write_text("certificate")
    settings = ExistingCluster(
        kubeconfig=str(write(tmp_path, users=[{"name": "me", "user": user}]))
    )
    with pytest.raises(
        SettingsError, match=r"by a relative path, .* kubectl config view --raw --flatten"
    ):
        existing_platform("dev", settings, None)

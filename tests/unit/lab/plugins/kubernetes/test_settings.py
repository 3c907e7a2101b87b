"""Settings of the provider: which are taken, and which changes replace everything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.lab.plugins.kubernetes import settings
from berth.lab.plugins.provider import DiffRequest, Kind, ProviderError
from berth.lab.plugins.values import UNKNOWN


def document(token: str = "", *, server: str = "https://127.0.0.1:6443") -> str:
    return yaml.safe_dump(
        {
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": [{"name": "u", "user": {"token": token}}],
            "contexts": [{"name": "one", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "one",
        }
    )


def compare(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Kind]:
    return dict(settings.compare(DiffRequest("", "", {}, old, new, [])).detailed)


def test_settings_that_berth_gives() -> None:
    given = {"kubeconfig": document(), "enableServerSideApply": "true", "upsertExistingObjects": "true"}
    assert settings.read(given) == settings.Settings(document(), upsert=True)
    assert settings.read({"kubeconfig": UNKNOWN}) == settings.Settings(None)


def test_upserts_by_the_environment_unless_the_provider_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"kubeconfig": document()}
    assert not settings.read(given).upsert
    monkeypatch.setenv("PULUMI_K8S_UPSERT_EXISTING_OBJECTS", "true")
    assert settings.read(given).upsert
    assert not settings.read(given | {"upsertExistingObjects": "false"}).upsert
    monkeypatch.setenv("PULUMI_K8S_UPSERT_EXISTING_OBJECTS", "1")
    assert not settings.read(given).upsert


def test_the_default_provider_takes_the_file_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(document())
    monkeypatch.setenv("KUBECONFIG", str(file))
    assert settings.read({}) == settings.Settings(document())


def test_a_path_stands_for_its_file_and_the_state_has_no_credentials(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(document("my-token"))
    assert settings.read({"kubeconfig": str(file)}) == settings.Settings(document("my-token"))
    chosen = settings.read({"kubeconfig": str(file), "context": "one"}).kubeconfig
    assert yaml.safe_load(str(chosen)) == yaml.safe_load(document("my-token"))
    with pytest.raises(ProviderError, match="not the text of a kubeconfig"):
        settings.read({"kubeconfig": str(file), "context": "gone"})


@pytest.mark.parametrize(
    "given", [{"renderYamlToDirectory": "x"}, {"enableServerSideApply": "false"}, {"namespace": "x"}]
)
def test_a_setting_that_the_stand_in_lacks_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(ProviderError, match=rf"the setting {next(iter(given))}.* install the real one"):
        settings.read({"kubeconfig": document(), **given})


@pytest.mark.parametrize("text", [None, "", "a: [", "/home/x/.kube/config", "clusters: []"])
def test_a_text_that_is_not_a_kubeconfig_is_refused(text: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    with pytest.raises(ProviderError, match="not the text of a kubeconfig"):
        settings.read({"kubeconfig": text})


def test_another_cluster_replaces_and_new_credentials_do_not() -> None:
    here, there = {"kubeconfig": document()}, {"kubeconfig": document(server="https://127.0.0.1:7443")}
    assert compare(here, {"kubeconfig": document("new")}) == {"kubeconfig": Kind.UPDATE}
    assert compare(here, there) == {"kubeconfig": Kind.UPDATE_REPLACE}
    assert compare(here, {"kubeconfig": UNKNOWN}) == {"kubeconfig": Kind.UPDATE_REPLACE}
    same = {"clusterIdentifier": "lab"}
    assert compare({**here, **same}, {**there, **same}) == {"kubeconfig": Kind.UPDATE}
    assert compare({**here, **same}, {**here, "clusterIdentifier": "x"}) == {"clusterIdentifier": Kind.UPDATE_REPLACE}
    assert compare({**here, **same}, {**here, **same, "context": "one"}) == {"context": Kind.ADD}
    assert compare(here, here) == {}

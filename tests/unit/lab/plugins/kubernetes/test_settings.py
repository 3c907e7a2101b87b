from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.lab.plugins.kubernetes import kubeconfig, settings
from berth.lab.plugins.provider import DiffRequest, Kind, ProviderError
from berth.lab.plugins.values import UNKNOWN


def document(user: dict[str, Any] | None = None, *, server: str = "https://127.0.0.1:6443") -> str:
    return yaml.safe_dump(
        {
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": [{"name": "u", "user": user or {}}],
            "contexts": [
                {"name": "one", "context": {"cluster": "c", "user": "u", "namespace": "team"}},
                {"name": "two", "context": {"cluster": "missing", "user": "u"}},
            ],
            "current-context": "one",
        }
    )


def compare(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Kind]:
    return dict(settings.compare(DiffRequest("", "", {}, old, new, [])).detailed)


def test_contents_and_path_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(document())
    by_path, by_text = kubeconfig.load(str(path)), kubeconfig.load(document())
    assert by_path.identity == by_text.identity
    assert by_text.namespace == "team"


def test_json_is_yaml() -> None:
    assert kubeconfig.load(json.dumps(yaml.safe_load(document()))).server == "https://127.0.0.1:6443"


@pytest.mark.parametrize(
    ("text", "context", "message"),
    [
        ("/nowhere/kubeconfig", "", "cannot read the kubeconfig /nowhere/kubeconfig"),
        ("a: [\nb\n", "", "is not YAML in line"),
        ("clusters: []\nusers: []\n", "", "has no current context"),
        (document(), "three", "has no context 'three'; it has one, two"),
        (document(), "two", "has no cluster 'missing'; it has c"),
        (document(server="127.0.0.1"), "", "has no server address"),
    ],
)
def test_what_is_wrong_with_a_kubeconfig_is_said(text: str, context: str, message: str) -> None:
    with pytest.raises(ProviderError, match=message):
        kubeconfig.load(text, context)


def test_relative_files_are_named_from_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(document({"client-key": "key.pem"}))
    copy = json.loads(kubeconfig.standalone(kubeconfig.load(str(path))))
    assert copy["users"][0]["user"]["client-key"] == str(tmp_path / "key.pem")


def test_tokens_and_passwords() -> None:
    assert kubeconfig.credentials(kubeconfig.load(document({"token": "x"}))).headers == {"Authorization": "Bearer x"}
    pair = base64.b64encode(b"u:p").decode()
    login = kubeconfig.load(document({"username": "u", "password": "p"}))
    assert kubeconfig.credentials(login).headers == {"Authorization": f"Basic {pair}"}


def test_an_exec_plugin_gives_a_token(tmp_path: Path) -> None:
    plugin = tmp_path / "plugin"
    plugin.write_text('#!/bin/sh\necho "{\\"status\\": {\\"token\\": \\"$GIVEN\\"}}"\n')
    plugin.chmod(0o700)
    entry = {"command": str(plugin), "env": [{"name": "GIVEN", "value": "secret"}]}
    access = kubeconfig.load(document({"exec": entry}))
    assert kubeconfig.credentials(access).headers == {"Authorization": "Bearer secret"}


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo no login >&2; exit 3", r"gave no credentials \(exit code 3\): no login"),
        ("echo hello", "no ExecCredential"),
    ],
)
def test_an_exec_plugin_that_fails(tmp_path: Path, script: str, message: str) -> None:
    plugin = tmp_path / "plugin"
    plugin.write_text(f"#!/bin/sh\n{script}\n")
    plugin.chmod(0o700)
    with pytest.raises(ProviderError, match=message):
        kubeconfig.credentials(kubeconfig.load(document({"exec": {"command": str(plugin)}})))


def test_an_exec_plugin_that_is_missing() -> None:
    entry = {"command": "no-such-plugin", "installHint": "gcloud components install it"}
    with pytest.raises(ProviderError, match="it is not there: gcloud components install it"):
        kubeconfig.credentials(kubeconfig.load(document({"exec": entry})))


def test_settings_of_an_unknown_cluster_are_good() -> None:
    read = settings.read({"kubeconfig": UNKNOWN, "namespace": "n", "deleteUnreachable": "true"})
    assert (read.access, read.namespace, read.switches) == (None, "n", frozenset({"deleteUnreachable"}))


def test_switches_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_K8S_ENABLE_PATCH_FORCE", "true")
    assert settings.read({"kubeconfig": document()}).switches == {"enablePatchForce"}
    assert settings.read({"kubeconfig": document(), "enablePatchForce": "false"}).switches == frozenset()


@pytest.mark.parametrize("given", [{"renderYamlToDirectory": "x"}, {"enableServerSideApply": "false"}])
def test_what_the_stand_in_does_not_do_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(ProviderError, match="real"):
        settings.read({"kubeconfig": document(), **given})


def test_another_cluster_replaces_and_new_credentials_do_not() -> None:
    here, there = {"kubeconfig": document()}, {"kubeconfig": document(server="https://127.0.0.1:7443")}
    assert compare(here, {"kubeconfig": document({"token": "new"})}) == {"kubeconfig": Kind.UPDATE}
    assert compare(here, there) == {"kubeconfig": Kind.UPDATE_REPLACE}
    assert compare(here, {"kubeconfig": UNKNOWN}) == {"kubeconfig": Kind.UPDATE_REPLACE}
    same = {"clusterIdentifier": "lab"}
    assert compare({**here, **same}, {**there, **same}) == {"kubeconfig": Kind.UPDATE}
    assert compare({**here, **same}, {**here, "clusterIdentifier": "x"}) == {"clusterIdentifier": Kind.UPDATE_REPLACE}
    assert compare(here, here) == {}

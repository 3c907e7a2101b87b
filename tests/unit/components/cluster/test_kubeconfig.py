"""Kubeconfigs of this machine: one context of a file, the login to a cluster, merged files."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.components.cluster.kubeconfig import (
    KubeconfigError,
    Login,
    own_login,
    pinned_login,
    read_kubeconfig,
    without_credentials,
)
from berth.components.gke.kubeconfig import gke_kubeconfig
from tests.unit.cases import table


def write(folder: Path, **changes: Any) -> Path:
    config: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "gpus",
                "cluster": {"server": "https://10.0.0.1:6443", "certificate-authority": "ca.pem"},
            },
            {"name": "other", "cluster": {"server": "https://10.0.0.2:6443"}},
        ],
        "users": [
            {"name": "me", "user": {"token": "my-token"}},
            {"name": "you", "user": {"token": "your-token"}},
        ],
        "contexts": [
            {
                "name": "gpus-me",
                "context": {"cluster": "gpus", "user": "me", "namespace": "default"},
            },
            {"name": "other-you", "context": {"cluster": "other", "user": "you"}},
        ],
        "current-context": "gpus-me",
    }
    (folder / "ca.pem").write_bytes(b"certificate")
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(config | changes))
    return path


def test_one_context_is_kept_with_all_that_it_needs(tmp_path: Path) -> None:
    context = read_kubeconfig(write(tmp_path)).context(None)
    text = context.as_json()
    assert context.server == "https://10.0.0.1:6443"
    config = json.loads(text)
    assert config["clusters"] == [
        {
            "name": "gpus",
            "cluster": {
                "server": "https://10.0.0.1:6443",
                "certificate-authority-data": base64.b64encode(b"certificate").decode(),
            },
        }
    ]
    assert config["users"] == [{"name": "me", "user": {"token": "my-token"}}]
    assert config["current-context"] == "gpus-me"
    assert "your-token" not in text, "a process has nobody else's credentials"


def test_a_context_can_be_named(tmp_path: Path) -> None:
    context = read_kubeconfig(write(tmp_path)).context("other-you")
    text = context.as_json()
    assert context.server == "https://10.0.0.2:6443"
    assert json.loads(text)["current-context"] == "other-you"


@pytest.mark.parametrize(
    ("changes", "context", "key", "message"), table(__file__, "kubeconfigs.yaml")
)
def test_what_is_wrong_with_a_kubeconfig_is_said(
    tmp_path: Path, changes: dict[str, Any], context: str | None, key: str, message: str
) -> None:
    with pytest.raises(KubeconfigError) as raised:
        read_kubeconfig(write(tmp_path, **changes)).context(context)
    assert message in str(raised.value)
    assert raised.value.key == key


def test_a_file_that_is_named_and_missing_is_named(tmp_path: Path) -> None:
    path = write(tmp_path)
    (tmp_path / "ca.pem").unlink()
    with pytest.raises(
        KubeconfigError, match=r"names .*ca\.pem, which cannot be read: No such file"
    ):
        read_kubeconfig(path).context().as_json()


@pytest.mark.parametrize(
    ("content", "message"),
    [("{", "it is not YAML (line 1)"), ("- 1", "it has no list of clusters")],
)
def test_a_file_that_is_no_kubeconfig(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(content)
    with pytest.raises(KubeconfigError) as raised:
        read_kubeconfig(path).context().as_json()
    assert message in str(raised.value)


SECRETS: list[dict[str, Any]] = [
    {"token": "canary"},
    {"username": "me", "password": "canary"},
    {"client-certificate-data": "canary", "client-key-data": "canary"},
    {"auth-provider": {"name": "oidc", "config": {"refresh-token": "canary"}}},
    {
        "exec": {
            "command": "aws",
            "args": ["canary"],
            "env": [{"name": "AWS_SECRET_ACCESS_KEY", "value": "canary"}],
        }
    },
]


@pytest.mark.parametrize("user", SECRETS)
def test_no_credential_leaves_the_machine(tmp_path: Path, user: dict[str, Any]) -> None:
    text = (
        read_kubeconfig(write(tmp_path, users=[{"name": "me", "user": user}])).context().as_json()
    )
    assert "canary" in text
    public = without_credentials(text)
    assert "canary" not in public
    assert json.loads(public)["users"] == []
    (cluster,) = json.loads(public)["clusters"]
    assert cluster["cluster"].keys() == {"server", "certificate-authority-data"}


def test_gkes_plugin_stays_without_what_its_user_added(tmp_path: Path) -> None:
    added = {
        "command": "/opt/bin/gke-gcloud-auth-plugin",
        "args": ["canary"],
        "env": [{"name": "T", "value": "canary"}],
    }
    text = (
        read_kubeconfig(write(tmp_path, users=[{"name": "me", "user": {"exec": added}}]))
        .context()
        .as_json()
    )
    public = without_credentials(text)
    assert "canary" not in public
    assert json.loads(public)["users"][0]["user"]["exec"]["command"] == "gke-gcloud-auth-plugin"
    assert own_login(public, None) == (public, None), "it needs no other login"


@pytest.mark.parametrize(("user", "words"), table(__file__, "logins.yaml"))
@pytest.mark.parametrize("clusters", [True, False])
def test_a_state_runs_nothing_on_a_machine_but_gkes_own_login(
    user: dict[str, Any], words: str, *, clusters: bool
) -> None:
    config = json.loads(gke_kubeconfig("prod", "10.0.0.1", "Y2E="))
    config["users"][0]["user"] = user
    if not clusters:
        config["clusters"] = []
    with pytest.raises(KubeconfigError) as raised:
        own_login(json.dumps(config), None)
    assert f"asks for {words}" in str(raised.value)
    assert "berth takes no login from a state but gke-gcloud-auth-plugin" in str(raised.value)


def test_gkes_own_login_is_the_one_that_a_state_has() -> None:
    text = gke_kubeconfig("prod", "10.0.0.1", "Y2E=")
    assert own_login(text, None) == (text, None)


def public_of(path: Path) -> str:
    return without_credentials(read_kubeconfig(path).context().as_json())


def test_everybody_logs_in_with_a_kubeconfig_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = public_of(write(tmp_path))
    own = tmp_path / "own"
    own.mkdir()
    # Their current context is another cluster's, and the server's address ends with a slash.
    clusters = [
        {"name": "other", "cluster": {"server": "https://10.0.0.2:6443"}},
        {"name": "theirs", "cluster": {"server": "https://10.0.0.1:6443/"}},
    ]
    contexts = [
        {"name": "elsewhere", "context": {"cluster": "other", "user": "you"}},
        {"name": "here", "context": {"cluster": "theirs", "user": "you"}},
    ]
    path = write(own, clusters=clusters, contexts=contexts, **{"current-context": "elsewhere"})
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'missing'}:{path}")
    text, login = own_login(public, Login(kubeconfig=str(tmp_path / "gone"), context="gpus"))
    assert login == Login(kubeconfig=str(path), context="here")
    config = json.loads(text)
    assert (config["current-context"], config["users"]) == (
        "here",
        [{"name": "you", "user": {"token": "your-token"}}],
    )


def test_a_named_kubeconfig_of_another_cluster_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "missing"))
    named = Login(kubeconfig=str(path), context="other-you")
    with pytest.raises(
        KubeconfigError,
        match=r"no kubeconfig of yours logs in to https://10\.0\.0\.1:6443 \(looked in",
    ):
        own_login(public_of(path), named)
    named = Login(kubeconfig=str(path), context="gpus-me")
    assert own_login(public_of(path), named)[1] == named


def test_files_of_kubeconfig_are_merged_as_kubectl_merges_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = public_of(write(tmp_path))
    first = tmp_path / "a"
    second = tmp_path / "b"
    first.mkdir()
    second.mkdir()
    contexts = [{"name": "here", "context": {"cluster": "gpus", "user": "me"}}]
    one = write(first, users=[], contexts=contexts, **{"current-context": "here"})
    other_users = [{"name": "me", "user": {"client-certificate": "me.crt", "client-key": "me.key"}}]
    for name in ("me.crt", "me.key"):
        (second / name).write_text(name)
    other = second / "kubeconfig"
    other.write_text(yaml.safe_dump({"users": other_users, "current-context": "elsewhere"}))
    monkeypatch.setenv("KUBECONFIG", f"{one}:{other}")
    text, login = own_login(public, None)
    assert login == Login("", "here"), "Pulumi's provider reads KUBECONFIG itself"
    assert pinned_login(login, text) == login
    config = json.loads(text)
    assert config["current-context"] == "here"
    assert config["users"][0]["user"] == {
        "client-certificate-data": base64.b64encode(b"me.crt").decode(),
        "client-key-data": base64.b64encode(b"me.key").decode(),
    }, "a path is relative to the file that has it"


def test_the_first_file_of_kubeconfig_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = public_of(write(tmp_path))
    first = tmp_path / "a"
    second = tmp_path / "b"
    first.mkdir()
    second.mkdir()
    one = write(first, users=[{"name": "me", "user": {"token": "first"}}])
    other = write(second, users=[{"name": "me", "user": {"token": "second"}}])
    monkeypatch.setenv("KUBECONFIG", f"{one}:{other}")
    text, login = own_login(public, None)
    assert login == Login(str(one), "gpus-me")
    assert json.loads(text)["users"] == [{"name": "me", "user": {"token": "first"}}]


KUBECONFIG = """clusters:
- name: c
  cluster: {{server: "https://10.0.0.1", certificate-authority: {authority}}}
users: [{{name: u, user: {user}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
current-context: {current}
"""


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (
            {"user": "{token: 2026-01-01}"},
            "is not a kubeconfig: Object of type date is not JSON serializable",
        ),
        ({"user": "&a {token: *a}"}, "it is not YAML (line 4): has an anchor that contains itself"),
        ({"user": "{token: 2026-13-01}"}, "it is not YAML (line 4): '2026-13-01' has no value"),
        ({"user": f"{{token: 1{'0' * 5000}}}"}, "it is not YAML (line 4): '1000"),
        ({"user": "{a: " * 5000}, "it is not YAML (line 4): is nested more than 50 levels deep"),
        ({"current": "[x]"}, "has no context \"['x']\""),
        ({"authority": '"a\\0b"'}, "it is not YAML (line 3): has the character '\\x00'"),
        ({"authority": "/dev/zero"}, "names /dev/zero, which cannot be read: it is not a file"),
    ],
)
def test_a_kubeconfig_that_cannot_be_used(
    tmp_path: Path, values: dict[str, str], problem: str
) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(
        KUBECONFIG.format(**{"authority": "/etc/hostname", "user": "{}", "current": "x"} | values)
    )
    with pytest.raises(KubeconfigError) as caught:
        read_kubeconfig(path).context().as_json()
    assert problem in str(caught.value)


def test_a_kubeconfig_is_a_file(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match="it is not a file"):
        read_kubeconfig(Path("/dev/zero"))
    with pytest.raises(KubeconfigError, match="it is not a file"):
        read_kubeconfig(tmp_path)

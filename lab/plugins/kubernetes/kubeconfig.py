"""Kubeconfigs: which server, and how to prove who we are.

Read by hand rather than with `kubernetes.config`: importing that costs a third of a second of every `pulumi up`, and
the plugin starts anew for each. Understood are certificate authorities, client certificates, tokens, user and password,
and `exec` plugins (such as `gke-gcloud-auth-plugin`), each as data or as a file.

Answers to (read): "Organizing Cluster Access Using kubeconfig Files" and "Authenticating" (client-go credential
    plugins): https://kubernetes.io/docs/reference/access-authn-authz/authentication/
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import ssl
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from berth.lab.plugins.provider import ProviderError

_EXEC_SECONDS = 60


@dataclass(frozen=True)
class Access:
    """One server, and the user as whom to speak to it.

    Attributes:
        server: the API server's address, without a slash at the end.
        namespace: the context's namespace, or nothing.
        identity: what tells one cluster from another: address and certificate authority.
        cluster: the kubeconfig's cluster entry.
        user: the kubeconfig's user entry.
        folder: what relative file names in it start from.
        document: the whole kubeconfig, with the chosen context as the current one.
    """

    server: str
    namespace: str
    identity: tuple[str, ...]
    cluster: dict[str, Any] = field(repr=False)
    user: dict[str, Any] = field(repr=False)
    folder: Path
    document: dict[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Credentials:
    """What a request needs to be let in.

    Attributes:
        headers: headers of every request.
        tls: how to check the server and show a client certificate.
    """

    headers: dict[str, str] = field(repr=False)
    tls: ssl.SSLContext = field(repr=False)


def load(text: str, context: str = "", cluster: str = "") -> Access:
    """The access that a kubeconfig gives.

    Args:
        text: the kubeconfig's contents, or a path to it; nothing for `KUBECONFIG` or `~/.kube/config`.
        context: the context to use instead of the current one.
        cluster: the cluster to use instead of the context's.

    Raises:
        ProviderError: it cannot be read, or names something that it does not have.
    """
    document, folder, source = _read(text)
    context = context or str(document.get("current-context") or "")
    if not context:
        raise ProviderError(f"the kubeconfig {source} has no current context; set one, or name it in `context`")
    chosen = dict(_entry(document, "contexts", context, source).get("context") or {})
    chosen["cluster"] = cluster or chosen.get("cluster", "")
    cluster_entry = _entry(document, "clusters", str(chosen["cluster"]), source).get("cluster") or {}
    user_entry = _entry(document, "users", str(chosen.get("user", "")), source).get("user") or {}
    server = str(cluster_entry.get("server") or "").rstrip("/")
    if not server.startswith(("https://", "http://")):
        raise ProviderError(f"the cluster {chosen['cluster']} of the kubeconfig {source} has no server address")
    authority = str(cluster_entry.get("certificate-authority-data") or cluster_entry.get("certificate-authority") or "")
    current = "berth-context"
    contexts = [*(document.get("contexts") or []), {"name": current, "context": chosen}]
    return Access(
        server=server,
        namespace=str(chosen.get("namespace") or ""),
        identity=(server, authority),
        cluster=cluster_entry,
        user=user_entry,
        folder=folder,
        document={**document, "contexts": contexts, "current-context": current},
    )


def credentials(access: Access) -> Credentials:
    """Credentials as the kubeconfig says, asking its `exec` plugin where it has one.

    Raises:
        ProviderError: a file is missing or broken, or the plugin fails.
    """
    user = dict(access.user)
    if user.get("exec"):
        user.update(_from_plugin(access, user["exec"]))
    headers = {}
    token = user.get("token") or _file_text(access, user.get("tokenFile"))
    if token:
        headers["Authorization"] = f"Bearer {token.strip()}"
    elif user.get("username"):
        pair = f"{user['username']}:{user.get('password', '')}".encode()
        headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
    return Credentials(headers, _tls(access, user))


def standalone(access: Access) -> str:
    """The kubeconfig as a text that works from any folder, for programs that we start."""
    document = json.loads(json.dumps(access.document))
    for entries, key in (("clusters", "cluster"), ("users", "user")):
        for entry in document.get(entries) or []:
            for name in ("certificate-authority", "client-certificate", "client-key", "tokenFile"):
                if (entry.get(key) or {}).get(name):
                    entry[key][name] = str(access.folder / entry[key][name])
    return json.dumps(document)


def _read(text: str) -> tuple[dict[str, Any], Path, str]:
    if not text.strip():
        listed = [part for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
        text = next((part for part in listed if Path(part).exists()), listed[0] if listed else "~/.kube/config")
    folder, source = Path.cwd(), "given as text"
    if "\n" not in text.strip() and not text.lstrip().startswith("{"):
        path = Path(text.strip()).expanduser()
        source = str(path)
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise ProviderError(f"cannot read the kubeconfig {path}: {error.strerror}") from error
        folder = path.parent.resolve()
    try:
        document = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 (both are safe)
    except yaml.YAMLError as error:
        place = getattr(error, "problem_mark", None)
        where = f" in line {place.line + 1}" if place else ""
        raise ProviderError(f"the kubeconfig {source} is not YAML{where}") from error
    if not isinstance(document, dict):
        raise ProviderError(f"the kubeconfig {source} has no clusters, users and contexts")
    return document, folder, source


def _entry(document: dict[str, Any], section: str, name: str, source: str) -> dict[str, Any]:
    entries = [entry for entry in document.get(section) or [] if isinstance(entry, dict)]
    for entry in entries:
        if entry.get("name") == name:
            return entry
    known = ", ".join(str(entry.get("name")) for entry in entries) or "none"
    raise ProviderError(f"the kubeconfig {source} has no {section[:-1]} {name!r}; it has {known}")


def _from_plugin(access: Access, plugin: dict[str, Any]) -> dict[str, Any]:
    command = str(plugin.get("command") or "")
    version = str(plugin.get("apiVersion") or "client.authentication.k8s.io/v1")
    # A path with a folder in it is meant from the kubeconfig's folder, a bare name from PATH.
    program = str(access.folder / command) if "/" in command else command
    spec: dict[str, Any] = {"interactive": False}
    if plugin.get("provideClusterInfo"):
        spec["cluster"] = {
            "server": access.server,
            "certificate-authority-data": access.cluster.get("certificate-authority-data", ""),
        }
    asked = {"kind": "ExecCredential", "apiVersion": version, "spec": spec}
    environment = {item["name"]: item["value"] for item in plugin.get("env") or []}
    try:
        done = subprocess.run(
            [program, *(plugin.get("args") or [])],
            env={**os.environ, **environment, "KUBERNETES_EXEC_INFO": json.dumps(asked)},
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=_EXEC_SECONDS,
            check=False,
        )
    except FileNotFoundError as error:
        hint = plugin.get("installHint") or "install it, or put its folder on PATH"
        raise ProviderError(f"the kubeconfig asks {command} for credentials, and it is not there: {hint}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProviderError(f"the kubeconfig asks {command} for credentials: {error}") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise ProviderError(f"{command} gave no credentials (exit code {done.returncode}): {last}")
    try:
        status = json.loads(done.stdout)["status"]
    except (ValueError, KeyError, TypeError) as error:
        raise ProviderError(f"{command} answered something that is no ExecCredential") from error
    answer: dict[str, Any] = {}
    if status.get("token"):
        answer["token"] = status["token"]
    for key, ours in (("clientCertificateData", "client-certificate-pem"), ("clientKeyData", "client-key-pem")):
        if status.get(key):
            answer[ours] = status[key]
    return answer


def _tls(access: Access, user: dict[str, Any]) -> ssl.SSLContext:
    authority = _pem(access, access.cluster, "certificate-authority")
    try:
        context = ssl.create_default_context(cadata=authority or None)
        # What Python adds to its defaults, and Kubernetes' own authorities do not always meet.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if access.cluster.get("insecure-skip-tls-verify"):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        certificate = user.get("client-certificate-pem") or _pem(access, user, "client-certificate")
        key = user.get("client-key-pem") or _pem(access, user, "client-key")
        if certificate and key:
            # The ssl module only takes files; the folder is ours alone and gone at once.
            with tempfile.TemporaryDirectory(prefix="berth-kubernetes-") as folder:
                pair = Path(folder) / "pair.pem"
                pair.touch(mode=0o600)
                pair.write_text(f"{certificate}\n{key}\n", encoding="utf-8")
                context.load_cert_chain(pair)
    except ssl.SSLError as error:
        raise ProviderError(f"the kubeconfig's certificates for {access.server} cannot be used: {error}") from error
    return context


def _pem(access: Access, entry: dict[str, Any], name: str) -> str:
    data = entry.get(f"{name}-data")
    if data:
        try:
            return base64.b64decode(data, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError) as error:
            raise ProviderError(f"the kubeconfig's {name}-data for {access.server} is not base64 of PEM") from error
    return _file_text(access, entry.get(name))


def _file_text(access: Access, name: Any) -> str:
    if not name:
        return ""
    path = access.folder / str(name)
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ProviderError(f"cannot read {path}, which the kubeconfig names: {error.strerror}") from error

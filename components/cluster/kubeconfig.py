"""Kubeconfigs of this machine: read, merged as kubectl merges them, and one context taken out.

The files of KUBECONFIG are one configuration: of several entries with one name the first counts,
and so does the first current context
(https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig, "Merging
kubeconfig files"). The `kubernetes` package has a merger too, but it does not export it, the merger
takes the last current context, and its errors have no lines.

A stack's state has the API server and its certificate authority, and no credential. Whoever runs
Pulumi or berth logs in with a kubeconfig of their own, or by GKE's credential plugin.
"""

import base64
import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from berth.components.core.errors import BadInputError
from berth.components.core.nearest import did_you_mean
from berth.components.core.project import path_of_setting, shown_path
from berth.components.core.yaml_document import DocumentError, plain_value, read_yaml

DEFAULT_KUBECONFIG = "~/.kube/config"
"""Kubeconfig of a user without the variable KUBECONFIG."""

GKE_PLUGIN = "gke-gcloud-auth-plugin"
"""Command of GKE's credential plugin."""

GKE_LOGIN: dict[str, Any] = {
    "exec": {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": GKE_PLUGIN,
        "installHint": f"install {GKE_PLUGIN}: gcloud components install {GKE_PLUGIN}",
        "provideClusterInfo": True,
    }
}
"""User of a kubeconfig who logs in by GKE's credential plugin."""

_LARGEST_BYTES = 1 << 20

_CONTENTS = {
    "certificate-authority": "certificate-authority-data",
    "client-certificate": "client-certificate-data",
    "client-key": "client-key-data",
}
"""Keys of files in a kubeconfig, with the key for the file's content."""

_PUBLIC = ("server", "certificate-authority-data", "tls-server-name", "insecure-skip-tls-verify")
"""Keys of a cluster that say where it is, and how to know it."""

_FOREIGN = {"auth-provider", "tokenFile"}
"""Keys of a user that run a program, or send a file of this machine to the server."""


class KubeconfigError(BadInputError):
    """Kubeconfig that cannot be used; `key` is the wrong setting: `kubeconfig` or `context`."""

    def __init__(self, problem: str, key: str = "kubeconfig") -> None:
        super().__init__(problem)
        self.key = key


@dataclass(frozen=True)
class Login:
    """Context of a kubeconfig on this machine, by which somebody logs in to a cluster.

    Attributes:
        kubeconfig: file, as settings write it; empty for the files of KUBECONFIG together.
        context: name of the context; None for the current one.
    """

    kubeconfig: str
    context: str | None = None


@dataclass(frozen=True)
class _KubeconfigEntry:
    """Cluster, user or context of a kubeconfig, and the file that has it."""

    values: dict[str, Any]
    file: Path

    def without_files(self) -> dict[str, Any]:
        """Return the values with the contents of files in place of their paths.

        Raises:
            KubeconfigError: a file cannot be read.
        """
        values: dict[str, Any] = {}
        for key, value in self.values.items():
            if key == "tokenFile":
                values[key] = str(self.file.parent / value)
            elif key not in _CONTENTS:
                values[key] = value
            elif not self.values.get(_CONTENTS[key]):
                values[_CONTENTS[key]] = self._content(str(value))
        return values

    def relative_path(self) -> str:
        """Return a path of a file that is relative to the kubeconfig's; empty without one."""
        for key, value in self.values.items():
            is_path = key in _CONTENTS or key == "tokenFile"
            has_content = bool(self.values.get(f"{key}-data"))
            if is_path and not has_content and not Path(str(value)).is_absolute():
                return str(value)
        return ""

    def _content(self, path: str) -> str:
        file = self.file.parent / path
        try:
            return base64.b64encode(_bytes_of(file)).decode()
        except OSError as error:
            raise KubeconfigError(
                f"{shown_path(self.file)} names {shown_path(file)}, which cannot be read:"
                f" {error.strerror or error}; look at the file and its permissions"
            ) from None


@dataclass(frozen=True)
class KubeconfigContext:
    """One context of a kubeconfig, with its cluster and its user."""

    name: str
    context: _KubeconfigEntry
    cluster: _KubeconfigEntry
    user: _KubeconfigEntry

    @property
    def server(self) -> str:
        """Address of the cluster's API server."""
        return str(self.cluster.values["server"])

    @property
    def file(self) -> Path | None:
        """File that has the whole context; None where parts of it are in others."""
        files = {self.context.file, self.cluster.file, self.user.file}
        return files.pop() if len(files) == 1 else None

    def as_json(self) -> str:
        """Return the context as a kubeconfig that names no files and has no other credentials.

        It has the credentials of this context: only this process may use it.

        Raises:
            KubeconfigError: a file that it names cannot be read.
        """
        cluster = self.context.values.get("cluster")
        user = self.context.values.get("user")
        return json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": cluster, "cluster": self.cluster.without_files()}],
                "users": [{"name": user, "user": self.user.without_files()}],
                "contexts": [{"name": self.name, "context": self.context.values}],
                "current-context": self.name,
            }
        )

    def refuse_relative_paths(self) -> None:
        """Refuse paths that are relative to the kubeconfig.

        Raises:
            KubeconfigError: Pulumi's provider, which gets the text, would not find the file.
        """
        path = self.cluster.relative_path() or self.user.relative_path()
        if path:
            file = shown_path(self.context.file)
            raise KubeconfigError(
                f"{file}: context {self.name!r} names {path} by a relative path, which Pulumi's"
                " provider would not find; write a file without such paths:"
                f" KUBECONFIG={file} kubectl config view --raw --flatten"
            )


@dataclass(frozen=True)
class Kubeconfig:
    """Kubeconfig: one file, or several that are merged.

    Attributes:
        files: the files, in the order in which they count.
        current_context: name of the current context; empty without one.
    """

    files: tuple[Path, ...]
    contexts: Mapping[str, _KubeconfigEntry]
    clusters: Mapping[str, _KubeconfigEntry]
    users: Mapping[str, _KubeconfigEntry]
    current_context: str

    def context(self, name: str | None = None) -> KubeconfigContext:
        """Return a context by its name; by default the current one.

        Raises:
            KubeconfigError: there is no such context, or it lacks a part.
        """
        where = ", ".join(map(shown_path, self.files))
        known = ", ".join(sorted(self.contexts)) or "none"
        chosen = name or self.current_context
        if not chosen:
            raise KubeconfigError(
                f"{where} has no current context; name one of its contexts with `context`"
                f" ({known})",
                "context",
            )
        if chosen not in self.contexts:
            raise KubeconfigError(
                f"{where} has no context {chosen!r}{did_you_mean(chosen, self.contexts)}; it has:"
                f" {known}",
                "context" if name else "kubeconfig",
            )
        context = self.contexts[chosen]
        cluster_name = context.values.get("cluster")
        user_name = context.values.get("user")
        cluster = self.clusters.get(str(cluster_name))
        user = self.users.get(str(user_name))
        if cluster is None or not cluster.values.get("server"):
            raise KubeconfigError(
                f"{where}: context {chosen!r} names cluster {cluster_name!r}, which has no address"
                " there; write the kubeconfig again"
            )
        if user is None:
            raise KubeconfigError(
                f"{where}: context {chosen!r} names user {user_name!r}, who is not there;"
                " write the kubeconfig again"
            )
        return KubeconfigContext(chosen, context, cluster, user)


def read_kubeconfig(path: Path) -> Kubeconfig:
    """Return the kubeconfig in a file.

    Raises:
        KubeconfigError: there is no such file, or it is not a kubeconfig.
    """
    config = _parsed(path)
    if not isinstance(config.get("clusters"), list):
        raise KubeconfigError(
            f"{shown_path(path)} is not a kubeconfig: it has no list of clusters; name a kubeconfig"
        )
    return _merged({path: config})


def own_kubeconfig() -> Kubeconfig:
    """Return the kubeconfig of this machine's user: the files of KUBECONFIG that can be read."""
    configs: dict[Path, dict[str, Any]] = {}
    for path in _own_files():
        with suppress(KubeconfigError):
            configs[path] = _parsed(path)
    return _merged(configs)


def own_login(text: str, named: Login | None) -> tuple[str, Login | None]:
    """Return a cluster's kubeconfig with the login of this machine's user.

    Args:
        text: kubeconfig of the cluster, as the environment's stack has it.
        named: login that the settings name, which is used if it leads to the cluster.

    Returns:
        The kubeconfig as text, and the login; None where `text` has one.

    Raises:
        KubeconfigError: no kubeconfig of this machine has the cluster, or `text` has another login
            than GKE's.
    """
    clusters = _loaded(text).get("clusters")
    if has_login(text) or not clusters:
        return text, None
    server = str(clusters[0]["cluster"]["server"]).rstrip("/")
    if named:
        with suppress(KubeconfigError):
            context = read_kubeconfig(_path_of(named)).context(named.context)
            if context.server.rstrip("/") == server:
                return context.as_json(), named
    own = own_kubeconfig()
    for name in (own.current_context, *own.contexts):
        with suppress(KubeconfigError):
            context = own.context(name)
            if context.server.rstrip("/") == server:
                return context.as_json(), Login(str(context.file or ""), context.name)
    looked = ", ".join(map(shown_path, _own_files()))
    raise KubeconfigError(
        f"no kubeconfig of yours logs in to {server} (looked in {looked}); ask an admin of the"
        " cluster for a login, or name the file with KUBECONFIG"
    )


def pinned_login(login: Login, text: str) -> Login:
    """Return a login with its context, which `kubectl config use-context` then does not change.

    Args:
        login: login of the kubeconfig.
        text: kubeconfig of one context, as `own_login` returns it.

    Raises:
        KubeconfigError: it names files by relative paths, which Pulumi's provider would not find.
    """
    name = str(json.loads(text)["current-context"])
    if login.kubeconfig:
        # The provider gets the text of one file. Files of KUBECONFIG it reads itself.
        read_kubeconfig(_path_of(login)).context(name).refuse_relative_paths()
    return Login(login.kubeconfig, name)


def without_credentials(text: str) -> str:
    """Return a kubeconfig of one context with the server and its certificate authority only.

    GKE's credential plugin stays, as berth's own clusters have it: it names nobody. The command of
    another plugin does not, since it would run on the machines of everyone who reads the output.
    """
    config = json.loads(text)
    (cluster,) = config["clusters"]
    (user,) = config["users"]
    (context,) = config["contexts"]
    plugin = user["user"].get("exec")
    command = str(plugin.get("command", "")) if isinstance(plugin, dict) else ""
    public = {key: cluster["cluster"][key] for key in _PUBLIC if key in cluster["cluster"]}
    parts = {"cluster": cluster["name"]}
    users = []
    if Path(command).name == GKE_PLUGIN:
        parts["user"] = user["name"]
        users.append({"name": user["name"], "user": GKE_LOGIN})
    return json.dumps(
        config
        | {
            "clusters": [{"name": cluster["name"], "cluster": public}],
            "users": users,
            "contexts": [{"name": context["name"], "context": parts}],
        }
    )


def has_login(text: str) -> bool:
    """Return whether a stack's output `kubeconfig` has a login: GKE's credential plugin.

    Raises:
        KubeconfigError: the login runs another program on this machine, or reads a file of it.
    """
    users = [entry.get("user") or {} for entry in _loaded(text).get("users") or ()]
    for user in users:
        plugin = user.get("exec") or GKE_LOGIN["exec"]
        asked = [plugin.get("command"), *(plugin.get("args") or ())]
        if plugin.get("env"):
            asked.append("with variables")
        asked += sorted(_FOREIGN & user.keys())
        if asked != [GKE_PLUGIN]:
            raise KubeconfigError(
                "the login of the environment's output `kubeconfig` asks for"
                f" {' '.join(map(str, asked))!r}; so whoever writes the environment's state could"
                " run programs and read files on your machine, and berth takes no login from a"
                f" state but {GKE_PLUGIN}; find out who wrote it, then write it again with pulumi"
                " up -s ENVIRONMENT"
            )
    return bool(users)


def _own_files() -> list[Path]:
    """Return the kubeconfigs of this machine's user, as kubectl finds them."""
    files = [Path(part) for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    return files or [Path(DEFAULT_KUBECONFIG).expanduser()]


def _path_of(login: Login) -> Path:
    try:
        return path_of_setting(login.kubeconfig)
    except BadInputError as error:
        raise KubeconfigError(error.problem) from None


def _loaded(text: str) -> dict[str, Any]:
    """Return the kubeconfig in a stack's output."""
    loaded = yaml.safe_load(text)
    return loaded if isinstance(loaded, dict) else {}


def _parsed(path: Path) -> dict[str, Any]:
    """Return the mapping in a file, as plain values; an empty one for another value.

    Raises:
        KubeconfigError: there is no such file, or it is not the YAML of a kubeconfig.
    """
    name = shown_path(path)
    try:
        config = plain_value(read_yaml(_bytes_of(path).decode("utf-8")))
        # What leaves the machine is JSON, which has no dates.
        json.dumps(config)
    except FileNotFoundError:
        raise KubeconfigError(
            f"there is no file {name}; write one, for example: KUBECONFIG={name} gcloud container"
            " clusters get-credentials CLUSTER --location LOCATION --project PROJECT"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise KubeconfigError(
            f"{name} cannot be read: {error}; look at the file and its permissions"
        ) from None
    except DocumentError as error:
        line = f" (line {error.line})" if error.line else ""
        raise KubeconfigError(
            f"{name} is not a kubeconfig: it is not YAML{line}: {error.problem};"
            " correct it, or name another file"
        ) from None
    except TypeError as error:
        raise KubeconfigError(
            f"{name} is not a kubeconfig: {error}; put the value in quotes"
        ) from None
    return config if isinstance(config, dict) else {}


def _bytes_of(path: Path) -> bytes:
    """Return the bytes of a file of a sensible size: a device would have no end.

    Raises:
        OSError: there is no such file.
    """
    if path.exists() and not path.is_file():
        raise OSError("it is not a file")
    if path.stat().st_size > _LARGEST_BYTES:
        raise OSError(f"it is larger than {_LARGEST_BYTES >> 20} MiB")
    return path.read_bytes()


def _merged(configs: Mapping[Path, dict[str, Any]]) -> Kubeconfig:
    """Return one kubeconfig of several files, of which the first that has an entry counts."""
    currents = [str(config.get("current-context") or "") for config in configs.values()]
    return Kubeconfig(
        files=tuple(configs),
        contexts=_entries(configs.items(), "contexts", "context"),
        clusters=_entries(configs.items(), "clusters", "cluster"),
        users=_entries(configs.items(), "users", "user"),
        current_context=next(filter(None, currents), ""),
    )


def _entries(
    configs: Iterable[tuple[Path, dict[str, Any]]], key: str, inner: str
) -> dict[str, _KubeconfigEntry]:
    """Return the named entries of a list of all files, without malformed ones."""
    named: dict[str, _KubeconfigEntry] = {}
    for path, config in configs:
        entries = config.get(key)
        for entry in entries if isinstance(entries, list) else ():
            if not isinstance(entry, dict) or "name" not in entry or inner not in entry:
                continue
            values = entry[inner] or {}
            if isinstance(values, dict):
                named.setdefault(str(entry["name"]), _KubeconfigEntry(values, path))
    return named

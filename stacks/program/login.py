"""Logins to a cluster: one context of a kubeconfig, and what of it may leave the machine.

A stack's state has the API server and its certificate authority, and no credential. Whoever runs
Pulumi or berth logs in with a kubeconfig of their own, or by GKE's credential plugin.
"""

import base64
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from berth.components.core.errors import BadInputError
from berth.components.core.nearest import did_you_mean
from berth.components.core.project import path_of_setting, shown_path
from berth.components.core.yaml_document import DocumentError, plain_value, read_yaml
from berth.components.gke import GKE_LOGIN, ExistingCluster
from berth.stacks.files.stack_file import LARGEST

# Keys of files in a kubeconfig, with the key for the file's content.
_FILES = {
    "certificate-authority": "certificate-authority-data",
    "client-certificate": "client-certificate-data",
    "client-key": "client-key-data",
}
_PUBLIC = ("server", "certificate-authority-data", "tls-server-name", "insecure-skip-tls-verify")
"""Keys of a cluster that say where it is, and how to know it."""

_FOREIGN = {"auth-provider", "tokenFile"}
"""Keys of a user that run a program, or send a file of this machine to the server."""


class KubeconfigError(BadInputError):
    """Kubeconfig that cannot be used; `key` is the wrong setting: `kubeconfig` or `context`."""

    def __init__(self, text: str, key: str = "kubeconfig") -> None:
        super().__init__(text)
        self.key = key


def without_credentials(text: str) -> str:
    """Return a kubeconfig with the server and its certificate authority only.

    GKE's credential plugin stays, as berth's own clusters have it: it names nobody. The command of
    another plugin does not, since it would run on the machines of everyone who reads the output.
    """
    config = json.loads(text)
    (cluster,), (user,), (context,) = config["clusters"], config["users"], config["contexts"]
    plugin = user["user"].get("exec")
    command = str(plugin.get("command", "")) if isinstance(plugin, dict) else ""
    users = (
        [{"name": user["name"], "user": GKE_LOGIN}]
        if Path(command).name == GKE_LOGIN["exec"]["command"]
        else []
    )
    known = {key: cluster["cluster"][key] for key in _PUBLIC if key in cluster["cluster"]}
    where = {"cluster": cluster["name"]} | ({"user": user["name"]} if users else {})
    return json.dumps(
        config
        | {
            "clusters": [{"name": cluster["name"], "cluster": known}],
            "users": users,
            "contexts": [{"name": context["name"], "context": where}],
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
        asked = [
            plugin.get("command"),
            *(plugin.get("args") or ()),
            *("with variables" for _ in plugin.get("env") or ()),
        ]
        asked += sorted(_FOREIGN & user.keys())
        if asked != [GKE_LOGIN["exec"]["command"]]:
            raise KubeconfigError(
                "the login of the environment's output `kubeconfig` asks for"
                f" {' '.join(map(str, asked))!r}; so whoever writes the environment's state could"
                " run programs and read files on your machine, and berth takes no login from a"
                f" state but {GKE_LOGIN['exec']['command']}; find out who wrote it, then write it"
                " again with pulumi up -s ENVIRONMENT"
            )
    return bool(users)


def pinned(settings: ExistingCluster, text: str) -> ExistingCluster:
    """Return the settings with their context, so that `kubectl config use-context` changes nothing.

    Raises:
        KubeconfigError: it names files by relative paths, which Pulumi's provider would not find.
    """
    path = _path(settings.kubeconfig)
    name = str(json.loads(text)["current-context"])
    config = _read(path)
    context = _named(config, "contexts", "context")[name]
    cluster = _named(config, "clusters", "cluster")[str(context["cluster"])]
    user = _named(config, "users", "user")[str(context["user"])]
    for key, value in (cluster | user).items():
        if (
            key in (*_FILES, "tokenFile")
            and not Path(str(value)).is_absolute()
            and not user.get(f"{key}-data")
        ):
            raise KubeconfigError(
                f"{shown_path(path)}: context {name!r} names {value} by a relative path, which"
                " Pulumi's provider would not find; write a file without such paths:"
                f" KUBECONFIG={shown_path(path)} kubectl config view --raw --flatten"
            )
    return ExistingCluster(kubeconfig=settings.kubeconfig, context=name)


def own_login(text: str, named: ExistingCluster | None) -> tuple[str, ExistingCluster | None]:
    """Return a kubeconfig with the login of this machine's user; a named login must lead there.

    Returns:
        The kubeconfig as text, and the file and context of the login; None where `text` has one.

    Raises:
        KubeconfigError: no kubeconfig of this machine has the cluster, or `text` has another login
            than GKE's.
    """
    clusters = _loaded(text).get("clusters")
    if has_login(text) or not clusters:
        return text, None
    server = str(clusters[0]["cluster"]["server"]).rstrip("/")
    files = [Path(part) for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    logins = [(_path(named.kubeconfig), named)] if named else []
    for path in files or [Path("~/.kube/config").expanduser()]:
        logins.append((path, ExistingCluster(kubeconfig=str(path))))
        with suppress(KubeconfigError):
            contexts = _named(_read(path), "contexts", "context")
            logins += [
                (path, ExistingCluster(kubeconfig=str(path), context=context))
                for context in contexts
            ]
    for path, login in logins:
        with suppress(KubeconfigError):
            full, address = one_context(path, login.context)
            if address.rstrip("/") == server:
                return full, login
    looked = ", ".join(map(shown_path, files)) or "~/.kube/config"
    raise KubeconfigError(
        f"no kubeconfig of yours logs in to {server} (looked in {looked}); ask an admin of the"
        " cluster for a login, or name the file with KUBECONFIG"
    )


def _loaded(text: str) -> dict[str, Any]:
    loaded = yaml.safe_load(text)
    return loaded if isinstance(loaded, dict) else {}


def one_context(path: Path, context: str | None) -> tuple[str, str]:
    """Return one context of a kubeconfig as JSON, and the address of its API server.

    The JSON has no credentials of other clusters and names no files. It has the credentials of this
    context: only this process uses it. Default: the current context.

    Raises:
        KubeconfigError: the kubeconfig cannot be used.
    """
    config = _read(path)
    name = context or str(config.get("current-context") or "")
    contexts = _named(config, "contexts", "context")
    known = ", ".join(sorted(contexts)) or "none"
    if not name:
        raise KubeconfigError(
            f"{shown_path(path)} has no current context; name one of its contexts with `context`"
            f" ({known})",
            key="context",
        )
    if name not in contexts:
        raise KubeconfigError(
            f"{shown_path(path)} has no context {name!r}{did_you_mean(str(name), contexts)};"
            f" it has: {known}",
            key="context" if context else "kubeconfig",
        )
    cluster_name, user_name = contexts[name].get("cluster"), contexts[name].get("user")
    cluster = _named(config, "clusters", "cluster").get(str(cluster_name))
    user = _named(config, "users", "user").get(str(user_name))
    if not cluster or not cluster.get("server"):
        raise KubeconfigError(
            f"{shown_path(path)}: context {name!r} names cluster {cluster_name!r}, which has no"
            " address there"
        )
    if user is None:
        raise KubeconfigError(
            f"{shown_path(path)}: context {name!r} names user {user_name!r}, who is not there"
        )
    flat = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster_name, "cluster": dict(_without_files(cluster, path))}],
        "users": [{"name": user_name, "user": dict(_without_files(user, path))}],
        "contexts": [{"name": name, "context": contexts[name]}],
        "current-context": name,
    }
    return json.dumps(flat), str(cluster["server"])


def _read(path: Path) -> dict[str, Any]:
    try:
        config = plain_value(read_yaml(_contents(path).decode("utf-8")))
        # What leaves the machine is JSON, which has no dates.
        json.dumps(config)
    except FileNotFoundError:
        raise KubeconfigError(
            f"there is no file {shown_path(path)}; write one, for example:"
            f" KUBECONFIG={shown_path(path)} gcloud container clusters"
            " get-credentials CLUSTER --location LOCATION --project PROJECT"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise KubeconfigError(f"{shown_path(path)} cannot be read: {error}") from None
    except DocumentError as error:
        line = f" (line {error.line})" if error.line else ""
        raise KubeconfigError(
            f"{shown_path(path)} is not a kubeconfig: it is not YAML{line}: {error.problem}"
        ) from None
    except TypeError as error:
        raise KubeconfigError(f"{shown_path(path)} is not a kubeconfig: {error}") from None
    if not isinstance(config, dict) or not isinstance(config.get("clusters"), list):
        raise KubeconfigError(f"{shown_path(path)} is not a kubeconfig: it has no list of clusters")
    return config


def _contents(path: Path) -> bytes:
    """Return the bytes of a file of a sensible size: a device would have no end.

    Raises:
        OSError: there is no such file.
    """
    if path.exists() and not path.is_file():
        raise OSError("it is not a file")
    if path.stat().st_size > LARGEST:
        raise OSError(f"it is larger than {LARGEST >> 20} MiB")
    return path.read_bytes()


def _path(kubeconfig: str) -> Path:
    try:
        return path_of_setting(kubeconfig)
    except BadInputError as error:
        raise KubeconfigError(error.problem) from None


def _named(config: dict[str, Any], key: str, inner: str) -> dict[str, dict[str, Any]]:
    """Return a kubeconfig's list of named entries as a mapping, without malformed ones."""
    entries = config.get(key)
    return {
        str(entry["name"]): entry[inner] or {}
        for entry in (entries if isinstance(entries, list) else [])
        if isinstance(entry, dict)
        and "name" in entry
        and isinstance(entry.get(inner) or {}, dict)
        and inner in entry
    }


def _without_files(part: dict[str, Any], config: Path) -> Iterator[tuple[str, Any]]:
    """Yield the entries of a cluster or user with the content of files beside the kubeconfig."""
    for key, value in part.items():
        if key not in _FILES:
            yield key, str(config.parent / value) if key == "tokenFile" else value
        elif not part.get(_FILES[key]):
            file = config.parent / str(value)
            try:
                yield _FILES[key], base64.b64encode(_contents(file)).decode()
            except OSError as error:
                raise KubeconfigError(
                    f"{shown_path(config)} names {shown_path(file)}, which cannot be read:"
                    f" {error.strerror or error}"
                ) from None

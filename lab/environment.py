"""The environment variables under which a shell, the engine and the lab's own processes use one lab."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from berth.lab import controlplane
from berth.lab.google_api import addresses
from berth.lab.home import CLONE, ENVIRONMENT_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from berth.lab.home import Home

PASSPHRASE = "lab"  # noqa: S105 - known to everyone: the lab's state holds nothing that is secret
"""Encrypts secrets in the lab's Pulumi state."""


def path(home: Home, base: str) -> str:
    """A search path: the lab's programs, then this Python's, then `base` without either."""
    own = [str(home.bin.absolute()), str(Path(sys.executable).parent)]
    return os.pathsep.join(own + [folder for folder in base.split(os.pathsep) if folder and folder not in own])


def variables(home: Home, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """What has to be set so that plain `pulumi`, `kubectl` and `helm` work on the lab.

    Args:
        home: the lab.
        base: the environment that they are added to (its PATH is extended); by default this process's.
    """
    base = os.environ if base is None else base
    root = home.root.absolute()
    plane = controlplane.load(home)
    google = addresses.variables(home, plane.ports[controlplane.GOOGLE_PORT]) if plane else {}
    return {
        "PATH": path(home, base.get("PATH", os.defpath)),
        ENVIRONMENT_VARIABLE: str(root),
        "KUBECONFIG": str(home.kubeconfig.absolute()),
        "PULUMI_HOME": str(home.pulumi_home.absolute()),
        "PULUMI_BACKEND_URL": home.backend.absolute().as_uri(),
        "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        # Helm's own files stay in the lab: no repository of the user's is read or changed.
        "HELM_CACHE_HOME": str(root / "helm" / "cache"),
        "HELM_CONFIG_HOME": str(root / "helm" / "config"),
        "HELM_DATA_HOME": str(root / "helm" / "data"),
        **google,
    }


def complete(home: Home) -> dict[str, str]:
    """This process's environment with the lab's variables in it, for starting a program."""
    environment = {key: value for key, value in os.environ.items() if key != "PULUMI_CONFIG_PASSPHRASE_FILE"}
    python_path = [str(CLONE), *filter(None, [environment.get("PYTHONPATH")])]
    return environment | variables(home) | {"PYTHONPATH": os.pathsep.join(dict.fromkeys(python_path))}


def exports(home: Home) -> str:
    """Lines for a POSIX shell to evaluate."""
    lines = [f"export {name}={shlex.quote(value)}" for name, value in variables(home).items()]
    return "\n".join([*lines, "unset PULUMI_CONFIG_PASSPHRASE_FILE"])

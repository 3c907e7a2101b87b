"""The lab's `bin` folder, charts and credentials: what its processes and a user's shell find there."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from typing import TYPE_CHECKING

import yaml

from lab.home import CLONE, ENVIRONMENT_VARIABLE
from lab.toolchain import installed
from lab.toolchain.tools import PULUMI

if TYPE_CHECKING:
    from pathlib import Path

    from lab.controlplane import ControlPlane
    from lab.home import Home
    from lab.toolchain.ensure import Toolchain

CHART = "kuberay-operator"

_PLUGIN = """#!/bin/sh
# {what}
export {variable}={home}
export PYTHONPATH={clone}${{PYTHONPATH:+:$PYTHONPATH}}
exec {python} -m {module} "$@"
"""

_CREDENTIAL = """#!/bin/sh
# The lab's stand-in for Google's credential plugin: its cluster knows one administrator, by client certificate.
exec cat {file}
"""

SIMULATED_GCP = "Simulated Google Cloud: GKE clusters, node pools and networks of this lab, no account and no cost."
SIMULATED_KUBERNETES = "Stand-in for Pulumi's kubernetes provider plugin, which is not installed on this machine."


def _write(path: Path, text: str, mode: int) -> None:
    """Replace a file in one step, so that a program that starts meanwhile finds the old or the new one."""
    partial = path.with_name(f".{path.name}.partial")
    partial.unlink(missing_ok=True)
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT, mode), "w") as file:
        file.write(text)
    partial.replace(path)


def _link(path: Path, target: Path) -> None:
    if path.is_symlink() and path.readlink() == target:
        return
    partial = path.with_name(f".{path.name}.partial")
    partial.unlink(missing_ok=True)
    partial.symlink_to(target)
    partial.replace(path)


def _plugin(home: Home, module: str, what: str) -> str:
    return _PLUGIN.format(
        what=what,
        variable=ENVIRONMENT_VARIABLE,
        home=shlex.quote(str(home.root.absolute())),
        clone=shlex.quote(str(CLONE)),
        python=shlex.quote(sys.executable),
        module=module,
    )


def write_bin(home: Home, tools: Toolchain) -> Path | None:
    """Make `bin` hold exactly this toolchain and the lab's scripts.

    Returns:
        The installed kubernetes provider plugin, where there is one: then the stand-in is left out.
    """
    home.bin.mkdir(parents=True, exist_ok=True)
    links = dict(tools.programs)
    links |= {name: there.path for name, there in tools.found.items() if name != PULUMI.name}
    scripts = {
        "pulumi-resource-gcp": _plugin(home, "lab.plugins.gcp", SIMULATED_GCP),
        "gke-gcloud-auth-plugin": _CREDENTIAL.format(file=shlex.quote(str(home.root.absolute() / "credential.json"))),
    }
    real = installed.plugin("kubernetes")
    if real is None:
        scripts["pulumi-resource-kubernetes"] = _plugin(home, "lab.plugins.kubernetes", SIMULATED_KUBERNETES)
    for name, target in links.items():
        _link(home.bin / name, target)
    for name, text in scripts.items():
        _write(home.bin / name, text, 0o755)
    for path in home.bin.iterdir():
        if path.name not in links and path.name not in scripts:
            path.unlink()
    return real


def write_credentials(home: Home, plane: ControlPlane) -> None:
    """The administrator's kubeconfig, and the same certificate as kubectl's credential plugins print it."""
    _write(home.kubeconfig, yaml.safe_dump(plane.kubeconfig(), sort_keys=False), 0o600)
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {
            "clientCertificateData": plane.certificate("admin.crt").decode(),
            "clientKeyData": plane.certificate("admin.key").decode(),
        },
    }
    _write(home.root / "credential.json", json.dumps(credential), 0o600)


def write_charts(home: Home, tools: Toolchain) -> None:
    """The KubeRay operator's chart of the lab: our templates with the definitions of the operator that was built."""
    source = CLONE / "lab" / "charts" / CHART
    if not source.is_dir():
        return
    making = home.charts / f".{CHART}"
    shutil.rmtree(making, ignore_errors=True)
    shutil.copytree(source, making)
    shutil.copytree(tools.crds, making / "crds", copy_function=shutil.copyfile)
    target = home.charts / CHART
    shutil.rmtree(target, ignore_errors=True)
    making.rename(target)

"""The lab's `bin` folder, charts and credentials: what its processes and a user's shell find there.

Answers to (read): gke-gcloud-auth-plugin prints an ExecCredential of client.authentication.k8s.io/v1beta1,
    https://github.com/kubernetes/cloud-provider-gcp/tree/master/cmd/gke-gcloud-auth-plugin
Answers to (real): Pulumi's engine, which loads what is laid out here; tests/lab/test_installed_plugin.py.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING

import yaml

from berth.lab import kubernetes_plugin
from berth.lab.controlplane import GOOGLE_PORT
from berth.lab.google_api.addresses import write_credential
from berth.lab.home import CLONE, ENVIRONMENT_VARIABLE
from berth.lab.toolchain.tools import PULUMI

if TYPE_CHECKING:
    from pathlib import Path

    from berth.lab.controlplane import ControlPlane
    from berth.lab.home import Home
    from berth.lab.kubernetes_plugin import Plugin
    from berth.lab.toolchain.ensure import Toolchain

KUBERAY = "kuberay-operator"

_PLUGIN = """#!/bin/sh
# {what}
export {variable}={home}
export PYTHONPATH={clone}${{PYTHONPATH:+:$PYTHONPATH}}
# -P: the engine starts plugins in the program's folder, whose own folders must not be taken for ours.
exec {python} -P -m {module} "$@"
"""

_CREDENTIAL = """#!/bin/sh
# The lab's stand-in for Google's credential plugin: its cluster knows one administrator, by client certificate.
exec cat {file}
"""

SIMULATED_GCP = "Simulated Google Cloud: GKE clusters, node pools and networks of this lab, no account and no cost."
SIMULATED_KUBERNETES = "Stand-in of the lab for Pulumi's kubernetes provider plugin."


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


def _place(path: Path, target: Path) -> None:
    """The file itself rather than a link to it, without a copy where the cache is on the same file system.

    Pulumi looks for its language host beside its own file, links resolved, and warns of one that it finds elsewhere.
    """
    if path.is_file() and not path.is_symlink() and path.samefile(target):
        return
    partial = path.with_name(f".{path.name}.partial")
    partial.unlink(missing_ok=True)
    try:
        partial.hardlink_to(target)
    except OSError:
        shutil.copy2(target, partial)
    partial.replace(path)


def plugin_script(home: Home, module: str, what: str) -> str:
    """The program of a plugin that is a module of the lab.

    Args:
        home: the lab.
        module: the module.
        what: what it is, for who reads the program.
    """
    return _PLUGIN.format(
        what=what,
        variable=ENVIRONMENT_VARIABLE,
        home=shlex.quote(str(home.root.absolute())),
        clone=shlex.quote(str(CLONE)),
        python=shlex.quote(sys.executable),
        module=module,
    )


def write_plugins(home: Home, kubernetes: Plugin) -> None:
    """Install the lab's provider plugins, under the versions that the SDKs ask for, where Pulumi looks for them.

    Args:
        home: the lab.
        kubernetes: the kubernetes provider plugin; the stand-in is left out where it is the real one.
    """
    folder = home.pulumi_home / "plugins"
    texts = {f"resource-gcp-v{version('pulumi-gcp')}": plugin_script(home, "berth.lab.plugins.gcp", SIMULATED_GCP)}
    if kubernetes.folder is None:
        texts[kubernetes_plugin.folder_name()] = plugin_script(
            home, "berth.lab.plugins.kubernetes", SIMULATED_KUBERNETES
        )
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.name not in {*texts, kubernetes_plugin.folder_name()}:
            kubernetes_plugin.remove(path)
    for name, text in texts.items():
        program = f"pulumi-{name.rpartition('-v')[0]}"
        if (folder / name).is_symlink():
            (folder / name).unlink()
        (folder / name).mkdir(exist_ok=True)
        _write(folder / name / program, text, 0o755)
        for path in (folder / name).iterdir():
            if path.name != program:
                kubernetes_plugin.remove(path)
    kubernetes_plugin.place(kubernetes, home)


def write_bin(home: Home, tools: Toolchain) -> None:
    """Make `bin` hold exactly this toolchain and the lab's scripts."""
    home.bin.mkdir(parents=True, exist_ok=True)
    links = dict(tools.programs)
    links |= {name: there.path for name, there in tools.found.items() if name != PULUMI.name}
    scripts = {
        "gke-gcloud-auth-plugin": _CREDENTIAL.format(file=shlex.quote(str(home.root.absolute() / "credential.json"))),
    }
    for name, target in links.items():
        (_place if name.startswith("pulumi") else _link)(home.bin / name, target)
    for name, text in scripts.items():
        _write(home.bin / name, text, 0o755)
    for path in home.bin.iterdir():
        if path.name not in links and path.name not in scripts:
            path.unlink()


def write_credentials(home: Home, plane: ControlPlane) -> None:
    """The administrator's kubeconfig, the same certificate as kubectl's credential plugins print it, and Google's."""
    _write(home.kubeconfig, yaml.safe_dump(plane.kubeconfig(), sort_keys=False), 0o600)
    credential = {
        # The version that Google's plugin answers with; kubectl and helm insist on the one that the kubeconfig names.
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "kind": "ExecCredential",
        "status": {
            "clientCertificateData": plane.certificate("admin.crt").decode(),
            "clientKeyData": plane.certificate("admin.key").decode(),
        },
    }
    _write(home.root / "credential.json", json.dumps(credential), 0o600)
    write_credential(home, plane.ports[GOOGLE_PORT])


def write_charts(home: Home, tools: Toolchain) -> None:
    """The operators' charts of the lab: our own; KubeRay's with the definitions of the operator that was built."""
    charts = CLONE / "lab" / "charts"
    for source in sorted(path for path in charts.iterdir() if path.is_dir()):
        making = home.charts / f".{source.name}"
        shutil.rmtree(making, ignore_errors=True)
        shutil.copytree(source, making)
        if source.name == KUBERAY:
            shutil.copytree(tools.crds, making / "crds", copy_function=shutil.copyfile)
        target = home.charts / source.name
        shutil.rmtree(target, ignore_errors=True)
        making.rename(target)

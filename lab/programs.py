"""Programs, plugins, charts and credentials, laid out for a lab's processes and a user's shell."""

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import yaml

from berth.components.core import whole_file
from berth.lab.controlplane import GOOGLE_PORT, ControlPlane
from berth.lab.errors import LabError
from berth.lab.google_api.addresses import write_credential
from berth.lab.home import CLONE, ENVIRONMENT_VARIABLE, LabHome
from berth.lab.toolchain.tools import PULUMI, PULUMI_KUBERNETES, PULUMI_PYTHON

KUBERAY = "kuberay-operator"
KUBERNETES_PLUGIN = "pulumi-resource-kubernetes"
DEFINITIONS = "crds"
"""Folder with the custom resource definitions of the KubeRay operator that was built."""
BESIDE_BIN = {*PULUMI_KUBERNETES.programs, *PULUMI_KUBERNETES.copied.values(), DEFINITIONS}
"""Files and folders of tools that are not programs for a shell."""

HEAD_PROGRAMS = ("python", "python3", "pip", "ray", "serve", "bash", "sh")
"""Programs that can be run in a simulated head, and by these any other."""

SIMULATED_GCP = (
    "Simulated Google Cloud: GKE clusters, node pools and networks of this lab, no account and no"
    " cost."
)


def _place(path: Path, target: Path) -> None:
    """Put a program into `bin` as a link, and Pulumi's as files (hard links where possible).

    Pulumi looks for its language host beside its own file, links resolved, and warns of one that it
    finds elsewhere.
    """
    linked = path.name not in {PULUMI.name, *PULUMI_PYTHON.programs}
    if path.is_symlink() == linked and path.is_file() and path.samefile(target):
        return
    partial = path.with_name(f".{path.name}.partial")
    partial.unlink(missing_ok=True)
    if linked:
        partial.symlink_to(target)
    else:
        try:
            partial.hardlink_to(target)
        except OSError:
            shutil.copy2(target, partial)
    partial.replace(path)


def _script(name: str) -> str:
    return (CLONE / "lab" / name).read_text()


def plugin_script(home: LabHome, module: str, what: str) -> str:
    """Return the program of a plugin that is a module of the lab, with a description in it."""
    return _script("plugin.sh").format(
        what=what,
        variable=ENVIRONMENT_VARIABLE,
        home=shlex.quote(str(home.root.absolute())),
        clone=shlex.quote(str(CLONE)),
        python=shlex.quote(sys.executable),
        module=module,
    )


def write_plugins(home: LabHome, tools: Mapping[str, Path]) -> None:
    """Install the lab's provider plugins for Pulumi, and nothing else.

    The engine takes a plugin from a folder only, never from a link to one
    (https://github.com/pulumi/pulumi, sdk/go/common/workspace/plugins.go, tryPlugin, v3.250.0), so
    the kubernetes plugin is a link in a folder. It finds its schema beside the link's target.
    """
    folder = home.pulumi_home / "plugins"
    gcp = folder / f"resource-gcp-v{version('pulumi-gcp')}" / "pulumi-resource-gcp"
    kubernetes = folder / f"resource-kubernetes-v{PULUMI_KUBERNETES.version}" / KUBERNETES_PLUGIN
    for program in (gcp, kubernetes):
        program.parent.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path not in {gcp.parent, kubernetes.parent}:
            _remove(path)
    whole_file.replace_file(
        gcp, plugin_script(home, "berth.lab.plugins.gcp", SIMULATED_GCP), mode=0o755
    )
    _place(kubernetes, tools[KUBERNETES_PLUGIN])


def _remove(path: Path) -> None:
    """Remove a folder, a file, or a link but not its target."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def write_bin(home: LabHome, tools: Mapping[str, Path]) -> None:
    """Fill `bin` with exactly these tools and the lab's scripts."""
    home.bin.mkdir(parents=True, exist_ok=True)
    programs = {name: path for name, path in tools.items() if name not in BESIDE_BIN}
    credential = "gke-gcloud-auth-plugin"
    for path in home.bin.iterdir():
        if path.name not in {*programs, credential}:
            path.unlink()
    for name, target in programs.items():
        _place(home.bin / name, target)
    text = _script("credential.sh").format(
        file=shlex.quote(str(home.root.absolute() / "credential.json"))
    )
    whole_file.replace_file(home.bin / credential, text, mode=0o755)


def write_head_bin(home: LabHome) -> None:
    """Write the programs by which KWOK runs a command in a simulated head (berth.lab.ray)."""
    home.head_bin.mkdir(parents=True, exist_ok=True)
    enter = shlex.join([sys.executable, "-I", str(CLONE / "lab" / "ray" / "program.py"), "enter"])
    for name in HEAD_PROGRAMS:
        whole_file.replace_file(
            home.head_bin / name, f'#!/bin/sh\nexec {enter} {name} "$@"\n', mode=0o755
        )


def write_credentials(home: LabHome, plane: ControlPlane) -> None:
    """Write the administrator's kubeconfig, its certificate as an ExecCredential, and Google's."""
    whole_file.replace_file(
        home.kubeconfig, yaml.safe_dump(plane.kubeconfig(), sort_keys=False), mode=0o600
    )
    credential = {
        # The version that Google's plugin answers with; kubectl and helm insist on the one that the
        # kubeconfig names.
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "kind": "ExecCredential",
        "status": {
            "clientCertificateData": plane.certificate("admin.crt").decode(),
            "clientKeyData": plane.certificate("admin.key").decode(),
        },
    }
    whole_file.replace_file(home.root / "credential.json", json.dumps(credential), mode=0o600)
    write_credential(home, plane.ports[GOOGLE_PORT])


def write_charts(home: LabHome, tools: Mapping[str, Path]) -> None:
    """Copy the operators' charts; KubeRay's gets the definitions of the built operator."""
    for source in (CLONE / "lab" / "charts").iterdir():
        if not source.is_dir():
            continue
        partial = home.charts / f".{source.name}"
        target = home.charts / source.name
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(source, partial)
        if source.name == KUBERAY:
            shutil.copytree(tools[DEFINITIONS], partial / "crds", copy_function=shutil.copyfile)
        shutil.rmtree(target, ignore_errors=True)
        partial.rename(target)
    _pack_charts(home)


def _pack_charts(home: LabHome) -> None:
    """Fill the folder of the lab's chart repository: the charts, packed, and their index."""
    partial = home.repository.with_name(f".{home.repository.name}")
    shutil.rmtree(partial, ignore_errors=True)
    folders = [
        str(path)
        for path in home.charts.iterdir()
        if path.is_dir() and not path.name.startswith(".")
    ]
    for arguments in (
        ["package", *folders, "--destination", str(partial)],
        ["repo", "index", str(partial)],
    ):
        subprocess.run([home.bin / "helm", *arguments], check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(home.repository, ignore_errors=True)
    partial.rename(home.repository)


def kubectl(home: LabHome, *arguments: str, stdin: str | None = None) -> str:
    """Run the lab's kubectl as administrator; return its output."""
    command = [str(home.bin / "kubectl"), "--kubeconfig", str(home.kubeconfig), *arguments]
    result = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise LabError(
            f"kubectl {' '.join(arguments[:3])} failed: {result.stderr.strip()}",
            "run the same command again; `make lab` repairs the lab, `make lab-clean` makes a"
            " new one",
        )
    return result.stdout

"""Google's DaemonSets as berth writes them, held to facts of Google's own manifests
(`upstream/`, with source and commit).
"""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.components.hardware import versions
from berth.components.hardware.names import POOL_LABEL
from berth.components.operators import GibSettings, driver_installer, gib

UPSTREAM = Path(__file__).with_name("upstream")
POOLS = ["train"]

OURS = {
    "nccl-rdma-installer": gib.installer_manifest(GibSettings(), POOLS),
    "nvidia-driver-installer": driver_installer.driver_installer(),
}


def containers_with_the_newer_gib() -> list[dict[str, Any]]:
    """Google's installer, with the gIB of Google's own test of managed RDMA networks."""
    theirs = yaml.safe_load((UPSTREAM / "nccl-rdma-installer.yaml").read_text())
    containers: list[dict[str, Any]] = theirs["initContainers"]
    containers[0]["image"] = versions.GIB_IMAGE
    return containers


DELIBERATE: dict[str, dict[str, Any]] = {
    # berth knows its pools with RDMA NICs by name; the GPU alone says nothing of the networks of a
    # node.
    "nccl-rdma-installer": {
        "nodes": [{"key": POOL_LABEL, "operator": "In", "values": POOLS}],
        "initContainers": containers_with_the_newer_gib(),
    },
    "nvidia-driver-installer": {},
}
"""Fields in which berth differs from Google on purpose."""


def facts_of(manifest: dict[str, Any]) -> dict[str, Any]:
    """The DaemonSet in the shape of the files in `upstream/`."""
    spec = manifest["spec"]
    pod = spec["template"]["spec"]
    paths = {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"]}
    (term,) = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    return {
        "name": manifest["metadata"]["name"],
        "namespace": manifest["metadata"]["namespace"],
        "selector": spec["selector"]["matchLabels"],
        "podLabels": spec["template"]["metadata"]["labels"],
        "update": spec["updateStrategy"]["type"],
        "priorityClass": pod["priorityClassName"],
        "tolerations": pod["tolerations"],
        "hostNetwork": pod["hostNetwork"],
        "hostPID": pod["hostPID"],
        "nodes": term["matchExpressions"],
        "volumes": {
            volume["hostPath"]["path"]: volume["hostPath"].get("type") for volume in pod["volumes"]
        },
        "initContainers": [
            container_facts(container, paths) for container in pod["initContainers"]
        ],
        "containers": {container["name"]: container["image"] for container in pod["containers"]},
    }


def container_facts(container: dict[str, Any], paths: dict[str, str]) -> dict[str, Any]:
    words = [*container.get("command", []), *container.get("args", [])]
    return {
        "name": container["name"],
        "image": container["image"],
        "pull": container.get("imagePullPolicy"),
        "privileged": container["securityContext"]["privileged"],
        "requests": container["resources"]["requests"],
        "shell": words[:-1],
        "programs": programs(words[-1]) if words else [],
        "env": {variable["name"]: variable["value"] for variable in container.get("env", [])},
        "mounts": {mount["mountPath"]: paths[mount["name"]] for mount in container["volumeMounts"]},
    }


def programs(script: str) -> list[str]:
    """The commands of a shell script in order, without the shell's own words and what is only
    printed.
    """
    lines = [re.sub(r"^if |; then$", "", line.strip()) for line in script.splitlines()]
    return [
        line for line in lines if line not in {"else", "fi", ""} and not line.startswith("echo ")
    ]


@pytest.mark.parametrize("name", OURS)
def test_a_daemonset_of_googles_is_as_google_has_it(name: str) -> None:
    theirs = yaml.safe_load((UPSTREAM / f"{name}.yaml").read_text())
    assert re.search(r"/blob/[0-9a-f]{40}/", theirs.pop("source"))
    assert facts_of(OURS[name]) == theirs | DELIBERATE[name]
    assert all(theirs[field] != value for field, value in DELIBERATE[name].items()), (
        "no longer different"
    )


@pytest.mark.parametrize(
    ("modules", "install_code", "code", "installed"),
    [
        ("nvidia_uvm 1 0\nnvidia 2 1", 0, 0, False),
        ("gve 1 0", 0, 0, True),
        ("gve 1 0", 3, 3, True),
    ],
    ids=["driver-loaded", "no-driver", "install-fails"],
)
def test_the_driver_is_installed_only_where_none_is_loaded(
    tmp_path: Path, modules: str, install_code: int, code: int, *, installed: bool
) -> None:
    container = OURS["nvidia-driver-installer"]["spec"]["template"]["spec"]["initContainers"][0]
    write(tmp_path / "lsmod", f"printf '%s\\n' '{modules}'")
    write(tmp_path / "cos-gpu-installer", f'echo "$@" > {tmp_path}/called; exit {install_code}')
    *shell, script = container["command"]
    script = script.replace("/cos-gpu-installer", str(tmp_path / "cos-gpu-installer"))
    result = subprocess.run(
        [*shell, script],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        check=False,
    )
    called = tmp_path / "called"
    assert (result.returncode, called.exists()) == (code, installed)
    assert not installed or called.read_text() == "install\n"


def write(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)

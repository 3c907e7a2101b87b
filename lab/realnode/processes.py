"""Processes of a real node, as the table `processes.yaml` has them."""

import hashlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from berth.lab import environment
from berth.lab.processes import MARK, LabProcess
from berth.lab.realnode import configuration
from berth.lab.realnode.layout import Layout
from berth.lab.realnode.machine import RealMachine

NAMESPACES = "real-namespaces"
CONTAINERD = "real-containerd"
KUBELET = "real-kubelet"

NODE_MARK = "BERTH_LAB_NODE"
"""Environment variable of every program in a node's namespaces outside of containers: the node's
tag."""


@dataclass(frozen=True)
class Programs:
    """Paths of built programs by name, and root of the unpacked Debian packages."""

    built: Mapping[str, Path]
    debian: Path


def enter_script(layout: Layout, programs: Programs) -> str:
    """Return a script that runs a program in the node's namespaces."""
    script = Path(__file__).with_name("enter.sh").read_text()
    return script.format(
        mark=MARK,
        node_mark=NODE_MARK,
        tag=layout.tag,
        libraries=programs.debian / "usr/lib/x86_64-linux-gnu",
        programs=f"{programs.debian / 'usr/sbin'}:{programs.built['containerd'].parent}",
        pid=layout.namespaces,
    )


def table(
    layout: Layout, programs: Programs, machine: RealMachine, api_server: str
) -> tuple[tuple[LabProcess, ...], tuple[LabProcess, ...]]:
    """Return the processes that must run before images can be imported, and the others.

    The API server is `host:port` on loopback.
    """
    values = {
        **configuration.values(layout, machine),
        **{f"program_{name.replace('-', '_')}": path for name, path in programs.built.items()},
        "python": sys.executable,
        "layout": layout.argument,
        "namespaces": layout.namespaces.as_uri(),
        "api_server": api_server,
    }

    rows = yaml.safe_load(Path(__file__).with_name("processes.yaml").read_text())
    found = {name: _process(layout, name, row, values) for name, row in rows.items()}
    first = tuple(process for name, process in found.items() if rows[name].get("first"))
    return first, tuple(process for process in found.values() if process not in first)


def _process(
    layout: Layout, name: str, row: Mapping[str, Any], values: Mapping[str, Any]
) -> LabProcess:
    process = LabProcess.of_row(name, row, values)
    if process.argv[0] == sys.executable:
        process = replace(process, environment=environment.complete(layout.home))
    if row.get("inside"):
        process = replace(
            process, argv=(str(layout.enter), *process.argv), version=_version(layout, process.argv)
        )
    return process


def _version(layout: Layout, words: tuple[str, ...]) -> str:
    """Return a digest of the configuration files that a command names; another one restarts it."""
    digest = hashlib.sha256()
    for path in sorted(path for path in layout.configuration.rglob("*") if path.is_file()):
        if any(str(path) in word for word in words):
            digest.update(path.read_bytes())
    return digest.hexdigest()

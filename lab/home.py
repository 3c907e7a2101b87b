"""Paths of one lab: a folder in the clone, which `BERTH_LAB` names to every process of the lab."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

ENVIRONMENT_VARIABLE = "BERTH_LAB"

SIGN = "berth-lab"
"""File that marks a folder as a lab's; the lab fills and removes no folder without it."""

CLONE = Path(__file__).resolve().parent.parent
"""Folder of the source: the clone, or the installed package."""


class _Folder(Protocol):
    @property
    def folder(self) -> Path: ...


class Inside:
    """Path in the folder of the object that it is an attribute of."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: _Folder, owner: type) -> Path:
        return instance.folder / self._name


@dataclass(frozen=True)
class LabHome:
    """Paths of one lab. Nothing is read or created here.

    Attributes:
        root: the lab's folder, by default `.lab` in the Pulumi project.
        bin: programs that the lab puts first on PATH: links to built tools, plugins, stand-ins.
        head_bin: programs of simulated heads, for KWOK; each enters the head that it is asked for.
        kubeconfig: the administrator's, for the lab's API server (client certificate, loopback).
        backend: Pulumi's file backend, the state of the lab's stacks.
        pulumi_home: Pulumi's own folder for this lab: plugins, and no login of the user's.
        cloud: resources of the simulated Google Cloud, as JSON files.
        charts: Helm charts of the lab: templates of berth's, definitions of the operator.
        repository: the same charts, packed, with the index of a chart repository.
        environment: JSON file with the variables of a lab that is up, for `berth`.
        egress: Unix socket of the lab controller, the API server's way to pods and kubelets.
        logs: log files, one for each process.
        run: JSON files with pid and start time, one for each running process.
    """

    root: Path

    bin = Inside("bin")
    head_bin = Inside("head-bin")
    kubeconfig = Inside("kubeconfig.yaml")
    backend = Inside("pulumi")
    pulumi_home = Inside("pulumi-home")
    cloud = Inside("cloud")
    charts = Inside("charts")
    repository = Inside("repository")
    environment = Inside("environment.json")
    egress = Inside("egress.sock")
    logs = Inside("logs")
    run = Inside("run")

    @classmethod
    def current(cls) -> LabHome:
        """Return the lab that `BERTH_LAB` names, else that of the Pulumi project."""
        # The tools are built while the packages that this import needs are still being installed.
        from berth.components.core.project import project_folder  # noqa: PLC0415

        return cls(Path(os.environ.get(ENVIRONMENT_VARIABLE) or project_folder() / ".lab"))

    @property
    def folder(self) -> Path:
        """Folder that the paths above are in."""
        return self.root

"""Where one lab keeps its things: one folder in the clone, named to every lab process by `BERTH_LAB`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

ENVIRONMENT_VARIABLE = "BERTH_LAB"

SIGN = "berth-lab"
"""A file that tells a lab's folder from any other: nothing else is ever filled or removed."""

CLONE = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Home:
    """The paths of one lab. Only names: nothing is read or made here.

    Attributes:
        root: the lab's folder, by default `.lab` in the clone.
    """

    root: Path

    @classmethod
    def current(cls) -> Home:
        """The lab that `BERTH_LAB` names, else the clone's own."""
        return cls(Path(os.environ.get(ENVIRONMENT_VARIABLE) or CLONE / ".lab"))

    @property
    def bin(self) -> Path:
        """Programs that the lab puts first on PATH: links to built tools, plugins, stand-ins."""
        return self.root / "bin"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig of the lab's API server (client certificate, loopback address)."""
        return self.root / "kubeconfig.yaml"

    @property
    def backend(self) -> Path:
        """Pulumi's file backend: the state of the lab's stacks."""
        return self.root / "pulumi"

    @property
    def pulumi_home(self) -> Path:
        """Pulumi's own folder, for the lab alone: its provider plugins are there, and no login of the user's is touched."""
        return self.root / "pulumi-home"

    @property
    def cloud(self) -> Path:
        """What the simulated GKE has made, as JSON files."""
        return self.root / "cloud"

    @property
    def charts(self) -> Path:
        """Helm charts put together for the lab (our templates, the operator's own CRDs)."""
        return self.root / "charts"

    @property
    def egress(self) -> Path:
        """The Unix socket through which the API server reaches pods and kubelets: the lab controller listens."""
        return self.root / "egress.sock"

    @property
    def logs(self) -> Path:
        """One log file per process."""
        return self.root / "logs"

    @property
    def run(self) -> Path:
        """One JSON file per running process: pid and start time, so that only our own are ever stopped."""
        return self.root / "run"

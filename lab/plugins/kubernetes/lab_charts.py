"""Charts of the lab that are played where a release asks for the published ones: no repository can be reached from a lab.

So an environment comes up in the lab as it is written for Google Cloud. Only the charts that the lab has, and only from where
they are published: a chart of another repository, another `oci://` reference and a folder are helm's business.

Answers to (recorded): values of the published charts and their defaults, ../shared/upstream/*/values.yaml.
Answers to (believed): that a published chart of another version than the lab's installs alike. Its values.yaml
    would settle it.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

REPOSITORIES = {
    "gpu-operator": "https://helm.ngc.nvidia.com/nvidia",
    "kuberay-operator": "https://ray-project.github.io/kuberay-helm",
}
"""Where each chart is published that is in a repository."""

REFERENCES = {
    "dra-driver-nvidia-gpu": "oci://registry.k8s.io/dra-driver-nvidia/charts/dra-driver-nvidia-gpu",
    "dranet": "oci://registry.k8s.io/networking/charts/dranet",
}
"""Where each chart is published that is an image."""

_EXACT = re.compile(r"v?\d+\.\d+\.\d+\S*")


@dataclass(frozen=True)
class Played:
    """A chart of the lab in the place of a published one.

    Attributes:
        folder: the lab's chart.
        version: the version to record: the one that is asked for; where that is none or a range, the lab's own.
        own: the version of the lab's chart.
    """

    folder: Path
    version: str
    own: str

    def copy(self, into: Path) -> Path:
        """The chart under the version to record, so that Helm says it of the release too.

        Args:
            into: a folder of ours.
        """
        target = into / f"{self.folder.name}-{self.version}"
        if not target.exists():
            making = into / f".{target.name}"
            shutil.copytree(self.folder, making, dirs_exist_ok=True)
            metadata = _metadata(making) | {"version": self.version}
            (making / "Chart.yaml").write_text(yaml.safe_dump(metadata), encoding="utf-8")
            making.rename(target)
        return target

    def __str__(self) -> str:
        """What the user is told."""
        text = f"simulated: the lab has no network and plays this chart by its own {self.folder.name} {self.own}"
        return text if self.version == self.own else f"{text}, recorded as {self.version}"


def played(charts: Path, inputs: Mapping[str, Any]) -> Played | None:
    """The lab's chart that is played for a release; None where helm has to get the chart itself.

    Args:
        charts: the lab's charts.
        inputs: of the release, all of them known.
    """
    name = _published(inputs)
    folder = charts / name
    if not name or not folder.is_dir():
        return None
    own, asked = str(_metadata(folder)["version"]), str(inputs.get("version") or "")
    return Played(folder, asked if _EXACT.fullmatch(asked) else own, own)


def _published(inputs: Mapping[str, Any]) -> str:
    """The name of the lab's chart for what a release asks for; "" where that is another one."""
    chart, repository = inputs.get("chart"), (inputs.get("repositoryOpts") or {}).get("repo")
    if not isinstance(chart, str):
        return ""
    if repository:
        return chart if REPOSITORIES.get(chart) == str(repository).rstrip("/") else ""
    name = chart.rstrip("/").rsplit("/", 1)[-1]
    return name if REFERENCES.get(name) == chart.rstrip("/") else ""


def _metadata(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((folder / "Chart.yaml").read_text(encoding="utf-8"))
    return found

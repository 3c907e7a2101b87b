"""Charts of the lab that stand in for published ones: a lab reaches no repository.

So an environment comes up in the lab as it is written for Google Cloud. Helm itself gets any other
chart: of another repository, by another `oci://` reference, or in a folder.

Answers to (recorded): values of the published charts and their defaults,
    ../shared/upstream/*/values.yaml.
Answers to (believed): that a published chart of another version than the lab's installs alike. Its
    values.yaml would settle it.
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
"""Repository of each chart that is published in one."""

REFERENCES = {
    "dra-driver-nvidia-gpu": "oci://registry.k8s.io/dra-driver-nvidia/charts/dra-driver-nvidia-gpu",
    "dranet": "oci://registry.k8s.io/networking/charts/dranet",
}
"""Reference of each chart that is published as an image."""

_EXACT = re.compile(r"v?\d+\.\d+\.\d+\S*")


@dataclass(frozen=True)
class Played:
    """A chart of the lab in the place of a published one.

    Attributes:
        folder: the lab's chart.
        version: the recorded version: the requested one if exact, else the lab's own.
        own: the version of the lab's chart.
    """

    folder: Path
    version: str
    own: str

    def copy(self, into: Path) -> Path:
        """Copy the chart under the recorded version, which Helm then shows for the release."""
        target = into / f"{self.folder.name}-{self.version}"
        if not target.exists():
            partial = into / f".{target.name}"
            shutil.copytree(self.folder, partial, dirs_exist_ok=True)
            metadata = _metadata(partial) | {"version": self.version}
            (partial / "Chart.yaml").write_text(yaml.safe_dump(metadata), encoding="utf-8")
            partial.rename(target)
        return target

    def __str__(self) -> str:
        """Return the line that the user sees."""
        text = f"simulated: the lab has no network and plays this chart by its own {self.folder.name} {self.own}"
        return text if self.version == self.own else f"{text}, recorded as {self.version}"


def played(charts: Path, inputs: Mapping[str, Any]) -> Played | None:
    """Return the lab's chart for a release; None where helm gets the chart itself."""
    name = _published(inputs)
    folder = charts / name
    if not name or not folder.is_dir():
        return None
    own, requested = str(_metadata(folder)["version"]), str(inputs.get("version") or "")
    return Played(folder, requested if _EXACT.fullmatch(requested) else own, own)


def _published(inputs: Mapping[str, Any]) -> str:
    """Return the name of the published chart that a release installs; "" for any other chart."""
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

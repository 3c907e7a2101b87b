"""Table of the lab's tools, read from `tools.toml`; their versions are in `lab/tools/*/go.mod`."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from berth.lab.home import CLONE
from berth.lab.toolchain.releases import ReleasedFile, filled

MODULES = CLONE / "lab" / "tools"


@dataclass(frozen=True, eq=False)
class Tool:
    """Programs that are built together from one Go module folder."""

    name: str
    """Unique among the tools; names the cache entry."""
    needed_by: str
    """`lab`, `real-node` or `tests`."""
    module: str
    """Go module whose version is the tool's version."""
    packages: Mapping[str, str]
    """Program name to Go package in the module; `.` begins one in the tool's own folder."""
    folder: str = ""
    """Folder under `lab/tools` with go.mod and go.sum; by default the tool's name."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """String variables that the linker sets; `{version}`, `{major}` and `{minor}` are filled in."""
    copied: Mapping[str, str] = field(default_factory=dict)
    """Files and folders of the module that come uncompiled, with their names there."""
    tags: str = ""
    """Go build tags, separated by commas."""
    seconds: int = 60
    """Seconds that two cores take to build it after the tools above it."""
    files: tuple[ReleasedFile, ...] = ()
    """Files of the project's releases that have the programs; empty where none are published."""
    released_with: str = ""
    """Tool whose releases these are, if another one's."""
    released_as: str = ""
    """Version, where the module's says nothing."""

    @property
    def directory(self) -> Path:
        """Folder of its go.mod."""
        return MODULES / (self.folder or self.name)

    @property
    def programs(self) -> dict[str, str]:
        """Program name to full name of the Go package."""
        own = f"berth.invalid/lab/tools/{self.directory.name}"
        return {
            name: (
                own + package[1:] if package.startswith(".") else f"{self.module}/{package}"
            ).rstrip("/")
            for name, package in self.packages.items()
        }

    @property
    def version(self) -> str:
        """Pinned version, without the leading v.

        Raises:
            ValueError: the go.mod does not require the tool's module.
        """
        if self.released_as:
            return self.released_as
        text = (self.directory / "go.mod").read_text()
        found = re.search(rf"^(?:require)?\s+{re.escape(self.module)} v(\S+)", text, re.MULTILINE)
        if found is None:
            raise ValueError(f"{self.directory / 'go.mod'} does not require {self.module}")
        return found[1]

    @property
    def release(self) -> tuple[ReleasedFile, ...]:
        """Released files of the pinned version for this machine, empty if there are none."""
        return filled(self.files, BY_NAME[self.released_with or self.name].version)

    @property
    def linker_flags(self) -> str:
        """Flags that strip debug tables (a third of the size) and write the version in."""
        major, minor, *_ = self.version.split(".")
        values = {
            name: value.format(version=self.version, major=major, minor=minor)
            for name, value in self.variables.items()
        }
        return " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in values.items())])


def _table() -> dict[str, Tool]:
    tools = {}
    for name, row in tomllib.loads(Path(__file__).with_name("tools.toml").read_text()).items():
        files = tuple(ReleasedFile(**file) for file in row.pop("files", ()))
        tools[name] = Tool(name, files=files, **row)
    return tools


BY_NAME = _table()


def _needed_by(user: str) -> tuple[Tool, ...]:
    return tuple(tool for tool in BY_NAME.values() if tool.needed_by == user)


TOOLS = _needed_by("lab")
"""Tools of every lab."""

REAL_NODE_TOOLS = _needed_by("real-node")
"""Tools that only a real node needs."""

PULUMI = BY_NAME["pulumi"]
PULUMI_PYTHON = BY_NAME["pulumi-python"]
PULUMI_KUBERNETES = BY_NAME["pulumi-kubernetes"]
HELM = BY_NAME["helm"]
KUBECTL = BY_NAME["kubectl"]
KUBERAY = BY_NAME["kuberay-operator"]
CYCLONUS = BY_NAME["cyclonus"]
PULUMI_CODEGEN = BY_NAME["pulumi-codegen"]


def numbers(version: str) -> tuple[int, ...]:
    """Return a version's numbers, for comparing: `v1.26.0` gives (1, 26, 0)."""
    return tuple(map(int, re.findall(r"\d+", re.split(r"[-+]", version)[0])))

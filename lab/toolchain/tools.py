"""Table of the lab's tools. Versions are read from `lab/tools/*/go.mod`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from berth.lab.home import CLONE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MODULES = CLONE / "lab" / "tools"


@dataclass(frozen=True, eq=False)
class Tool:
    """Programs that are built together from one Go module folder.

    Attributes:
        name: unique among the tools; names the cache entry.
        purpose: reason why the lab needs it, in a few words.
        module: Go module whose version is the tool's version.
        packages: program name to Go package in the module; `.` begins one in the tool's own folder.
        seconds: rough time of a cold build on two cores, downloads included.
        folder: folder under `lab/tools` with go.mod and go.sum; by default the tool's name.
        variables: string variables that the linker sets; `{version}`, `{major}` and `{minor}` are
            filled in.
        copied: files and folders of the module that come along uncompiled, to their names beside
            the programs.
        tags: Go build tags, separated by commas.
    """

    name: str
    purpose: str
    module: str
    packages: Mapping[str, str]
    seconds: int
    folder: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    copied: Mapping[str, str] = field(default_factory=dict)
    tags: str = ""

    @property
    def directory(self) -> Path:
        """Folder of its go.mod."""
        return MODULES / (self.folder or self.name)

    @property
    def programs(self) -> dict[str, str]:
        """Program name to full name of the Go package."""
        own = f"berth.invalid/lab/tools/{self.directory.name}"
        return {
            name: (own + package[1:] if package.startswith(".") else f"{self.module}/{package}").rstrip("/")
            for name, package in self.packages.items()
        }

    @property
    def version(self) -> str:
        """Pinned version, without the leading v.

        Raises:
            ValueError: the go.mod does not require the tool's module.
        """
        text = (self.directory / "go.mod").read_text()
        found = re.search(rf"^(?:require)?\s+{re.escape(self.module)} v(\S+)", text, re.MULTILINE)
        if found is None:
            raise ValueError(f"{self.directory / 'go.mod'} does not require {self.module}")
        return found[1]

    @property
    def linker_flags(self) -> str:
        """Flags that strip debug tables (a third of the size) and write the version in."""
        major, minor, *_ = self.version.split(".")
        values = {
            name: value.format(version=self.version, major=major, minor=minor) for name, value in self.variables.items()
        }
        return " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in values.items())])


_KUBERNETES = {
    "k8s.io/component-base/version.gitVersion": "v{version}",
    "k8s.io/component-base/version.gitMajor": "{major}",
    "k8s.io/component-base/version.gitMinor": "{minor}",
    "k8s.io/component-base/version.gitTreeState": "clean",
    "k8s.io/client-go/pkg/version.gitVersion": "v{version}",
}
_PULUMI = {"github.com/pulumi/pulumi/sdk/v3/go/common/version.Version": "v{version}"}

PULUMI = Tool(
    "pulumi",
    "the engine that runs `pulumi up`",
    "github.com/pulumi/pulumi/pkg/v3",
    {"pulumi": "cmd/pulumi"},
    seconds=190,
    variables=_PULUMI,
)
PULUMI_PYTHON = Tool(
    "pulumi-python",
    "lets the engine run Python programs",
    "github.com/pulumi/pulumi/sdk/v3",
    {"pulumi-language-python": "python/cmd/pulumi-language-python"},
    seconds=40,
    variables=_PULUMI,
    copied={"python/cmd/pulumi-language-python-exec": "pulumi-language-python-exec"},
)
ETCD = Tool("etcd", "the cluster's database", "go.etcd.io/etcd/server/v3", {"etcd": ""}, seconds=25)
KWOK = Tool(
    "kwok",
    "plays the kubelet of every simulated node",
    "sigs.k8s.io/kwok",
    {"kwok": "cmd/kwok", "kwokctl": "cmd/kwokctl"},
    seconds=85,
)
KUBERNETES = Tool(
    "kubernetes",
    "the cluster: API server, controllers, scheduler",
    "k8s.io/kubernetes",
    {name: f"cmd/{name}" for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler")},
    seconds=240,
    variables=_KUBERNETES,
)
KUBECTL = Tool(
    "kubectl",
    "looks into the cluster",
    "k8s.io/kubernetes",
    {"kubectl": "cmd/kubectl"},
    seconds=25,
    folder="kubernetes",
    variables=_KUBERNETES,
)
KUBERAY = Tool(
    "kuberay-operator",
    "turns RayClusters into pods",
    "github.com/ray-project/kuberay/ray-operator",
    {"kuberay-operator": ""},
    seconds=80,
    folder="kuberay",
    copied={"config/crd/bases": "crds"},
)
HELM = Tool(
    "helm",
    "installs the operators' charts",
    "helm.sh/helm/v3",
    {"helm": "cmd/helm"},
    seconds=60,
    variables={"helm.sh/helm/v3/internal/version.version": "v{version}"},
)

TOOLS = (PULUMI_PYTHON, PULUMI, ETCD, KUBERNETES, KUBECTL, KWOK, KUBERAY, HELM)
"""Tools of every lab, in the order in which they are built."""

CONTAINERD = Tool(
    "containerd",
    "runs the real node's containers",
    "github.com/containerd/containerd/v2",
    {name: f"cmd/{name}" for name in ("containerd", "containerd-shim-runc-v2", "ctr")},
    seconds=75,
    tags="no_btrfs,no_devmapper,no_zfs",
    variables={"github.com/containerd/containerd/v2/version.Version": "v{version}"},
)
KUBERNETES_NODE = Tool(
    "kubernetes-node",
    "the real node's kubelet and service proxy",
    "k8s.io/kubernetes",
    {"kubelet": "./kubelet", "kube-proxy": "cmd/kube-proxy"},
    seconds=180,
    variables=_KUBERNETES,
)
COREDNS = Tool(
    "coredns",
    "answers the real pods' questions for names",
    "github.com/coredns/coredns",
    {"coredns": ""},
    seconds=120,
)
DRANET = Tool(
    "dranet",
    "hands the real node's network interfaces to pods",
    "sigs.k8s.io/dranet",
    {"dranet": "cmd/dranet"},
    seconds=90,
)
PAUSE = Tool("pause", "holds a real pod's namespaces", "golang.org/x/sys", {"pause": "."}, seconds=10)

REAL_NODE_TOOLS = (PAUSE, CONTAINERD, KUBERNETES_NODE, DRANET, COREDNS)
"""Tools that only a real node needs."""

CYCLONUS = Tool(
    "cyclonus",
    "says which traffic network policies let through",
    "github.com/mattfenwick/cyclonus",
    {"judge": "./judge"},
    seconds=60,
)

TEST_TOOLS = (CYCLONUS,)
"""Tools that only tests need."""

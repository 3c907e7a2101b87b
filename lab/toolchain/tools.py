"""Table of the lab's tools. Versions are read from `lab/tools/*/go.mod`.

KubeRay's operator and DraNet are released as container images only, and cyclonus' judge, the pause
program and the kubelet are berth's own around a module: those are always built from source.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from berth.lab.home import CLONE
from berth.lab.toolchain.releases import ReleasedFile, filled

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
        folder: folder under `lab/tools` with go.mod and go.sum; by default the tool's name.
        variables: string variables that the linker sets; `{version}`, `{major}` and `{minor}` are
            filled in.
        copied: files and folders of the module that come along uncompiled, to their names beside
            the programs.
        tags: Go build tags, separated by commas.
        files: files of the project's releases that have the programs; none where it publishes none.
        released_with: tool whose releases these are, where it is another one.
        released_as: its version, where the module's says nothing.
    """

    name: str
    purpose: str
    module: str
    packages: Mapping[str, str]
    folder: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    copied: Mapping[str, str] = field(default_factory=dict)
    tags: str = ""
    files: tuple[ReleasedFile, ...] = ()
    released_with: Tool | None = None
    released_as: str = ""

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
        return filled(self.files, (self.released_with or self).version)

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


def _on_github(repository: str, file: str, checksums: str, members: Mapping[str, str]) -> ReleasedFile:
    folder = f"https://github.com/{repository}/releases/download/v{{version}}/"
    return ReleasedFile(folder + file, checksums if "://" in checksums else folder + checksums, members)


def _kubernetes(*programs: str) -> tuple[ReleasedFile, ...]:
    folder = "https://dl.k8s.io/release/v{version}/bin/linux/{arch}"
    return tuple(ReleasedFile(f"{folder}/{name}", f"{folder}/{name}.sha256", {name: ""}) for name in programs)


def _pulumi(*programs: str) -> tuple[ReleasedFile, ...]:
    members = {name: f"pulumi/{name}" for name in programs}
    archive = "pulumi-v{version}-linux-{x64}.tar.gz"
    return (_on_github("pulumi/pulumi", archive, "pulumi-{version}-checksums.txt", members),)


PULUMI = Tool(
    "pulumi",
    "the engine that runs `pulumi up`",
    "github.com/pulumi/pulumi/pkg/v3",
    {"pulumi": "cmd/pulumi"},
    variables=_PULUMI,
    files=_pulumi("pulumi"),
)
PULUMI_PYTHON = Tool(
    "pulumi-python",
    "lets the engine run Python programs",
    "github.com/pulumi/pulumi/sdk/v3",
    {"pulumi-language-python": "python/cmd/pulumi-language-python"},
    variables=_PULUMI,
    copied={"python/cmd/pulumi-language-python-exec": "pulumi-language-python-exec"},
    files=_pulumi("pulumi-language-python", "pulumi-language-python-exec"),
    released_with=PULUMI,
)
PULUMI_KUBERNETES = Tool(
    "pulumi-kubernetes",
    "Pulumi's plugin that writes Kubernetes objects and Helm releases",
    "github.com/pulumi/pulumi-kubernetes/provider/v4",
    {"pulumi-resource-kubernetes": "."},
    variables={"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/version.Version": "{version}"},
    copied={"cmd/pulumi-resource-kubernetes/schema.json": "schema.json"},
    files=(
        _on_github(
            "pulumi/pulumi-kubernetes",
            "pulumi-resource-kubernetes-v{version}-linux-{arch}.tar.gz",
            # GitHub's own digests of the release's files.
            "https://api.github.com/repos/pulumi/pulumi-kubernetes/releases/tags/v{version}",
            {"pulumi-resource-kubernetes": "pulumi-resource-kubernetes"},
        ),
    ),
    # The module is of 2026-01-15, the last commit that the Go module proxy has before this release.
    # pyproject.toml pins the SDK of the same version for the lab.
    released_as="4.25.0",
)
_ETCD = "etcd-v{version}-linux-{arch}"
ETCD = Tool(
    "etcd",
    "the cluster's database",
    "go.etcd.io/etcd/server/v3",
    {"etcd": ""},
    files=(_on_github("etcd-io/etcd", f"{_ETCD}.tar.gz", "SHA256SUMS", {"etcd": f"{_ETCD}/etcd"}),),
)
_KWOK = "https://api.github.com/repos/kubernetes-sigs/kwok/releases/tags/v{version}"
KWOK = Tool(
    "kwok",
    "plays the kubelet of every simulated node",
    "sigs.k8s.io/kwok",
    {"kwok": "cmd/kwok", "kwokctl": "cmd/kwokctl"},
    # KWOK publishes no checksums of its own, but GitHub those of its files.
    files=tuple(
        _on_github("kubernetes-sigs/kwok", f"{name}-linux-{{arch}}", _KWOK, {name: ""}) for name in ("kwok", "kwokctl")
    ),
)
KUBERNETES = Tool(
    "kubernetes",
    "the cluster: API server, controllers, scheduler",
    "k8s.io/kubernetes",
    {name: f"cmd/{name}" for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler")},
    variables=_KUBERNETES,
    files=_kubernetes("kube-apiserver", "kube-controller-manager", "kube-scheduler"),
)
KUBECTL = Tool(
    "kubectl",
    "looks into the cluster",
    "k8s.io/kubernetes",
    {"kubectl": "cmd/kubectl"},
    folder="kubernetes",
    variables=_KUBERNETES,
    files=_kubernetes("kubectl"),
)
KUBERAY = Tool(
    "kuberay-operator",
    "turns RayClusters into pods",
    "github.com/ray-project/kuberay/ray-operator",
    {"kuberay-operator": ""},
    folder="kuberay",
    copied={"config/crd/bases": "crds"},
)
HELM = Tool(
    "helm",
    "installs the operators' charts",
    "helm.sh/helm/v3",
    {"helm": "cmd/helm"},
    variables={"helm.sh/helm/v3/internal/version.version": "v{version}"},
    files=(
        ReleasedFile(
            "https://get.helm.sh/helm-v{version}-linux-{arch}.tar.gz",
            "https://get.helm.sh/helm-v{version}-linux-{arch}.tar.gz.sha256sum",
            {"helm": "linux-{arch}/helm"},
        ),
    ),
)

TOOLS = (ETCD, PULUMI_KUBERNETES, KUBERNETES, PULUMI, KWOK, KUBERAY, HELM, KUBECTL, PULUMI_PYTHON)
"""Tools of every lab, in the order in which they are built."""

_CONTAINERD = "containerd-static-{version}-linux-{arch}"
CONTAINERD = Tool(
    "containerd",
    "runs the real node's containers",
    "github.com/containerd/containerd/v2",
    {name: f"cmd/{name}" for name in ("containerd", "containerd-shim-runc-v2", "ctr")},
    tags="no_btrfs,no_devmapper,no_zfs",
    variables={"github.com/containerd/containerd/v2/version.Version": "v{version}"},
    files=(
        _on_github(
            "containerd/containerd",
            f"{_CONTAINERD}.tar.gz",
            f"{_CONTAINERD}.tar.gz.sha256sum",
            {name: f"bin/{name}" for name in ("containerd", "containerd-shim-runc-v2", "ctr")},
        ),
    ),
)
KUBERNETES_NODE = Tool(
    "kubernetes-node",
    "the real node's kubelet and service proxy",
    "k8s.io/kubernetes",
    {"kubelet": "./kubelet", "kube-proxy": "cmd/kube-proxy"},
    variables=_KUBERNETES,
)
_COREDNS = "coredns_{version}_linux_{arch}.tgz"
COREDNS = Tool(
    "coredns",
    "answers the real pods' questions for names",
    "github.com/coredns/coredns",
    {"coredns": ""},
    files=(_on_github("coredns/coredns", _COREDNS, f"{_COREDNS}.sha256", {"coredns": "coredns"}),),
)
DRANET = Tool(
    "dranet",
    "hands the real node's network interfaces to pods",
    "sigs.k8s.io/dranet",
    {"dranet": "cmd/dranet"},
)
PAUSE = Tool("pause", "holds a real pod's namespaces", "golang.org/x/sys", {"pause": "."})

REAL_NODE_TOOLS = (PAUSE, CONTAINERD, KUBERNETES_NODE, DRANET, COREDNS)
"""Tools that only a real node needs."""

CYCLONUS = Tool(
    "cyclonus",
    "says which traffic network policies let through",
    "github.com/mattfenwick/cyclonus",
    {"judge": "./judge"},
)

TEST_TOOLS = (CYCLONUS,)
"""Tools that only tests need."""

"""Every tool of the lab as data. Versions live in `lab/tools/*/go.mod` and are read from there."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from berth.lab.home import CLONE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MODULES = CLONE / "lab" / "tools"


@dataclass(frozen=True)
class Copied:
    """A file or folder that is taken as it is from a Go module, beside what is compiled.

    Attributes:
        source: path inside the tool's main module.
        target: path inside the tool's folder.
    """

    source: str
    target: str


@dataclass(frozen=True)
class Tool:
    """Programs that are built together from one Go module folder.

    Attributes:
        name: unique among the tools; names the cache entry.
        purpose: why the lab needs it, in a few words.
        folder: the folder under `lab/tools` with its go.mod and go.sum.
        module: the Go module whose version is the tool's version.
        programs: program name to Go package.
        seconds: a cold build on two cores, roughly, modules to be downloaded included.
        variables: string variables that the linker sets; `{version}`, `{major}` and `{minor}` are filled in.
        copied: what comes along uncompiled.
        tags: Go build tags, separated by commas.
    """

    name: str
    purpose: str
    folder: str
    module: str
    programs: Mapping[str, str]
    seconds: int
    variables: Mapping[str, str] = field(default_factory=dict)
    copied: tuple[Copied, ...] = ()
    tags: str = ""

    @property
    def directory(self) -> Path:
        """Where its go.mod is."""
        return MODULES / self.folder

    @property
    def version(self) -> str:
        """The pinned version, without the leading v.

        Raises:
            ValueError: the go.mod doesn't require the tool's module.
        """
        text = (self.directory / "go.mod").read_text()
        found = re.search(rf"^(?:require)?\s+{re.escape(self.module)} v(\S+)", text, re.MULTILINE)
        if found is None:
            raise ValueError(f"{self.directory / 'go.mod'} does not require {self.module}")
        return found.group(1)

    @property
    def linker_flags(self) -> str:
        """Stripped of debug tables (a third of the size), with the version written in."""
        major, minor, *_ = self.version.split(".")
        set_variables = [
            f"-X {variable}={value.format(version=self.version, major=major, minor=minor)}"
            for variable, value in self.variables.items()
        ]
        return " ".join(["-s", "-w", *set_variables])


_KUBERNETES = {
    "k8s.io/component-base/version.gitVersion": "v{version}",
    "k8s.io/component-base/version.gitMajor": "{major}",
    "k8s.io/component-base/version.gitMinor": "{minor}",
    "k8s.io/component-base/version.gitTreeState": "clean",
    "k8s.io/client-go/pkg/version.gitVersion": "v{version}",
}

PULUMI = Tool(
    name="pulumi",
    purpose="the engine that runs `pulumi up`",
    folder="pulumi",
    module="github.com/pulumi/pulumi/pkg/v3",
    programs={"pulumi": "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"},
    seconds=190,
    variables={"github.com/pulumi/pulumi/sdk/v3/go/common/version.Version": "v{version}"},
)

PULUMI_PYTHON = Tool(
    name="pulumi-python",
    purpose="lets the engine run Python programs",
    folder="pulumi-python",
    module="github.com/pulumi/pulumi/sdk/v3",
    programs={
        "pulumi-language-python": "github.com/pulumi/pulumi/sdk/v3/python/cmd/pulumi-language-python",
    },
    seconds=40,
    variables={"github.com/pulumi/pulumi/sdk/v3/go/common/version.Version": "v{version}"},
    copied=(Copied("python/cmd/pulumi-language-python-exec", "pulumi-language-python-exec"),),
)

ETCD = Tool(
    name="etcd",
    purpose="the cluster's database",
    folder="etcd",
    module="go.etcd.io/etcd/server/v3",
    programs={"etcd": "go.etcd.io/etcd/server/v3"},
    seconds=25,
)

KWOK = Tool(
    name="kwok",
    purpose="plays the kubelet of every simulated node",
    folder="kwok",
    module="sigs.k8s.io/kwok",
    programs={"kwok": "sigs.k8s.io/kwok/cmd/kwok", "kwokctl": "sigs.k8s.io/kwok/cmd/kwokctl"},
    seconds=85,
)

KUBERNETES = Tool(
    name="kubernetes",
    purpose="the cluster: API server, controllers, scheduler",
    folder="kubernetes",
    module="k8s.io/kubernetes",
    programs={
        "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
        "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
        "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    },
    seconds=240,
    variables=_KUBERNETES,
)

KUBECTL = Tool(
    name="kubectl",
    purpose="looks into the cluster",
    folder="kubernetes",
    module="k8s.io/kubernetes",
    programs={"kubectl": "k8s.io/kubernetes/cmd/kubectl"},
    seconds=25,
    variables=_KUBERNETES,
)

KUBERAY = Tool(
    name="kuberay-operator",
    purpose="turns RayClusters into pods",
    folder="kuberay",
    module="github.com/ray-project/kuberay/ray-operator",
    programs={"kuberay-operator": "github.com/ray-project/kuberay/ray-operator"},
    seconds=80,
    copied=(Copied("config/crd/bases", "crds"),),
)

HELM = Tool(
    name="helm",
    purpose="installs the operators' charts",
    folder="helm",
    module="helm.sh/helm/v3",
    programs={"helm": "helm.sh/helm/v3/cmd/helm"},
    seconds=60,
    variables={"helm.sh/helm/v3/internal/version.version": "v{version}"},
)

TOOLS = (PULUMI_PYTHON, PULUMI, ETCD, KUBERNETES, KUBECTL, KWOK, KUBERAY, HELM)
"""In the order in which they are built."""

CONTAINERD = Tool(
    name="containerd",
    purpose="runs the real node's containers",
    folder="containerd",
    module="github.com/containerd/containerd/v2",
    programs={
        "containerd": "github.com/containerd/containerd/v2/cmd/containerd",
        "containerd-shim-runc-v2": "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
        "ctr": "github.com/containerd/containerd/v2/cmd/ctr",
    },
    seconds=75,
    tags="no_btrfs,no_devmapper,no_zfs",
    variables={"github.com/containerd/containerd/v2/version.Version": "v{version}"},
)

KUBERNETES_NODE = Tool(
    name="kubernetes-node",
    purpose="the real node's kubelet and service proxy",
    folder="kubernetes-node",
    module="k8s.io/kubernetes",
    programs={
        "kubelet": "berth.invalid/lab/tools/kubernetes-node/kubelet",
        "kube-proxy": "k8s.io/kubernetes/cmd/kube-proxy",
    },
    seconds=180,
    variables=_KUBERNETES,
)

COREDNS = Tool(
    name="coredns",
    purpose="answers the real pods' questions for names",
    folder="coredns",
    module="github.com/coredns/coredns",
    programs={"coredns": "github.com/coredns/coredns"},
    seconds=120,
)

DRANET = Tool(
    name="dranet",
    purpose="hands the real node's network interfaces to pods",
    folder="dranet",
    module="sigs.k8s.io/dranet",
    programs={"dranet": "sigs.k8s.io/dranet/cmd/dranet"},
    seconds=90,
)

PAUSE = Tool(
    name="pause",
    purpose="holds a real pod's namespaces",
    folder="pause",
    module="golang.org/x/sys",
    programs={"pause": "berth.invalid/lab/tools/pause"},
    seconds=10,
)

REAL_NODE_TOOLS = (PAUSE, CONTAINERD, KUBERNETES_NODE, DRANET, COREDNS)
"""Those that only a real node needs."""

CYCLONUS = Tool(
    name="cyclonus",
    purpose="says which traffic network policies let through",
    folder="cyclonus",
    module="github.com/mattfenwick/cyclonus",
    programs={"judge": "berth.invalid/lab/tools/cyclonus/judge"},
    seconds=60,
)

TEST_TOOLS = (CYCLONUS,)
"""Those that only tests need."""

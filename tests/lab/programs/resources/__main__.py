"""Objects and a Helm release whose handling by the kubernetes plugin no recording shows.

Config: `kubeconfig` is the path of the cluster's kubeconfig; `namespace` is made for all;
    `replicas` of a Deployment;
`data` of a ConfigMap with a name of its own; `release` installs the chart with so many replicas;
`unknown` takes the kubeconfig from a resource that a preview does not know;
`upsert` is the provider's `upsertExistingObjects`.
"""

# ruff: noqa: INP001 (the engine runs it as a program; it is no package)

from __future__ import annotations

import os
import signal
from pathlib import Path

import pulumi
import pulumi_kubernetes as kubernetes

# As in berth's own program: the engine interrupts it when an update fails, and says why.
signal.signal(signal.SIGINT, lambda *_: os._exit(32))

config = pulumi.Config()
kubeconfig = Path(config.require("kubeconfig")).read_text(encoding="utf-8")
first = kubernetes.Provider("first", kubeconfig=kubeconfig)
namespace = kubernetes.core.v1.Namespace(
    "namespace", metadata={"name": config.require("namespace")}, opts=pulumi.ResourceOptions(provider=first)
)
later = namespace.metadata.uid.apply(lambda _: kubeconfig) if config.get_bool("unknown") else kubeconfig
provider = kubernetes.Provider("provider", kubeconfig=later, upsert_existing_objects=config.get_bool("upsert"))
inside = config.require("namespace")
options = pulumi.ResourceOptions(provider=provider, depends_on=[namespace])

kubernetes.core.v1.ConfigMap(
    "fixed", metadata={"name": "fixed", "namespace": inside}, data={"key": config.get("data") or "1"}, opts=options
)
labels = {"app": "deployment"}
kubernetes.apps.v1.Deployment(
    "deployment",
    metadata={"name": "deployment", "namespace": inside},
    spec={
        "replicas": config.get_int("replicas") or 0,
        "selector": {"match_labels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {
                "node_selector": {"no-node": "has-this"},
                "containers": [{"name": "main", "image": "none", "resources": {"limits": {"cpu": "1000m"}}}],
            },
        },
    },
    opts=options,
)
if config.get_int("release") is not None:
    kubernetes.helm.v3.Release(
        "release",
        name="release",
        chart="./chart",
        namespace=inside,
        timeout=config.get_int("timeout") or 3,
        values={"replicas": config.get_int("release")},
        opts=options,
    )

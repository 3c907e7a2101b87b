"""ComputeDomain of a berth: NVLink between workers on several nodes.

NVIDIA's DRA driver makes the template of its claims, with its name, and starts a daemon on each
node where a pod claims it (https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu,
cmd/compute-domain-controller). A node has one channel, so that a worker takes a whole node.
"""

from berth.components.core.manifest import Manifest, manifest_of, unawaited
from berth.components.fabric.settings import Worker
from berth.components.sharing import Pool

NVLINK = "nvlink"
"""Name of the ComputeDomain, of the template of claims, and of the claim in a pod."""


def joined(worker: Worker, pool: Pool) -> bool:
    """Return whether NVLink joins a worker with those on other nodes: one that takes all NICs."""
    return pool.settings.nvlink and worker.nics == pool.settings.nics


def compute_domain(namespace: str, labels: dict[str, str]) -> Manifest:
    """Return the domain of a namespace; workers join and leave it, so it has no number of nodes."""
    return unawaited(manifest_of(__file__, "compute_domain", name=NVLINK, namespace=namespace, labels=labels))

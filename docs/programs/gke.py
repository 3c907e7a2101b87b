"""A GKE cluster with a pool whose GPUs four workers share."""

import pulumi
import pulumi_gcp

from berth.components.gke import (
    Cluster,
    ClusterInputs,
    ClusterSettings,
    GkeSettings,
    Network,
    NetworkInputs,
    NodePlace,
    NodePool,
    NodePoolInputs,
    PoolSettings,
)
from berth.components.sharing import TimeSlicing, node_labels, offered_pools

settings = GkeSettings(
    project="your-project",
    zone="us-central1-b",
    cluster=ClusterSettings(deletion_protection=False),
    pools={
        "cpu": PoolSettings(machine_type="n2-standard-16", nodes=2),
        "dev": PoolSettings(machine_type="g2-standard-24", nodes=1, sharing="any"),
    },
)
google = pulumi_gcp.Provider("google", project=settings.project, zone=settings.zone)
on_google = pulumi.ResourceOptions(providers={"gcp": google})

network = Network(
    "fleet", NetworkInputs(settings.network, settings.project, settings.in_region), on_google
)
cluster = Cluster("fleet", ClusterInputs(settings, network), on_google)
for name, pool in offered_pools(
    settings.pools, {"any": TimeSlicing(kind="time-slicing", replicas=4)}
).items():
    place = NodePlace(
        project=settings.project,
        cluster="fleet",
        location=settings.location,
        zones=settings.zones_of(pool.settings),
        node_labels=node_labels(pool),
    )
    NodePool(name, NodePoolInputs(pool.settings, cluster.name, place), on_google)

pulumi.export("kubeconfig", cluster.kubeconfig)

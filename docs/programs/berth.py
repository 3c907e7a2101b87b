"""A berth: a namespace with its isolation and a RayCluster."""

import pulumi
import pulumi_kubernetes

from berth.components.berth import Berth, BerthInputs
from berth.components.gke import PoolSettings
from berth.components.ray import RayShape, cluster_workload, complete_cluster
from berth.components.sharing import TimeSlicing, offered_pools

config = pulumi.Config()
cluster = pulumi_kubernetes.Provider("cluster", kubeconfig=config.require_secret("kubeconfig"))
pools = offered_pools(
    {
        "cpu": PoolSettings(machine_type="n2-standard-16", nodes=2),
        "dev": PoolSettings(machine_type="g2-standard-24", nodes=1, sharing="any"),
    },
    {"any": TimeSlicing(kind="time-slicing", replicas=4)},
)
shape = RayShape(
    workers=2, worker={"gpus": 1, "cpu": 2, "memory": "8Gi"}, head={"cpu": 1, "memory": "4Gi"}
)
settings = complete_cluster(
    "alice", shape, workers=pools["dev"], head=pools["cpu"], priority="berth-development"
)
inputs = BerthInputs(
    cluster_workload(settings), pools, environment="research", stack=pulumi.get_stack()
)
berth = Berth("alice", inputs, pulumi.ResourceOptions(providers={"kubernetes": cluster}))
pulumi.export("namespace", berth.namespace)

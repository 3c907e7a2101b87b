"""An environment and its berths, by the SDK that `pulumi package add` makes of berth's package."""

import pulumi
import pulumi_berth as berth

research = berth.Environment(
    "research",
    project="my-project",
    zone="us-central1-b",
    pools={"cpu": berth.PoolSettingsArgs(machine_type="n2-standard-16", nodes=1)},
    defaults=berth.BerthShapeArgs(worker=berth.WorkerShapeArgs(gpus=0, cpu=1, memory="4Gi")),
    engineers={"alice": berth.BerthShapeArgs(workers=1)},
)
# Stacks of engineers read these outputs.
pulumi.export("environment", research.environment)
pulumi.export("kubeconfig", research.kubeconfig)
pulumi.export("clusterId", research.cluster_id)

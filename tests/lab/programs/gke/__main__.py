# ruff: noqa: INP001 (a Pulumi project of its own)
"""A small GKE fleet, as any user of pulumi_gcp would write it."""

import os
import signal

import pulumi
import pulumi_gcp as gcp

# As in berth's own program: the engine interrupts it when an update fails, and says why.
signal.signal(signal.SIGINT, lambda *_: os._exit(32))

config = pulumi.Config()
google = gcp.Provider("google", project="berth-test", region="us-central1", zone="us-central1-b")
options = pulumi.ResourceOptions(provider=google)

network = gcp.compute.Network("network", name="fleet", auto_create_subnetworks=False, opts=options)
subnetwork = gcp.compute.Subnetwork(
    "subnetwork",
    name="fleet",
    network=network.id,
    region="us-central1",
    ip_cidr_range="10.0.0.0/20",
    secondary_ip_ranges=[
        {"range_name": "pods", "ip_cidr_range": "10.4.0.0/14"},
        {"range_name": "services", "ip_cidr_range": "10.0.32.0/20"},
    ],
    opts=options,
)
gcp.compute.Firewall(
    "internal", network=network.name, allows=[{"protocol": "tcp"}], source_ranges=["10.0.0.0/8"], opts=options
)
cluster = gcp.container.Cluster(
    "cluster",
    name="fleet",
    location="us-central1-b",
    network=network.id,
    subnetwork=subnetwork.id,
    initial_node_count=1,
    remove_default_node_pool=True,
    deletion_protection=False,
    datapath_provider="ADVANCED_DATAPATH",
    ip_allocation_policy={"cluster_secondary_range_name": "pods", "services_secondary_range_name": "services"},
    opts=options,
)
gpus = gcp.container.NodePool(
    "gpus",
    name="gpus",
    cluster=cluster.id,
    node_count=config.require_int("gpus"),
    node_config=gcp.container.NodePoolNodeConfigArgs(
        machine_type="a4-highgpu-8g",
        labels={"owner": config.get("owner") or "nobody"},
        spot=config.get_bool("spot"),
        guest_accelerators=[
            gcp.container.NodePoolNodeConfigGuestAcceleratorArgs(
                type="nvidia-b200",
                count=config.get_int("accelerators") or 8,
                gpu_driver_installation_config=gcp.container.NodePoolNodeConfigGuestAcceleratorGpuDriverInstallationConfigArgs(
                    gpu_driver_version="LATEST"
                ),
            )
        ],
    ),
    opts=options,
)
scaled = gcp.container.NodePool(
    "scaled",
    name="scaled",
    cluster=cluster.name,
    location=cluster.location,
    autoscaling={"total_min_node_count": 0, "total_max_node_count": 3},
    node_config={"machine_type": "n2-standard-8", "labels": {"scaled": "yes"}},
    opts=options,
)

pulumi.export("endpoint", cluster.endpoint)
pulumi.export("authority", cluster.master_auth.cluster_ca_certificate)
pulumi.export("groups", gpus.instance_group_urls)

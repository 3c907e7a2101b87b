"""The GKE network, cluster and node pools. The only folder that imports pulumi_gcp."""

"""Effects of planned changes of GKE clusters and node pools."""

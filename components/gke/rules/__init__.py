"""Rules across the settings of a GKE cluster, its networks and its node pools."""

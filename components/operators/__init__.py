"""What is installed on the cluster with Helm, through one helper (helm.py)."""

"""Fabric proof: an all-reduce over all GPUs of a RayCluster, and the cluster's objects behind it.

`job` builds the RayJob, `run` runs it and cleans up; `claims`, `nccl_log` and `evidence` read what
is there, `verdicts` and `causes` judge it, `report` shows it. Everything but `run` is pure.
"""

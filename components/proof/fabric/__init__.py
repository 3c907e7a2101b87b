"""The fabric proof: an all-reduce over all GPUs of a RayCluster, and what it and the cluster's objects show.

`job` makes the RayJob, `run` runs it and cleans up; `claims`, `nccl_log` and `evidence` read what is there, `verdicts` and `causes`
judge it, `report` shows it. All of it pure but `run`.
"""

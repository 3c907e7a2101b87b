"""Patches of the arguments of clusters and node pools: the settings, their checks, and the merge.

A patch has the names of Google's provider in Pulumi (`nodeConfig.bootDiskKmsKey`), and adds fields
for which berth has no setting. A field that berth sets is refused.
"""

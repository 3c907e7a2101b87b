"""Containers that Ray starts inside its pods, and how they get the pod's GPUs.

Belongs here: the setting, its rules, and the fields of pods that each way needs. Does not belong
here: the programs that run in the pods (components/programs/cdi.py, podman.py).
"""

from berth.components.nested.pods import NestedContainers, Parts, add_parts, config_map, parts_of

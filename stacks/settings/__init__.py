"""The whole configuration surface of berth, as pydantic models.

Belongs here: models, and their resolution across each other. All of it is pure.
Does not belong here: I/O of any kind (stacks/files/stack_file.py reads files), Pulumi, Kubernetes.
"""

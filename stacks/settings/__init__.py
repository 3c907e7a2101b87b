"""The whole configuration surface of berth, as pydantic models.

Belongs here: models, the facts that they are checked against, checks across models, errors. All of it is pure.
Does not belong here: I/O of any kind (stacks/stack_file.py reads files), Pulumi, Kubernetes.
"""

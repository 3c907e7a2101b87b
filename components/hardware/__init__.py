"""Facts about hardware and its drivers: machine types, GPUs, MIG profiles, quotas, versions, names.

Belongs here: facts, each with its source. Does not belong here: settings, manifests, anything that
berth decides.
"""

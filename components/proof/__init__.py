"""Proofs that what was provisioned is really there: what is run for them, what is found, and how that is judged.

Belongs here: pure manifests and pure judging, and the run that asks the API server and cleans up after itself. Does not
belong here: anything that stays in a cluster (that is Pulumi's), tables and exit codes (cli/).
"""

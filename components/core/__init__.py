"""Base of berth: manifests, base models, constrained types, problems with their place, errors.

Belongs here: what every slice needs and no slice owns. Does not belong here: facts about machines
(hardware/), imports of any other part of berth but the programs that run in pods, Pulumi.
"""

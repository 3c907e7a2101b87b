"""`berth diagnose`: everything that explains a berth's state, in one file for whoever helps.

Belongs here: what is gathered, and what is taken out of it. Does not belong here: judging it.
"""

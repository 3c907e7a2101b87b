"""`berth diagnose`: all that tells why a berth is as it is, in one file that can be given to somebody else.

Belongs here: what is gathered, and what is taken out of it. Does not belong here: judging it.
"""

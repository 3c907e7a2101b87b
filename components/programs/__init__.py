"""Programs that run inside pods, sent there as text.

Belongs here: standalone programs and modules that they share; they import the standard library,
each other, and at run time Ray or torch. Does not belong here: what a pod needs to run one (its
slice).
"""

"""Plan of Pulumi's engine, the fleet that it changes, and the base of effects. All of it is pure.

An effect has a level. `harmless`: running work notices nothing. `disturbs`: something restarts or
is away, and comes back with its work. `destroys`: running work ends, or capacity or data is lost
for good. A change that no slice knows counts as the worst possible.
"""

"""A plan of Pulumi's engine, the fleet that it changes, and the base of the effects that slices derive from it. All of it pure.

An effect has a level. `harmless`: running work notices nothing. `disturbs`: something restarts or is away, and comes back with
its work. `destroys`: running work ends, or capacity or data is lost for good. A change that no slice knows counts as the worst
that it can be.
"""

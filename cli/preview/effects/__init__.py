"""What a change does to what runs: one table for each kind of thing. All of it pure.

An effect has a level. `harmless`: nothing that runs notices. `disturbs`: something is away or restarts, and comes back by
itself with its work. `destroys`: running work ends, or capacity or data goes, which nothing brings back. What is not in
the tables counts as the worst that it can be.
"""

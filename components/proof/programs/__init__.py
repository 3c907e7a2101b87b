"""Programs that run inside a cluster: each file is sent as text, and needs nothing but Ray and torch there.

Belongs here: what a proof runs in pods. Does not belong here: imports of berth's own, which no image has.
"""

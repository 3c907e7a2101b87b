"""Stand-in for Google's REST APIs: what `berth doctor` reads, answered from the simulated projects.

Belongs here: reading, in the shapes of Google's answers. Does not belong here: making anything
(lab/plugins/gcp does that), and what the projects have and may do (lab/plugins/gcp/conditions.py).
"""

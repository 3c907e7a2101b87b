"""Repository of a user's own: `berth new` writes it, `berth upgrade` moves it to a newer berth.

Belongs here: files from the folder template/ (template.py), the record of what was written
(record.py), the wheel that a repository carries (wheels.py).
Does not belong here: settings of a user's stacks, which are written once and never replaced.
"""

"""Files that users write: stack files, YAML documents, manifests, and the passphrase of a state.

Belongs here: reading and writing them. Does not belong here: what their settings mean
(stacks/settings).
"""

"""Files that users write: stack files, YAML documents, manifests, and the passphrase of a state."""

"""Pictures of the docs."""

"""Plan of an update: the engine's preview, what it means, and how that is shown."""

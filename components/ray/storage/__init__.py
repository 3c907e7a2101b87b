"""Storage of head and workers: homes and volumes, as settings, claims and mounts of pods."""

"""Ray jobs on a berth: submit, follow, list, stop."""

"""SSH to a berth's pods, through the API server: `berth ssh`, `berth ssh-config`, `berth code`."""

"""`python -m berth.lab.plugins.gcp <engine>`: the simulated GKE as a plugin process.

Simulates nothing: it starts the plugin.
"""

from __future__ import annotations

import sys

from berth.lab.home import Home
from berth.lab.plugins.gcp.fleet import Fleet
from berth.lab.plugins.gcp.provider import SimulatedGoogleCloud
from berth.lab.plugins.gcp.store import Store
from berth.lab.plugins.server import serve

# The release of the real plugin that this stands in for.
VERSION = "10.2.0"

KUBERAY = "kuberay-operator"

if __name__ == "__main__":
    home = Home.current()
    fleet = Fleet(home.kubeconfig, home.charts / KUBERAY / "crds")
    serve(SimulatedGoogleCloud(Store(home.cloud), fleet), "gcp", VERSION, sys.argv[1:])

"""`python -m berth.lab.plugins.gcp <engine>`: the simulated GKE as a plugin process."""

import sys

from berth.lab.home import Home
from berth.lab.plugins.gcp.fleet import Fleet
from berth.lab.plugins.gcp.provider import SimulatedGoogleCloud
from berth.lab.plugins.gcp.server import serve
from berth.lab.plugins.gcp.store import Store

KUBERAY = "kuberay-operator"

if __name__ == "__main__":
    home = Home.current()
    fleet = Fleet(home.kubeconfig, home.charts / KUBERAY / "crds")
    serve(
        lambda engine: SimulatedGoogleCloud(Store(home.cloud), fleet, engine),
        sys.argv[1:],
        home.logs / "plugin-gcp.log",
    )

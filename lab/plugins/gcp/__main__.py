"""`python -m berth.lab.plugins.gcp <engine>`: the simulated GKE as a plugin process."""

import sys

from berth.lab.home import LabHome
from berth.lab.plugins.gcp.fleet import SimulatedFleet
from berth.lab.plugins.gcp.provider import SimulatedGoogleCloud
from berth.lab.plugins.gcp.server import serve
from berth.lab.plugins.gcp.store import Store

KUBERAY = "kuberay-operator"

if __name__ == "__main__":
    home = LabHome.current()
    fleet = SimulatedFleet(home.kubeconfig, home.charts / KUBERAY / "crds")
    serve(
        lambda engine: SimulatedGoogleCloud(Store(home.cloud), fleet, engine),
        sys.argv[1:],
        home.logs / "plugin-gcp.log",
    )

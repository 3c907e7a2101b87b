"""Start of the lab controller: `python -m berth.lab.devices --liveness=http://127.0.0.1:PORT/healthz`.

Simulates nothing: it starts the controller.
"""

from __future__ import annotations

import argparse
import logging
import sys
from urllib.parse import urlsplit

import kopf

from berth.lab.devices.handlers import Controller, registry
from berth.lab.home import Home


def main() -> int:
    """Run the controller of the lab that `BERTH_LAB` names; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m berth.lab.devices", description=__doc__)
    parser.add_argument("--liveness", required=True, help="address of the health endpoint, on loopback")
    options = parser.parse_args()
    if urlsplit(options.liveness).hostname not in {"127.0.0.1", "localhost", "::1"}:
        parser.error(f"--liveness={options.liveness}: the lab listens on loopback only")
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    # kopf logs every change that it sees.
    for name in ("kopf", "aiohttp", "asyncio"):
        logging.getLogger(name).setLevel(logging.WARNING)
    home = Home.current()
    if not home.kubeconfig.is_file():
        sys.stderr.write(f"the lab has no control plane: {home.kubeconfig} is missing; `berth lab up` starts it\n")
        return 2
    kopf.run(registry=registry(Controller(home)), standalone=True, clusterwide=True, liveness_endpoint=options.liveness)
    return 0


if __name__ == "__main__":
    sys.exit(main())

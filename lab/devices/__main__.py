"""Start of the lab controller: `python -m berth.lab.devices PORT`, whose port says that it runs."""

import logging
import signal
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

from berth.lab.devices.controller import Controller
from berth.lab.home import LabHome


class _Health(BaseHTTPRequestHandler):
    """Answer to the question whether the controller runs."""

    def do_GET(self) -> None:
        """Say that it does."""
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 (the base class's name)
        """Log nothing."""


def main() -> int:
    """Run the controller of the lab that `BERTH_LAB` names; return the exit status."""
    logging.basicConfig(
        stream=sys.stdout,
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    home = LabHome.current()
    if not home.kubeconfig.is_file():
        sys.stderr.write(
            f"the lab has no control plane: {home.kubeconfig} is missing; `berth lab up` starts"
            " it\n"
        )
        return 2
    controller = Controller(home)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        controller.start()
        HTTPServer(("127.0.0.1", int(sys.argv[1])), _Health).serve_forever()
    finally:
        controller.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())

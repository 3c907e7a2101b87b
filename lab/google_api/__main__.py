"""`python -m berth.lab.google_api PORT`: the stand-in as a process of the lab.

Simulates nothing: it starts the server.
"""

from __future__ import annotations

import sys

from berth.lab.google_api.server import serve
from berth.lab.home import Home

if __name__ == "__main__":
    serve(Home.current(), int(sys.argv[1]))

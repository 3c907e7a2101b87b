"""`python -m berth.lab.plugins.kubernetes <engine address>`: start of the plugin by the engine.

Simulates nothing: it starts the plugin.
"""

from __future__ import annotations

import sys
from importlib import metadata

from berth.lab.plugins.kubernetes.provider import KubernetesProvider
from berth.lab.plugins.server import serve

if __name__ == "__main__":
    # The engine asks for the version of the SDK that programs are written against.
    serve(KubernetesProvider(), "kubernetes", metadata.version("pulumi-kubernetes"), sys.argv[1:])

"""Process of the plugin: it serves the engine's gRPC protocol until the engine ends it."""

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

import grpc
from pulumi.runtime.proto import provider_pb2_grpc

from berth.lab.plugins.gcp.engine import Engine

# Each wait holds a thread, and the engine asks for as many resources at once as `--parallel`
# allows. Threads start only when they are needed.
_THREADS = 512

# The largest message that the engine itself accepts.
_OPTIONS = [
    ("grpc.max_receive_message_length", 400 << 20),
    ("grpc.max_send_message_length", 400 << 20),
]

_PARENT_CHECK_SECONDS = 1.0
_CLOSE_SECONDS = 2.0


def serve(provider: Callable[[Engine], Any], arguments: list[str], log: Path) -> NoReturn:
    """Serve until the engine closes the process, or is gone.

    Args:
        provider: makes the servicer of the protocol.
        arguments: of the process; the engine's address is the only one that is not an option.
        log: file of unexpected errors.
    """
    addresses = [argument for argument in arguments if not argument.startswith("-")]
    if len(addresses) != 1:
        sys.stderr.write(
            "pulumi-resource-gcp: started by the Pulumi engine, with the engine's address\n"
        )
        raise SystemExit(2)
    log.parent.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(
        filename=log, format="%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"
    )
    served = provider(Engine(addresses[0]))
    server = grpc.server(ThreadPoolExecutor(_THREADS), options=_OPTIONS)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(served, server)
    port = server.add_insecure_port("127.0.0.1:0")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()

    parent = os.getppid()
    while not stop.wait(_PARENT_CHECK_SECONDS) and os.getppid() == parent:
        pass
    server.stop(_CLOSE_SECONDS).wait(_CLOSE_SECONDS)
    logging.shutdown()
    # Threads that hang in a system call must not keep the process.
    os._exit(0)

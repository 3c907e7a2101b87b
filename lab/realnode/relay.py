"""`python -m berth.lab.realnode.relay LISTEN TARGET`: forwards the node's TCP connections.

The lab's API server listens on loopback only, where pods and the kubelet cannot reach it.
"""

import asyncio
import contextlib
import sys

_CHUNK_BYTES = 1 << 16


async def _pass(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(_CHUNK_BYTES):
            sink.write(data)
            await sink.drain()
        if sink.can_write_eof():
            sink.write_eof()
            return
    sink.close()


async def serve(listen: tuple[str, int], target: tuple[str, int]) -> None:
    """Forward every connection to `listen`, for ever."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(*target)
        except OSError:
            writer.close()
            return
        try:
            await asyncio.gather(_pass(reader, far_writer), _pass(far_reader, writer))
        finally:
            writer.close()
            far_writer.close()

    server = await asyncio.start_server(connected, *listen)
    async with server:
        await server.serve_forever()


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(_address(sys.argv[1]), _address(sys.argv[2])))

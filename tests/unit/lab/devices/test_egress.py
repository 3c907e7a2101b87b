"""The API server's way to pods: this machine and the real node are reached, and nobody else."""

from __future__ import annotations

import asyncio
from pathlib import Path

from berth.lab.devices.egress import Egress


def test_only_this_machine_and_the_real_node_are_reached() -> None:
    egress = Egress()
    hosts = ("127.0.0.1", "localhost", "10.0.0.77", "example.com", "10.199.0.1")
    assert [egress.real(host) for host in hosts] == [True, True, False, False, False]
    egress.reach("node", "10.199.0.1")
    assert egress.real("10.199.0.1")
    egress.reach("node", "")
    assert not egress.real("10.199.0.1")


def test_a_connection_is_passed_on_in_both_directions_or_refused(tmp_path: Path) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read())
        writer.close()

    async def connect(to: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, str]:
        reader, writer = await asyncio.open_unix_connection(tmp_path / "egress.sock")
        writer.write(f"CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n".encode())
        answer = (await reader.readuntil(b"\r\n\r\n")).decode()
        return reader, writer, answer.split("\r\n", 1)[0]

    async def all_of_it() -> None:
        egress, far = Egress(), await asyncio.start_server(echo, "127.0.0.1", 0)
        await egress.start(tmp_path / "egress.sock")
        reader, writer, answer = await connect(f"127.0.0.1:{far.sockets[0].getsockname()[1]}")
        assert answer == "HTTP/1.1 200 OK"
        writer.write(b"hello")
        writer.write_eof()
        assert await reader.read() == b"hello"
        assert (await connect("10.0.0.9:8265"))[2] == "HTTP/1.1 502 Bad Gateway", "an address of a simulated pod"
        await egress.close()

    asyncio.run(asyncio.wait_for(all_of_it(), 20))

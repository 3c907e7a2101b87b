"""The API server's way to pods: simulated heads answer, everything else is passed on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

from berth.lab.devices.egress import Egress, RayHeads
from berth.lab.devices.ray_pods import RayNode
from berth.lab.devices.ray_serve import APPLICATIONS

HEAD = RayNode("1", "a-head", ("berth-a", "a"), "10.0.0.9", head=True, ready=True)
CONFIG = {"applications": [{"name": "a", "import_path": "a:b"}]}

Connect = Callable[[str], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter, str]]]


def run(tmp_path: Path, heads: RayHeads, test: Callable[[Connect], Awaitable[None]]) -> None:
    socket = tmp_path / "egress.sock"

    async def connect(to: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, str]:
        reader, writer = await asyncio.open_unix_connection(socket)
        writer.write(f"CONNECT {to} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        answer = (await reader.readuntil(b"\r\n\r\n")).decode()
        return reader, writer, answer.split("\r\n", 1)[0]

    async def all_of_it() -> None:
        egress = Egress(heads)
        await egress.start(socket)
        try:
            await asyncio.wait_for(test(connect), 20)
        finally:
            await egress.close()

    asyncio.run(all_of_it())


async def ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: str, body: str = ""
) -> tuple[int, str]:
    writer.write(f"{request} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if line)
    text = await reader.readexactly(int(fields["content-length"]))
    return int(head.split(" ")[1]), text.decode()


def heads() -> RayHeads:
    found = RayHeads()
    found.see("1", HEAD)
    found.see("3", RayNode("3", "a-worker", HEAD.cluster, "10.0.0.8", head=False, ready=True))
    return found


def test_a_simulated_head_answers_on_one_connection(tmp_path: Path) -> None:
    async def test(connect: Connect) -> None:
        assert (await connect("10.0.0.9:8000"))[2].startswith("HTTP/1.1 502"), "Serve has not started"
        reader, writer, answer = await connect("10.0.0.9:8265")
        assert answer == "HTTP/1.1 200 OK"
        assert await ask(reader, writer, f"PUT {APPLICATIONS}", json.dumps(CONFIG)) == (200, "")
        status, text = await ask(reader, writer, f"GET {APPLICATIONS}?api_type=declarative")
        assert (status, json.loads(text)["applications"]["a"]["status"]) == (200, "RUNNING")
        reader, writer, _ = await connect("10.0.0.9:8000")
        assert await ask(reader, writer, "GET /-/healthz") == (200, "success")
        assert (await connect("10.0.0.9:6379"))[2].startswith("HTTP/1.1 502"), "nothing else is simulated"
        reader, writer, _ = await connect("10.0.0.8:8000")
        assert await ask(reader, writer, "GET /-/routes") == (200, '{"/":"a"}'), "Serve's proxy on a worker"
        assert (await connect("10.0.0.8:8265"))[2].startswith("HTTP/1.1 502"), "a worker has no dashboard"

    run(tmp_path, heads(), test)


def test_a_connection_that_is_kept_reaches_the_pod_that_has_the_address_now(tmp_path: Path) -> None:
    """KWOK gives addresses out again at once, and the API server keeps connections to them."""
    known = heads()

    async def test(connect: Connect) -> None:
        reader, writer, _ = await connect("10.0.0.9:8265")
        await ask(reader, writer, f"PUT {APPLICATIONS}", json.dumps(CONFIG))
        known.see("1", None)
        known.see("2", RayNode("2", "a-head", HEAD.cluster, HEAD.address, head=True, ready=True))
        _, text = await ask(reader, writer, f"GET {APPLICATIONS}")
        assert json.loads(text)["applications"] == {}, "the next pod knows nothing of the last one's"
        known.see("2", None)
        assert (await ask(reader, writer, f"GET {APPLICATIONS}"))[0] == 502
        assert await reader.read(-1) == b"", "and the connection is closed"

    run(tmp_path, known, test)


def test_an_address_of_the_pods_range_is_nobody_elses(tmp_path: Path) -> None:
    """Another machine may have the address of a pod that is not known yet."""
    known = heads()

    async def test(connect: Connect) -> None:
        assert (await connect("10.0.0.77:8000"))[2].startswith("HTTP/1.1 502")

    run(tmp_path, known, test)
    assert [known.real(host) for host in ("127.0.0.1", "localhost", "10.0.0.77", "example.com")] == [
        True,
        True,
        False,
        False,
    ]
    known.reach("node", "10.199.0.1")
    assert known.real("10.199.0.1")
    known.reach("node", "")
    assert not known.real("10.199.0.1")

"""Runs a program in its own network namespace, and delays its connections to other sites.

    unshare --net python -m plait.bench.gyro.relay '{"site": 0, …}' PROGRAM ARGUMENT …

Site *n* has the address 127.0.0.*n+1* everywhere. In the namespace of a site, the addresses of the other sites belong
to relays. A relay passes data through a Unix socket into the namespace of the other site. Data to and from the ports in
`delayed` is delayed by the one-way time, in both directions. The order of the data stays the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import socket
import struct
import sys
from pathlib import Path

import msgspec

_SET_FLAGS, _UP_AND_RUNNING = 0x8914, 0x41
_CHUNK = 1 << 16


class Relays(msgspec.Struct, frozen=True):
    """The settings of the relays of one site."""

    site: int
    delays: list[float]
    """Seconds to each site, one way."""
    folder: str
    """The folder of the Unix sockets, which every namespace can reach."""
    ports: list[int]
    """The ports to relay. Without ports, this process only ends its child when its parent ends."""
    delayed: list[int]


def address(site: int) -> str:
    """The address of a site.

    >>> address(2)
    '127.0.0.3'
    """
    return f"127.0.0.{site + 1}"


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float) -> None:
    """Copy data with a delay, until the reader ends."""
    loop = asyncio.get_running_loop()
    held: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def read() -> None:
        data = b"more"
        while data:
            try:
                data = await reader.read(_CHUNK)
            except OSError:
                data = b""
            held.put_nowait((loop.time() + delay, data))

    task = asyncio.create_task(read())
    with contextlib.suppress(OSError):
        while True:
            due, data = await held.get()
            if (left := due - loop.time()) > 0:
                await asyncio.sleep(left)
            if not data:
                break
            writer.write(data)
            await writer.drain()
    writer.close()
    await task


async def _both(
    one: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    other: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    delay: float,
) -> None:
    await asyncio.gather(pump(one[0], other[1], delay), pump(other[0], one[1], delay))


async def serve(relays: Relays) -> list[asyncio.Server]:
    """Start the relays to and from all other sites."""
    folder, here = Path(relays.folder), relays.site
    servers = []
    for there in range(len(relays.delays)):
        for port in relays.ports if there != here else []:
            delay = relays.delays[there] if port in relays.delayed else 0.0

            async def leave(
                reader: asyncio.StreamReader,
                writer: asyncio.StreamWriter,
                path: Path = folder / f"{here}-{there}-{port}",
                delay: float = delay,
            ) -> None:
                try:
                    other = await asyncio.open_unix_connection(path)
                except OSError:  # The other site has not started yet.
                    writer.close()
                    return
                await _both((reader, writer), other, delay)

            async def enter(
                reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int = port, source: int = there
            ) -> None:
                try:
                    other = await asyncio.open_connection(address(here), port, local_addr=(address(source), 0))
                except OSError:
                    writer.close()
                    return
                await _both((reader, writer), other, 0.0)

            servers.append(await asyncio.start_server(leave, address(there), port))
            servers.append(await asyncio.start_unix_server(enter, folder / f"{there}-{here}-{port}"))
    return servers


def _loopback() -> None:
    """Start the loopback device, which is down in a new namespace."""
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh14s", b"lo", _UP_AND_RUNNING, b""))


async def _watch(parent: int) -> None:
    """Kill this process and its children when its parent ends, even if the parent was killed."""
    while os.getppid() == parent:
        await asyncio.sleep(0.5)
    os.killpg(0, signal.SIGKILL)


async def _main(relays: Relays, command: list[str]) -> int:
    servers = await serve(relays)
    process = await asyncio.create_subprocess_exec(*command)
    watch = asyncio.create_task(_watch(os.getppid()))
    code = await process.wait()
    watch.cancel()
    for server in servers:
        server.close()
    return code


if __name__ == "__main__":
    given = msgspec.json.decode(sys.argv[1], type=Relays)
    if given.ports:
        _loopback()
    sys.exit(asyncio.run(_main(given, sys.argv[2:])))

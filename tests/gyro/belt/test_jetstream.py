"""Connections to NATS that fail are closed."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading

import pytest

from plait.gyro.belt.logs.address import address
from plait.gyro.belt.logs.jetstream import JetStream
from plait.gyro.belt.logs.log import LogGoneError
from tests.support.patience import PATIENCE, until

INFO = b'INFO {"server_id":"x","version":"2.10.0","proto":1,"max_payload":1048576,"headers":true}\r\n'


class Rude:
    """Answers the first connections, then ends them, or reads no more; it ends all later ones at once."""

    def __init__(self, polite: int, *, deaf: bool = False) -> None:
        self.ended, self._polite, self._deaf = 0, polite, deaf
        self._closing = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"nats:nats://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                db, _ = self._listener.accept()
            except OSError:
                return
            with db:
                if self._polite:
                    self._polite -= 1
                    db.sendall(INFO)
                    with db.makefile("rb") as lines:
                        while not lines.readline().startswith(b"PING"):
                            pass
                    db.sendall(b"PONG\r\n")
                    if self._deaf:
                        self._closing.wait(PATIENCE)
                    continue
            self.ended += 1

    def close(self) -> None:
        self._closing.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


@pytest.mark.slow
def test_connections_that_end_early_are_closed() -> None:
    """Otherwise the garbage collector closes them, with a ResourceWarning, which is an error in tests."""
    server = Rude(polite=1)
    log = JetStream(address(server.url))
    until(lambda: server.ended >= 4, "the client tries to connect again")
    log.close()
    server.close()
    gc.collect()


@pytest.mark.slow
def test_a_first_connection_that_fails_is_closed() -> None:
    server = Rude(polite=0)
    with pytest.raises(LogGoneError):
        JetStream(address(server.url), timeout=0.5)
    server.close()
    gc.collect()


@pytest.mark.slow
def test_a_connection_that_nobody_reads_is_closed() -> None:
    server = Rude(polite=1, deaf=True)
    log = JetStream(address(server.url), timeout=0.3)

    async def send() -> int:
        transport = log._nats._transport._bare_io_writer.transport
        await log._nats.publish("stream", bytes(1_000_000))
        while not transport.get_write_buffer_size():
            transport.write(bytes(1_000_000))
            await asyncio.sleep(0)
        return int(transport.get_write_buffer_size())

    assert log._do(asyncio.wait_for(send(), PATIENCE)) > 0
    log.close()
    server.close()
    gc.collect()

"""Streams of NATS JetStream, for threads: the client of NATS runs in an event loop of its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from plait.gyro.belt.logs.address import Address
from plait.gyro.belt.logs.log import LogGoneError, TooLargeError
from plait.kernel.errors import UsageError
from plait.kernel.extras import needs

with needs("serve"):
    from nats.aio.client import Client, Srv
    from nats.errors import Error as NatsError
    from nats.errors import MaxPayloadError
    from nats.js.api import RetentionPolicy, StorageType, StreamConfig
    from nats.js.errors import APIError, NotFoundError

Result = TypeVar("Result")
_WRONG_LAST_SEQUENCE = 10071
_TOO_LARGE = 10054


class _Client(Client):
    """The client of NATS. It closes a connection that has failed before it opens the next one."""

    async def _connect_to_server(self, s: Srv) -> None:
        self.abort()
        await super()._connect_to_server(s)

    def abort(self) -> None:
        """Close the connection, also if the server does not read what was sent."""
        transport: Any = self._transport
        if transport is not None:
            transport.close()
        if (writer := getattr(transport, "_bare_io_writer", None)) is not None:
            writer.transport.abort()


class JetStream:
    """A connection to the servers of a NATS cluster. The client reconnects to the next server by itself."""

    def __init__(self, where: Address, *, timeout: float = 5.0) -> None:
        self._address = where
        self._timeout = timeout
        self._said = ""
        self._denied = asyncio.Event()
        self._client: _Client | None = None
        self._waiting: set[asyncio.Task[Any]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="nats", daemon=True)
        self._thread.start()
        try:
            self._nats = self._do(asyncio.wait_for(self._connect(), 2 * timeout))
            self._js = self._nats.jetstream(timeout=timeout)
        except BaseException:
            self._end()
            raise

    async def _connect(self) -> Any:
        options = self._address.options
        given: dict[str, Any] = {"reconnect_time_wait": 0.2}
        if self._address.user:
            given |= {"user": self._address.user, "password": self._address.password()}
        if "credentials" in options:
            given["user_credentials"] = options["credentials"]
        if (context := self._address.tls()) is not None:
            given["tls"] = context
        client = self._client = _Client()
        connecting = client.connect(
            list(self._address.urls),
            connect_timeout=2,
            max_reconnect_attempts=-1,
            ping_interval=5,
            error_cb=self._error,
            disconnected_cb=self._disconnected,
            **given,
        )
        tasks = [asyncio.ensure_future(connecting), asyncio.ensure_future(self._denied.wait())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if self._denied.is_set():
                raise UsageError(
                    f"NATS refuses the connection: {self._said}",
                    hint="check the user and its password, or the credentials",
                )
            tasks[0].result()
            return client
        except BaseException:
            await client.close()
            raise
        finally:
            for task in tasks:
                task.cancel()

    async def _error(self, error: Exception) -> None:
        """Remember why there is no connection. Requests report it."""
        if not self._denied.is_set():
            self._said = str(error) or type(error).__name__
        if "uthorization" in self._said:
            self._denied.set()

    async def _disconnected(self) -> None:
        """Requests on a lost connection get no answer: do not wait for it."""
        for task in list(self._waiting):
            task.cancel()

    async def _limited(self, work: Coroutine[Any, Any, Result]) -> Result:
        task = asyncio.current_task()
        assert task is not None
        self._waiting.add(task)
        try:
            return await asyncio.wait_for(work, self._timeout)
        finally:
            self._waiting.discard(task)

    def _ask(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The answer to a request."""
        return self._do(self._limited(work))

    def _do(self, work: Coroutine[Any, Any, Result]) -> Result:
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except MaxPayloadError as error:
            raise TooLargeError(f"nats: {error}") from None
        except (NatsError, OSError, TimeoutError, ValueError, CancelledError) as error:
            raise LogGoneError(f"nats: {str(error) or self._said or 'no answer'}") from None

    @property
    def largest(self) -> int:
        """The maximal number of bytes of a message."""
        return int(self._nats.max_payload)

    def create(self, stream: str, *, replicas: int) -> None:
        """Create a stream, unless it exists. It keeps all messages, in files."""
        config = StreamConfig(
            name=stream,
            subjects=[stream],
            retention=RetentionPolicy.LIMITS,
            storage=StorageType.FILE,
            num_replicas=replicas,
            deny_delete=True,
            deny_purge=True,
            duplicate_window=120,
        )
        try:
            self._ask(self._js.add_stream(config))
        except LogGoneError as error:
            if not self.exists(stream):
                raise LogGoneError(f"{error}: the stream {stream} cannot be created") from None

    def exists(self, stream: str) -> bool:
        """Whether a stream exists. UsageError: its first messages are missing."""

        async def look() -> bool:
            try:
                state = (await self._js.stream_info(stream)).state
            except NotFoundError:
                return False
            if state.first_seq > 1:
                raise UsageError(
                    f"the stream {stream} begins with message {state.first_seq}: older messages were removed",
                    hint="restore the stream from its backup; it must keep all messages",
                )
            return True

        return self._ask(look())

    def publish(self, stream: str, expected: int, message: bytes, name: str) -> bool:
        """Append a message if the stream has exactly `expected` messages; whether it was appended."""
        headers = {
            "Nats-Expected-Stream": stream,
            "Nats-Expected-Last-Sequence": str(expected),
            "Nats-Msg-Id": name,
        }

        async def send() -> bool:
            try:
                answer = await self._js.publish(stream, message, timeout=self._timeout, headers=headers)
            except APIError as error:
                if error.err_code == _WRONG_LAST_SEQUENCE:
                    return False
                if error.err_code == _TOO_LARGE:
                    raise MaxPayloadError from None
                raise
            return not answer.duplicate and answer.seq == expected + 1

        return self._ask(send())

    def last(self, stream: str) -> tuple[int, bytes] | None:
        """The number and the content of the last message; None if there is none."""

        async def get() -> tuple[int, bytes] | None:
            try:
                found = await self._js.get_msg(stream, subject=stream)
            except NotFoundError as error:
                if await self._missing(stream):
                    raise LookupError(stream) from error
                return None
            return int(found.seq or 0), found.data or b""

        return self._existing(get())

    def messages(self, stream: str, numbers: Sequence[int]) -> list[bytes]:
        """The messages with these numbers, up to the first that does not exist."""

        async def get(number: int) -> bytes | None:
            try:
                return (await self._js.get_msg(stream, seq=number)).data or b""
            except NotFoundError:
                return None

        async def get_all() -> list[bytes]:
            found = await asyncio.gather(*(get(number) for number in numbers))
            return found[: found.index(None)] if None in found else found  # type: ignore[return-value]

        return self._existing(get_all())

    async def _missing(self, stream: str) -> bool:
        try:
            await self._js.stream_info(stream)
        except NotFoundError:
            return True
        return False

    def _existing(self, work: Coroutine[Any, Any, Result]) -> Result:
        try:
            return self._ask(work)
        except LookupError as error:
            raise missing(str(error)) from None

    def close(self) -> None:
        """Close the connection."""
        if not self._loop.is_closed():
            with contextlib.suppress(LogGoneError):
                self._do(asyncio.wait_for(self._nats.close(), self._timeout))
            self._end()

    def _end(self) -> None:
        """End the event loop, and what still runs in it."""

        async def cancel() -> None:
            if self._client is not None:
                self._client.abort()
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks | {asyncio.create_task(asyncio.sleep(0))}, timeout=self._timeout)
            if self._client is not None:
                self._client.abort()  # the last attempt to connect again
            await asyncio.sleep(0)

        asyncio.run_coroutine_threadsafe(cancel(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=self._timeout)
        if not self._thread.is_alive():
            self._loop.close()


def missing(stream: str) -> UsageError:
    """The error for a stream that was deleted."""
    return UsageError(
        f"the stream {stream} is missing in NATS",
        hint="restore the stream from its backup; to begin anew, use a new folder and a new log",
    )

"""Requests to etcd: several endpoints, TLS, authentication; and keys with one prefix.

A request goes to the next endpoint if it surely had no effect: the connection failed, or the request only reads. A
request that writes and gets no answer stays unsure (`LogGoneError`): another endpoint could execute it twice.
"""

from __future__ import annotations

import base64
import http.client
import threading
import urllib.parse
from typing import Any

import msgspec

from plait.gyro.belt.logs.address import Address
from plait.gyro.belt.logs.log import LogGoneError, TooLargeError
from plait.kernel.errors import UsageError

_EXPIRED = ("invalid auth token", "auth store is old", "auth revision", "revision of auth store")
_DENIED = ("permission denied", "user name is empty", "invalid user ID or password", "user name not found")
_NOT_TRIED = ("no leader", "not leader", "not ready", "connection refused")
"""Answers of an etcd that has not tried to execute the request."""


class _UnsentError(OSError):
    """The request was not sent."""


class EtcdClient:
    """The JSON gateway of etcd 3.4 or later."""

    def __init__(self, where: Address, *, timeout: float = 5.0) -> None:
        self._address = where
        self._timeout = timeout
        self._tls = where.tls()
        self._current = 0
        self._token: str | None = None
        self._lock = threading.Lock()
        self._mine = threading.local()
        self._made: list[http.client.HTTPConnection] = []

    def ask(self, path: str, question: dict[str, Any], *, reads: bool = False) -> dict[str, Any]:
        """The answer to a request. `reads`: the request changes nothing, so it may be sent twice."""
        body = msgspec.json.encode(question)
        said = ""
        renewed = False
        for _ in range(2 * len(self._address.urls)):
            number = self._current
            try:
                token = self._authenticate(number)
                status, answer = self._send(number, f"/v3/{path}", body, token)
                content = _decoded(answer)
            except (OSError, http.client.HTTPException) as error:
                said = f"{self._address.urls[number]}: {error or type(error).__name__}"
                self._leave(number)
                if reads or isinstance(error, _UnsentError):
                    continue
                break
            if status == 200:
                return content
            said = str(content.get("error") or content.get("message") or status)
            if self._token is not None and any(text in said for text in _EXPIRED) and not renewed:
                self._forget(token)
                renewed = True
                continue
            self._allowed(said)
            if "too large" in said or "larger than max" in said:
                raise TooLargeError(f"etcd: {said}")
            self._leave(number)
            if not reads and not any(text in said for text in _NOT_TRIED):
                break
        raise LogGoneError(f"etcd: {said}")

    def _allowed(self, said: str) -> None:
        """Raise a UsageError if an answer says that the user may not do this."""
        if "CommonName of client" in said:
            raise UsageError(
                "etcd with authentication refuses a client certificate that has a common name",
                hint="use a client certificate without a common name (CN)",
            )
        if any(text in said for text in _DENIED):
            raise UsageError(
                f"etcd refuses user {self._address.user or '(none)'}: {said}",
                hint="check the user and its password; the user needs a role with readwrite to the prefix plait-gyro/",
            )

    def _leave(self, number: int) -> None:
        """Use the next endpoint from now on."""
        with self._lock:
            if self._current == number:
                self._current = (number + 1) % len(self._address.urls)

    def _authenticate(self, number: int) -> str | None:
        """The token for authentication. etcd forgets it after some minutes, and when it restarts."""
        if not self._address.user:
            return None
        with self._lock:
            if self._token is None:
                question = {"name": self._address.user, "password": self._address.password()}
                try:
                    status, answer = self._send(number, "/v3/auth/authenticate", msgspec.json.encode(question), None)
                except (OSError, http.client.HTTPException) as error:
                    raise _UnsentError(str(error)) from None
                content = _decoded(answer)
                if status != 200:
                    said = str(content.get("error", status))
                    if "authentication is not enabled" in said:
                        return None
                    self._allowed(said)
                    raise _UnsentError(said)
                self._token = str(content["token"])
            return self._token

    def _forget(self, token: str | None) -> None:
        with self._lock:
            if self._token == token:
                self._token = None

    def _send(self, number: int, path: str, body: bytes, token: str | None) -> tuple[int, bytes]:
        """One request on the connection of this thread. _UnsentError: it was not sent."""
        if not hasattr(self._mine, "kept"):
            self._mine.kept = {}
        kept: dict[int, http.client.HTTPConnection] = self._mine.kept
        connection = kept.get(number)
        if connection is None:
            connection = self._connect(number)
            kept[number] = connection
        try:
            connection.request("POST", path, body, {"Authorization": token} if token else {})
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            kept.pop(number, None)
            raise

    def _connect(self, number: int) -> http.client.HTTPConnection:
        parts = urllib.parse.urlsplit(self._address.urls[number])
        host, port = parts.hostname or "", parts.port
        if self._tls is None:
            connection = http.client.HTTPConnection(host, port, timeout=self._timeout)
        else:
            connection = http.client.HTTPSConnection(host, port, timeout=self._timeout, context=self._tls)
        try:
            connection.connect()
        except OSError as error:
            connection.close()
            raise _UnsentError(str(error)) from None
        self._made.append(connection)
        return connection

    def close(self) -> None:
        """Close the connections of all threads."""
        for connection in self._made:
            connection.close()


class Keys:
    """Keys of etcd with one prefix."""

    def __init__(self, where: Address, name: str) -> None:
        self._client = EtcdClient(where)
        self._prefix = f"plait-gyro/{name}/"

    def key(self, name: str) -> str:
        """A key, as etcd wants it."""
        return _text((self._prefix + name).encode())

    def put(self, name: str, value: bytes) -> dict[str, Any]:
        """An operation of a transaction: set a key."""
        return {"requestPut": {"key": self.key(name), "value": _text(value)}}

    def unchanged(self, name: str, revision: int) -> dict[str, Any]:
        """A condition of a transaction: the last change of a key has this revision; 0: the key does not exist."""
        return {"key": self.key(name), "target": "MOD", "mod_revision": str(revision), "result": "EQUAL"}

    def get(self, name: str) -> tuple[bytes, int] | None:
        """A value, and the revision of its last change."""
        found = self._client.ask("kv/range", {"key": self.key(name)}, reads=True).get("kvs", [])
        return (base64.b64decode(found[0]["value"]), int(found[0]["mod_revision"])) if found else None

    def range(self, first: str, end: str, limit: int) -> list[bytes]:
        """The values of the keys from `first` to before `end`, in order."""
        question = {
            "key": self.key(first), "range_end": self.key(end), "limit": str(limit), "sort_order": "ASCEND"
        }  # fmt: skip
        return [
            base64.b64decode(kv["value"]) for kv in self._client.ask("kv/range", question, reads=True).get("kvs", [])
        ]

    def change(self, conditions: list[dict[str, Any]], puts: list[dict[str, Any]]) -> bool:
        """Set keys if all conditions hold; whether they held."""
        return bool(self._client.ask("kv/txn", {"compare": conditions, "success": puts}).get("succeeded"))

    def create(self, name: str, value: bytes) -> None:
        """Set a key if it does not exist."""
        self.change([self.unchanged(name, 0)], [self.put(name, value)])

    def agree(self, key: str, value: str) -> str:
        """The first value that any server gave for a key."""
        self.create(f"agreed/{key}", value.encode())
        found = self.agreed(key)
        return value if found is None else found

    def agreed(self, key: str) -> str | None:
        """The value of a key that servers have agreed on."""
        found = self.get(f"agreed/{key}")
        return None if found is None else found[0].decode()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _decoded(answer: bytes) -> dict[str, Any]:
    try:
        found: dict[str, Any] = msgspec.json.decode(answer)
    except msgspec.DecodeError:  # a proxy, or an error of etcd before the request was read
        return {"error": answer[:200].decode(errors="replace").strip()}
    return found


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()

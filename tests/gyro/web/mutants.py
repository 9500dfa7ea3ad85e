"""Incomplete and wrong recordings of the shop, in one process.

`python -m tests.gyro.web.mutants 0 1` prints what became of each; `2 5` takes every fifth, from the third.

A mutant lacks a statement, or has another source for a value. The same requests are executed with the right recording. Until
the first refusal, the responses are the same. The refused request has changed nothing.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml

from plait.gyro.analysis import analyze
from plait.gyro.belt.databases.sqlite.database import SqliteDatabase
from plait.gyro.belt.routing import Route, routes
from plait.gyro.source.listing import schema_text
from plait.gyro.web.application import WebApplication
from plait.gyro.web.contract import UnrecordedError, contract
from plait.gyro.web.engine import install
from plait.gyro.web.frameworks import load_application
from plait.gyro.web.requests import Framework, WebRequest, WebResponse
from tests.gyro.web.servers import SHOP


def request(method: str, path: str, body: Any = None) -> WebRequest:
    headers = [("content-type", "application/json")] if body is not None else []
    return WebRequest(method, path, "", headers, msgspec.json.encode(body) if body is not None else b"")


SCENARIO = [
    request("POST", "/carts", {"owner": "ada"}),
    request("POST", "/carts/1/lines", {"item": 11, "amount": 2}),
    request("POST", "/carts/1/lines", {"item": 11, "amount": 3}),
    request("POST", "/carts/1/lines", {"item": 12, "amount": 4}),
    request("GET", "/carts/1"),
    request("DELETE", "/carts/1/lines/12"),
    request("POST", "/carts/1/order"),
    WebRequest("POST", "/items/13/stock", "", [("content-type", "application/x-www-form-urlencoded")], b"amount=7"),
    request("GET", "/items"),
]


def mutants(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Recordings with one fault."""
    for endpoint, body in document["transactions"].items():
        if endpoint == "GET /cart":
            continue  # it needs a session
        for number, sql in enumerate(body["statements"]):
            kept = [s for i, s in enumerate(body["statements"]) if i != number]
            yield f"{endpoint}: without {sql}", _with(document, endpoint, kept)
            for name in [p for p in (*body["parameters"], "new_carts") if f":{p}" in sql]:
                for other in ("json_other", "new_items", *(p for p in body["parameters"] if p != name)):
                    changed = sql.replace(f":{name}", f":{other}")
                    listed = [changed if i == number else s for i, s in enumerate(body["statements"])]
                    yield f"{endpoint}: {changed}", _with(document, endpoint, listed)


def _with(document: dict[str, Any], endpoint: str, statements: list[str]) -> dict[str, Any]:
    changed = {**document["transactions"][endpoint], "statements": statements}
    return {**document, "transactions": {**document["transactions"], endpoint: changed}}


class Shop:
    """The shop with a recording, on a database of its own."""

    def __init__(self, framework: Framework, document: dict[str, Any], known: dict[str, Route], file: Path) -> None:
        self.application = WebApplication(framework, sys.modules[__name__], contract(yaml.dump(document)), known)
        self.database = SqliteDatabase(
            file, server=0, servers=1, schema=schema_text(SHOP.recording) + SHOP.data.read_text(encoding="utf-8")
        )

    def send(self, number: int, asked: WebRequest) -> tuple[int, bytes]:
        call, _, kind = self.application.operation(str(number), asked, 1, 0)
        outcome = self.database.read(call) if kind == "read" else self.database.write(call)
        reply = msgspec.json.decode(outcome.reply, type=WebResponse)
        return reply.status, reply.body  # a cookie contains the time

    def rows(self) -> list[Any]:
        with self.database._reader() as db:
            return [list(db.execute(f"SELECT * FROM {t} ORDER BY 1, 2")) for t in ("carts", "lines", "items", "orders")]


def main() -> None:
    install("sqlite", schema_text(SHOP.recording))
    framework, _ = load_application(SHOP.application)
    document = yaml.safe_load(SHOP.recording.read_text(encoding="utf-8"))
    known = routes(analyze(SHOP.recording))
    names = itertools.count()
    result: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        right = Shop(framework, document, known, Path(folder) / "right.db")
        states, replies = [], []
        for number, asked in enumerate(SCENARIO):
            states.append(right.rows())
            replies.append(right.send(number, asked))
        for name, changed in itertools.islice(mutants(document), int(sys.argv[1]), None, int(sys.argv[2])):
            shop = Shop(framework, changed, known, Path(folder) / f"{next(names)}.db")
            result[name] = "not noticed"
            for number, asked in enumerate(SCENARIO):
                try:
                    same = shop.send(number, asked) == replies[number]
                except UnrecordedError:
                    result[name] = "refused" if shop.rows() == states[number] else "refused, but it has changed rows"
                    break
                if not same:
                    result[name] = "another response"
                    break
            shop.database.close()
        right.database.close()
    sys.stdout.buffer.write(msgspec.json.encode(result))


if __name__ == "__main__":
    main()

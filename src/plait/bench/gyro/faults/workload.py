"""Random requests to the board application, and what is wrong with a run of it: nothing, if it was serializable."""

from __future__ import annotations

import functools
import random
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from plait.bench.gyro.faults import board
from plait.bench.gyro.faults.history import Event, Observation, Replay, find_cycle
from plait.gyro.analysis import analyze
from plait.gyro.belt.routing import Route, routes, server_of

GENERATED = {"draw", "award", "bid"}
"""Operations whose servers generate ids."""


@functools.cache
def board_routes() -> dict[str, Route]:
    """The routes of the board. The analysis takes a moment, so it runs only if a test needs it."""
    return routes(analyze(Path(board.__file__)))


class Clients(Protocol):
    """Servers that clients call."""

    servers: int

    def call(self, operation: str, arguments: dict[str, Any], *, request: str, here: int = 0) -> Any:
        """Send a request until it is answered. It has one name, so it is executed once."""


def request(generator: random.Random, number: int, without: set[str]) -> tuple[str, dict[str, Any]]:
    """An operation at random; `number` is unique."""
    pick = generator.randrange
    found: list[tuple[str, dict[str, Any]]] = [
        ("note", {"owner": pick(6), "value": number}),
        ("notes", {"owner": pick(6)}),
        ("look", {"first": pick(3), "second": pick(3)}),
        ("look", {"first": 0, "second": 1}),
        ("post", {"owner": pick(6), "board": pick(3), "value": number}),
        ("post", {"owner": pick(6), "board": pick(3), "value": number}),
        ("move", {"source": pick(3), "target": pick(3), "value": number}),
        ("paint", {"person": pick(6), "colour": f"c{number}"}),
        ("portrait", {"person": pick(6)}),
        ("praise", {"fan": pick(6), "person": pick(6)}),
        ("ranking", {}),
        ("draw", {"owner": pick(6), "label": f"t{number}"}),
        ("drawn", {"owner": pick(6)}),
        ("award", {"owner": pick(6)}),
        ("prizes", {}),
        ("bid", {"user": pick(6), "item": pick(6), "amount": number}),
        ("bids_by", {"user": pick(6)}),
        ("bids_on", {"item": pick(6)}),
    ]
    return generator.choice([each for each in found if each[0] not in without])


def work(
    cluster: Clients,
    seed: int,
    *,
    clients: int = 4,
    operations: int = 25,
    without: set[str] | None = None,
    patience: float = 300.0,
    think: float = 0.0,
) -> None:
    """Clients that call operations at random until they are done."""
    failures: list[BaseException] = []

    def client(number: int) -> None:
        generator = random.Random(seed * 1000 + number)
        try:
            for count in range(operations):
                if think:
                    time.sleep(generator.uniform(0, 2 * think))
                name, arguments = request(generator, 100_000 * (seed + 1) + 1000 * number + count, without or set())
                reply = cluster.call(name, arguments, request=f"{seed}-{number}-{count}", here=number % cluster.servers)
                expected = "unlucky" in str(reply) or "too large for the log" in str(reply)
                assert not isinstance(reply, Exception) or expected, f"{name} failed: {reply}"
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=client, args=(n,), daemon=True) for n in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=patience)
        assert not thread.is_alive(), "a client waits for ever"
    if failures:
        raise failures[0]


def observe(event: Event) -> Observation:
    """What a client saw of the lists."""
    reads: list[tuple[str, list[str]]] = []
    appends: list[tuple[str, str]] = []
    given, reply = event.arguments, event.reply
    if event.operation in ("look", "move"):
        mine = str(given.get("value", ""))
        for number, items in reply:
            reads.append((f"board {number}", [i for i in items.split() if i != mine]))
            appends += [(f"board {number}", mine)] if mine else []
    elif event.operation in ("note", "notes"):
        mine = str(given.get("value", ""))
        reads.append((f"note {given['owner']}", [i for i in reply.split() if i != mine]))
        appends += [(f"note {given['owner']}", mine)] if mine else []
    elif event.operation == "post":
        mine = str(given["value"])
        reads.append((f"note {given['owner']}", reply[0].split()))
        reads.append((f"board {given['board']}", [i for i in reply[1].split() if i != mine]))
        appends += [(f"note {given['owner']}", mine), (f"board {given['board']}", mine)]
    return Observation(appends, reads)


Rows = Callable[[int, str], list[tuple[Any, ...]]]
"""The result of a query at a server."""


def judge(events: Sequence[Event], servers: int, rows: Rows) -> list[str]:
    """What is wrong with a run: nothing, if it was serializable, and servers have all that was acknowledged."""
    faults: list[str] = []
    cycle = find_cycle([observe(e) for e in events])
    if cycle is not None:
        faults.append(f"cycle: {cycle}")
    replay = Replay(board, servers)
    faults += [f"reply: {event}: one database says {reply!r}" for event, reply in replay.run(events)[:3]]
    for server in range(servers):

        def mine(key: Any, server: int = server) -> bool:
            return server_of(key, servers) == server

        for query, whose in (
            ("SELECT id, items FROM boards ORDER BY id", None),
            ("SELECT id, score FROM people ORDER BY id", None),
            ("SELECT id, ticket, label FROM prizes ORDER BY id", None),
            ("SELECT owner, items FROM notes ORDER BY owner", 0),
            ("SELECT id, colour FROM people ORDER BY id", 0),
            ("SELECT owner, id, label FROM tickets ORDER BY id", 0),
            ("SELECT bidder, id, item, amount FROM bids ORDER BY id", 0),
            ("SELECT item, id, bidder, amount FROM bids ORDER BY id", 0),
        ):
            expected = [r for r in replay.rows(query) if whose is None or mine(r[whose])]
            found = [r for r in rows(server, query) if whose is None or mine(r[whose])]
            if found != expected:
                faults.append(f"state of server {server}: {query}: {found} instead of {expected}")
    return faults

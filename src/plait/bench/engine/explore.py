"""How fast `plait explore` answers: a step of Raft, a long run of many processes, a million states as a small graph.

The server is the real one, started as a command and asked over HTTP, and then by its page (`explore_page.py`).
"""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from plait import Message, Process, System, init, on
from plait.bench.engine import explore_page
from plait.bench.engine.common import median
from plait.bench.engine.startup import PLAIT
from plait.bench.errors import DifferenceError, MissingError, SkippedError
from plait.bench.options import Options
from plait.bench.table import Cell, Column, Table

STEP_SECONDS, RUN_SECONDS, GRAPH_SECONDS = 0.05, 1.0, 10.0
STATES = 1_000_000
NODES, STEPS = 30, 2_000
RING = f"{__name__}:ring"


class Token(Message):
    """The token, with the number of hops so far."""

    hops: int


class Node(Process):
    """A process of a ring."""

    following: int
    seen: int = 0

    @init
    def begin(self) -> None:
        """The first process sends the token."""
        if self.id.index == 0:
            self.send(self.ids(Node)[self.following], Token(0))

    @on(Token)
    def forward(self, m: Token) -> None:
        """Send the token on."""
        self.seen = m.hops
        self.send(self.ids(Node)[self.following], Token(m.hops + 1))


def ring(nodes: int = NODES) -> System:
    """A token goes round a ring for ever."""
    return System([Node(following=(i + 1) % nodes) for i in range(nodes)])


def measure(options: Options) -> Table:
    """Measure the answers of servers."""
    table = Table(
        "explore", "plait explore: how fast the server and its page answer", [Column("median"), Column("worst")], "question"
    )  # fmt: skip
    with table.measuring():
        if not PLAIT.exists():
            raise SkippedError(f"{PLAIT} does not exist; run make setup")
        options.tell("a step of Raft")
        _add(table, "a step of Raft with 5 servers", _steps(), STEP_SECONDS)
        options.tell(f"a run of {STEPS:,} steps")
        run, opened, taken = _long(200 if options.quick else STEPS)
        _add(table, f"a run of {STEPS:,} steps with {NODES} processes, executed and sent", opened, RUN_SECONDS)
        _add(table, "one more step of this run", taken, STEP_SECONDS)
        options.tell(f"a graph of {STATES:,} states")
        seconds = _graph(STATES // 100 if options.quick else STATES)
        _add(table, f"{STATES:,} states of Paxos, collapsed by the promises of the acceptors", seconds, GRAPH_SECONDS)
        options.tell("the page in Chromium")
        try:
            _page(table, options, run)
        except MissingError as error:
            table.missing[f"the page was not measured: {error} is not installed"] = error.hint
    return table


def _page(table: Table, options: Options, run: list[str]) -> None:
    """The same in a browser."""
    times = 2 if options.quick else 10
    opened, keys = [], dict[str, list[float]]()
    with explore_page.chromium() as browser:
        for number in range(1 if options.quick else 5):
            with _served(RING) as server:  # a server that has not executed the run
                link = explore_page.linked(server.address, run, RING)
                with browser.opened(link, len(run)) as (page, seconds):
                    opened.append(seconds)
                    if number == 0:
                        keys = explore_page.keys(page, times)
        _add(table, f"page: open a run of {STEPS:,} steps with {NODES} processes", opened, RUN_SECONDS)
        for name, seconds_of in keys.items():
            _add(table, f"page: the key {name} in this run", seconds_of, STEP_SECONDS)
        with _served("raft", "-p", "servers=5") as server, browser.opened(server.address, 0) as (page, _):
            _add(table, "page: a step of Raft with 5 servers", explore_page.walked(page, 3 * times), STEP_SECONDS)


def _add(table: Table, what: str, seconds: list[float], target: float) -> None:
    table.raw[what] = seconds
    middle = median(seconds)
    table.add(
        "wall time",
        what,
        median=Cell(middle, "s"),
        worst=Cell(max(seconds), "s"),
        target=f"< {target:g} s",
        met=middle < target,
    )


class _Server:
    """A `plait explore` that runs."""

    def __init__(self, address: str) -> None:
        found = re.search(r"http://([\d.]+:\d+)/\?secret=(\S+)", address)
        if found is None:
            raise DifferenceError(f"plait explore printed {address!r}, not its address")
        self.address, self.place, self.secret = found[0], found[1], found[2]

    def ask(self, path: str, body: object) -> tuple[Any, float]:
        """The answer, and the seconds that it took."""
        connection = http.client.HTTPConnection(self.place, timeout=600)
        start = time.perf_counter()
        connection.request("POST", path, json.dumps(body), {"X-Plait-Secret": self.secret})
        response = connection.getresponse()
        content = response.read()
        seconds = time.perf_counter() - start
        if response.status != 200:
            raise DifferenceError(f"{path} answered {response.status}: {content[:200]!r}")
        return json.loads(content), seconds

    def walk(self, steps: list[str], have: int = 0) -> tuple[Any, float]:
        """The last state of a run."""
        return self.ask("/api/walk", {"run": {"initial": 0, "steps": steps}, "have": have})


@contextmanager
def _served(*arguments: str) -> Iterator[_Server]:
    command = [str(PLAIT), "explore", *arguments, "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            server = _Server(process.stdout.readline())
            server.walk([])
            yield server
        finally:
            process.send_signal(signal.SIGINT)


def _steps() -> list[float]:
    """A run of Raft, always by the last step that is possible."""
    found: list[float] = []
    run: list[str] = []
    with _served("raft", "-p", "servers=5") as server:
        while True:
            walked, seconds = server.walk(run, have=len(run))
            found.append(seconds)
            if not walked["enabled"]:
                return found
            run.append(walked["enabled"][-1]["key"])


def _long(steps: int) -> tuple[list[str], list[float], list[float]]:
    """A run. Its seconds at once, in a server that has not executed it, and those of some further steps."""
    with _served(RING) as server:
        run: list[str] = []
        while len(run) < steps:
            walked, _ = server.walk(run, have=len(run))
            run.append(walked["enabled"][0]["key"])
    with _served(RING) as server:
        walked, first = server.walk(run)
        if walked["valid"] != len(run):
            raise DifferenceError(f"the run has {walked['valid']} steps, not {len(run)}")
        later, longer = [], list(run)
        for _ in range(20):
            longer.append(walked["enabled"][0]["key"])
            walked, seconds = server.walk(longer, have=len(longer) - 1)
            later.append(seconds)
    return run, [first], later


def _graph(states: int) -> list[float]:
    body = {"projection": {"fields": ["Acceptor.promised"]}, "options": {"max_states": states}}
    with _served("paxos", "-p", "proposers=3", "-p", "quorum=false") as server:
        graph, seconds = server.ask("/api/graph", body)
    if sum(node["count"] for node in graph["nodes"]) < states:
        raise DifferenceError(f"the nodes have fewer than {states:,} states")
    return [seconds]

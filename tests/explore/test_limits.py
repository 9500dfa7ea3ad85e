"""Limits of the server: memory of a request, searches without a page, many pages, pages that do not read."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.explore.server import Served, explored
from tests.support.patience import PATIENCE, started, until

HOG = """
from plait import Process, System, action

class Hog(Process):
    n: int = 0

    @action(when=lambda self: self.n == 0)
    def grow(self):
        held = [bytes(2**20) for _ in range(100_000)]
        self.n = len(held)

    @action(when=lambda self: self.n == 0)
    def up(self):
        self.n = 1

model = System([Hog()])
"""
ENDLESS = """
from plait import Process, System, action

class Counter(Process):
    n: int = 0

    @action
    def up(self):
        self.n += 1

model = System([Counter()])
"""


@pytest.fixture(scope="module")
def raft() -> Iterator[Served]:
    """A model whose searches take long."""
    with explored("raft", "-p", "servers=5") as served:
        yield served


def test_a_step_that_needs_gigabytes_is_an_error_and_the_server_lives(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(HOG)
    with explored("model.py", folder=tmp_path, memory=400 * 2**20) as served:
        before = served.memory
        answer = served.ask("POST", "/api/walk", {"run": {"steps": []}})
        if answer.status == 200:
            (grow,) = [step for step in answer.json["enabled"] if step["label"] == "grow"]
            assert "MemoryError" in grow["note"]
        else:
            assert answer.status == 422
            assert "MiB" in answer.json["error"]["message"] or "memory" in answer.json["error"]["message"]
        assert served.get("/api/model")["error"] is None
        assert served.memory - before < 100 * 2**20
        found = served.searched(kind="find", expression="s[Hog][0].n == 1")
        assert found["status"] in ("found", "inconclusive", "error")


def search_children(served: Served) -> set[int]:
    return {pid for pid in served.children if "plait.explore.worker" in Path(f"/proc/{pid}/cmdline").read_text()}


def test_a_search_that_no_page_listens_to_is_ended(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(ENDLESS)
    with explored("model.py", folder=tmp_path, alone=1.0) as served:
        served.walk()
        walker = search_children(served)
        number = served.post("/api/search", {"from": None, "kind": "find", "expression": "False"})["id"]
        until(lambda: bool(search_children(served) - walker), "the search has a process")
        (searcher,) = search_children(served) - walker
        until(lambda: not Path(f"/proc/{searcher}").exists(), "the process is gone")
        events = served.ask("GET", f"/api/search/{number}/events").body.decode()
        assert json.loads(events.split("data: ")[-1]) == {"status": "stopped", "text": "no page listened any more"}
        assert search_children(served) == walker


def test_a_search_that_a_page_listens_to_goes_on(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(ENDLESS)
    with explored("model.py", folder=tmp_path, alone=0.5) as served:
        number = served.post("/api/search", {"from": None, "kind": "find", "expression": "False"})["id"]
        with served.listening(f"/api/search/{number}/events") as events:
            seconds = 0.0
            while seconds < 2:
                name, data = next(events)
                assert name == "progress"
                seconds = data["seconds"]


@pytest.mark.slow
def test_a_hundred_pages_hear_of_the_same_search(raft: Served) -> None:
    """Each hears its progress and its end, and gets answers meanwhile."""
    expected = raft.walk()["enabled"]
    number = raft.post("/api/search", {"from": None, "kind": "find", "expression": "False"})["id"]
    heard: list[Any] = []
    ready = threading.Barrier(101)

    def page() -> None:
        with raft.listening(f"/api/search/{number}/events") as events:
            assert next(events)[0] == "progress"
            answer = raft.walk()["enabled"]
            ready.wait(PATIENCE)
            heard.append((answer, next(data for name, data in events if name == "done")))

    threads = [threading.Thread(target=page) for _ in range(100)]
    for thread in threads:
        thread.start()
    ready.wait(PATIENCE)
    assert raft.ask("DELETE", f"/api/search/{number}").status == 200
    for thread in threads:
        thread.join(PATIENCE)
    assert heard == [(expected, {"status": "stopped", "text": "stopped"})] * 100


def asking(served: Served, path: str, times: int) -> socket.socket:
    """A connection that asks several times, and never reads."""
    one = socket.create_connection(("127.0.0.1", served.port))
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nX-Plait-Secret: {served.secret}\r\n\r\n"
    one.sendall(head.encode() * times)
    return one


@pytest.mark.slow
def test_pages_that_do_not_read_neither_fill_the_memory_nor_block_others(raft: Served) -> None:
    """Without flow control, the answers would take 20 × 50 × 1.6 MB."""
    number = raft.post("/api/search", {"from": None, "kind": "find", "expression": "False"})["id"]
    before = raft.memory
    silent = [asking(raft, "/elk-worker.js", 50) for _ in range(20)]
    silent += [asking(raft, f"/api/search/{number}/events", 1) for _ in range(20)]
    try:
        with raft.listening(f"/api/search/{number}/events") as events:
            for _ in range(20):
                assert next(events)[0] == "progress"
                assert raft.walk()["valid"] == 0
        assert raft.memory - before < 300 * 2**20
    finally:
        for one in silent:
            one.close()
    assert raft.ask("DELETE", f"/api/search/{number}").status == 200


@pytest.mark.slow
def test_a_page_of_a_laptop_that_sleeps(raft: Served) -> None:
    """A client that is stopped in the middle of a stream keeps nobody waiting. It goes on when it wakes up."""
    number = raft.post("/api/search", {"from": None, "kind": "find", "expression": "False"})["id"]
    code = (
        "import sys, http.client; c = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]));"
        "c.request('GET', sys.argv[2], headers={'X-Plait-Secret': sys.argv[3]}); r = c.getresponse()\n"
        "for line in iter(r.readline, b''): print(line.decode().strip(), flush=True)"
    )
    command = [sys.executable, "-c", code, str(raft.port), f"/api/search/{number}/events", raft.secret]
    with started(command, stdout=subprocess.PIPE) as sleeper:
        assert sleeper.stdout is not None
        assert sleeper.stdout.readline() == "event: progress\n"
        os.kill(sleeper.pid, signal.SIGSTOP)
        with raft.listening(f"/api/search/{number}/events") as events:
            assert [next(events)[0] for _ in range(5)] == ["progress"] * 5
        assert raft.walk()["valid"] == 0
        assert raft.ask("DELETE", f"/api/search/{number}").status == 200
        os.kill(sleeper.pid, signal.SIGCONT)
        assert '"stopped"' in sleeper.stdout.read()

"""A real `plait explore`, asked over HTTP."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.patience import PATIENCE, started

PLAIT = [sys.executable, "-m", "plait.cli.main"]


class Answer(NamedTuple):
    status: int
    body: bytes
    headers: Mapping[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Served:
    """A server that runs."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process = process
        found = re.fullmatch(r"explore: http://127\.0\.0\.1:(\d+)/\?secret=([\w-]+)", address)
        assert found, address
        self.port, self.secret = int(found[1]), found[2]

    @property
    def children(self) -> set[int]:
        """The processes that have the model."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return {int(pid) for task in tasks for pid in (task / "children").read_text().split()}

    @property
    def memory(self) -> int:
        """The bytes that the server uses."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str | None] | None = None,
        raw: bytes | None = None,
    ) -> Answer:
        """Send a request with the secret, unless the headers say otherwise."""
        sent: dict[str, str] = {"X-Plait-Secret": self.secret}
        for name, value in (headers or {}).items():
            sent.pop(name, None)
            if value is not None:
                sent[name] = value
        connection = self.connection()
        try:
            content = raw if raw is not None else None if body is None else json.dumps(body)
            connection.request(method, path, content, sent)
            response = connection.getresponse()
            return Answer(response.status, response.read(), {k.lower(): v for k, v in response.getheaders()})
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        answer = self.ask("GET", path)
        assert answer.status == 200, answer
        return answer.json

    def post(self, path: str, body: Any) -> Any:
        answer = self.ask("POST", path, body)
        assert answer.status == 200, answer
        return answer.json

    def walk(self, *steps: str, **more: Any) -> Any:
        return self.post("/api/walk", {"run": {"initial": 0, "steps": list(steps)}, **more})

    def searched(self, **body: Any) -> Any:
        """The result of a search."""
        number = self.post("/api/search", {"from": None, **body})["id"]
        answer = self.ask("GET", f"/api/search/{number}/events")
        assert answer.headers["content-type"].startswith("text/event-stream")
        events = dict(re.findall(r"event: (\w+)\ndata: (.*)\n\n", answer.body.decode()))
        return json.loads(events["done"])

    @contextmanager
    def listening(self, path: str) -> Iterator[Iterator[tuple[str, Any]]]:
        """The events of a stream."""
        connection = self.connection()
        connection.request("GET", path, headers={"X-Plait-Secret": self.secret})
        response = connection.getresponse()
        assert response.status == 200

        def events() -> Iterator[tuple[str, Any]]:
            name = ""
            while raw := response.readline():
                line = raw.decode().rstrip("\n")
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    yield name, json.loads(line.removeprefix("data: "))

        try:
            yield events()
        finally:
            connection.close()


LIMITED = """
import ast, contextlib, sys
from plait.explore.server import serve
limits = dict(zip(sys.argv[2::2], map(ast.literal_eval, sys.argv[3::2])))
ready = lambda address: print("explore:", address, flush=True)
with contextlib.suppress(KeyboardInterrupt):
    serve(sys.argv[1], {}, host="127.0.0.1", port=0, ready=ready, **limits)
"""


@contextmanager
def explored(*arguments: str, folder: Path | None = None, **limits: float) -> Iterator[Served]:
    """`plait explore` with these arguments; with limits, only the server, with a target."""
    command = [*PLAIT, "explore", *arguments, "--no-open"]
    if limits:
        command = [sys.executable, "-c", LIMITED, *arguments]
        command += [word for name, value in limits.items() for word in (name, str(value))]
    with (
        tempfile.TemporaryFile("w+") as said,
        started(command, stdout=subprocess.PIPE, stderr=said, cwd=folder) as process,
    ):
        assert process.stdout is not None
        yield Served(process, process.stdout.readline().strip())
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        status = process.wait(PATIENCE)
        said.seek(0)
        errors = said.read()
        assert status == 0, errors
        assert "Traceback" not in errors, errors

"""Servers of a web application as processes, clients that send random requests, and the comparison with a single server."""

from __future__ import annotations

import http.client
import json
import random
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from plait.gyro.analysis import analyze
from plait.gyro.belt.routing import routes
from plait.gyro.belt.settings import Settings
from plait.gyro.belt.supervisor import Supervisor, free_ports
from plait.gyro.source.listing import schema_text
from plait.gyro.web.requests import WebRequest, WebResponse
from tests.gyro.web.judge import Event, Run, Stage
from tests.support.patience import PATIENCE

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples" / "gyro" / "web"


class Example:
    """An application of the examples."""

    def __init__(self, folder: str, application: str) -> None:
        self.folder = EXAMPLES / folder
        self.application = str(self.folder / application)
        self.recording = self.folder / f"{folder}.yaml"
        self.data = self.folder / "data.sql"


SHOP = Example("shop", "shop.py")
TICKETS = Example("tickets", "tickets.py")
BLOG = Example("blog", "blog/wsgi.py")


class Servers:
    """Servers, and what they answered."""

    supervisor: Supervisor

    def __init__(self, settings: Settings, example: Example) -> None:
        self.settings = settings
        self.example = example
        self.events: list[tuple[Event, WebResponse]] = []
        self.refused: list[WebResponse] = []
        self.changing = False
        """Whether servers may begin anew."""
        self.stages = [Stage(0, settings.numbers)]
        self._lock = threading.Lock()

    def send(self, at: int, request: WebRequest) -> WebResponse:
        """Send a request to a server; wait while it cannot execute."""
        name = uuid.uuid4().hex
        while True:
            urls = self.settings.urls
            place = urls[at % len(urls)].removeprefix("http://")
            connection = http.client.HTTPConnection(place, timeout=PATIENCE)
            url = f"{request.path}?{request.query}" if request.query else request.path
            given = {"host": place, "idempotency-key": name, **dict(request.headers)}
            try:
                connection.request(request.method, url, request.body, given)
                answer = connection.getresponse()
                response = WebResponse(answer.status, [(n.lower(), v) for n, v in answer.getheaders()], answer.read())
            except (OSError, http.client.HTTPException):
                if len(self.stages) == 1 and not self.changing:
                    raise
                response = WebResponse(503, [], b"")  # the server starts anew, or was removed
            connection.close()
            if response.status != 503:
                break
            time.sleep(0.05)
        headers = dict(response.headers)
        with self._lock:
            if "plait-server" not in headers:
                self.refused.append(response)
                return response
            server, seq, position, wrote = (int(headers[f"plait-{n}"]) for n in ("server", "seq", "position", "wrote"))
            order = (seq, 0, 0, 0, 0) if wrote and not position else (seq, 1, server, position, 1 - wrote)
            sent = msgspec.structs.replace(request, headers=[*request.headers, ("host", place)])
            self.events.append((Event(sent, server, order), response))
        return response

    def differences(self) -> list[tuple[WebRequest, WebResponse, WebResponse]]:
        """Execute all requests on one server, in their order; return the requests with another response."""
        ordered = sorted(self.events, key=lambda e: e[0].order)
        e = self.example
        command = [sys.executable, "-m", "tests.gyro.web.judge", e.application, str(e.recording), str(e.data)]
        done = subprocess.run(
            command,
            input=msgspec.json.encode(Run([event for event, _ in ordered], self.stages)),
            capture_output=True,
            cwd=ROOT,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        expected = msgspec.json.decode(done.stdout, type=list[WebResponse])
        return [
            (event.request, found, right)
            for (event, found), right in zip(ordered, expected, strict=True)
            if (found.status, found.body) != (right.status, right.body)
        ]


@contextmanager
def servers(
    example: Example, folder: Path, *, count: int = 3, recording: str | None = None, **options: Any
) -> Iterator[Servers]:
    """Start servers."""
    text = recording if recording is not None else example.recording.read_text(encoding="utf-8")
    file = folder / "recording.yaml"
    file.write_text(text, encoding="utf-8")
    settings = Settings(
        application=example.application,
        routes=routes(analyze(file)),
        schema=schema_text(file) + example.data.read_text(encoding="utf-8"),
        urls=[f"http://127.0.0.1:{port}" for port in free_ports(count)],
        folder=str(folder),
        recording=text,
        secret="a secret of the test",
        idle=0.02,
        **options,
    )
    supervisor = Supervisor(settings)
    try:
        supervisor.start(wait=PATIENCE)
        found = Servers(settings, example)
        found.supervisor = supervisor
        yield found
    finally:
        supervisor.stop()


class Browser:
    """A client with cookies."""

    def __init__(self, servers: Servers, seed: int) -> None:
        self.servers = servers
        self.random = random.Random(seed)
        self.cookies: dict[str, str] = {}

    def send(self, method: str, path: str, *, body: Any = None, form: str = "", query: str = "") -> Any:
        """Send a request to any server; return the JSON of the response."""
        headers = [("cookie", "; ".join(f"{n}={v}" for n, v in self.cookies.items()))] if self.cookies else []
        content = b""
        if body is not None:
            headers.append(("content-type", "application/json"))
            content = json.dumps(body).encode()
        elif form:
            headers.append(("content-type", "application/x-www-form-urlencoded"))
            content = form.encode()
        response = self.servers.send(self.random.randrange(3), WebRequest(method, path, query, headers, content))
        for name, value in response.headers:
            if name == "set-cookie":
                key, _, rest = value.partition("=")
                self.cookies[key] = rest.partition(";")[0]
        return json.loads(response.body) if response.body.startswith((b"{", b"[")) else None


def shopping(browser: Browser) -> None:
    """A customer who fills carts and orders."""
    known = [browser.send("POST", "/carts", body={"owner": "ada"})["id"]]
    for _ in range(25):
        cart, item = browser.random.choice(known), browser.random.choice((11, 12, 13))
        match browser.random.randrange(10):
            case 0:
                known.append(browser.send("POST", "/carts", body={"owner": "ben"})["id"])
            case 1 | 2 | 3:
                browser.send("POST", f"/carts/{cart}/lines", body={"item": item, "amount": browser.random.randrange(9)})
            case 4:
                browser.send("DELETE", f"/carts/{cart}/lines/{item}")
            case 5:
                browser.send("POST", f"/carts/{cart}/order")
            case 6:
                browser.send("POST", f"/items/{item}/stock", form=f"amount={browser.random.randrange(5)}")
            case 7:
                browser.send("GET", "/items")
            case 8:
                browser.send("GET", "/cart")
            case _:
                browser.send("GET", f"/carts/{cart + browser.random.randrange(2)}")


def work(servers: Servers, behaviour: Callable[[Browser], None], *, clients: int = 4) -> None:
    """Let clients work at the same time."""
    failed: list[BaseException] = []

    def run(number: int) -> None:
        try:
            behaviour(Browser(servers, number))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]

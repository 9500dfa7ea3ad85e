"""Unmodified applications on three servers, as processes, give the responses of a single server."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.gyro.web.requests import WebRequest
from tests.gyro.web.servers import BLOG, SHOP, TICKETS, Browser, servers, shopping, work

pytestmark = pytest.mark.slow
FORM = [("content-type", "application/x-www-form-urlencoded")]


def reserving(browser: Browser) -> None:
    """A customer who reserves seats."""
    for _ in range(25):
        event, seat = browser.random.choice((15, 16, 17, 18)), browser.random.randrange(1, 6)
        name = browser.random.choice(("ada", "ben"))
        match browser.random.randrange(8):
            case 0 | 1:
                browser.send("POST", f"/events/{event}/tickets", body={"holder": name, "seat": seat})
            case 2:
                browser.send("DELETE", f"/events/{event}/tickets/{seat}")
            case 3:
                browser.send("GET", f"/events/{event}/free")
            case 4:
                browser.send("GET", f"/events/{event}/seats/{seat}")
            case 5:
                browser.send("POST", f"/events/{event}/seats", body={"seats": 1})
            case 6:
                browser.send("GET", "/events")
            case _:
                browser.send("PUT", f"/notes/{name}", body={"text": f"seat {seat}"})
                browser.send("GET", f"/notes/{name}")


def writing(browser: Browser) -> None:
    """An author who writes, discards and publishes drafts."""
    me = browser.send("POST", "/authors", form="name=dee")["id"]
    drafts = [(3, 99)]
    for number in range(25):
        author, (owner, draft) = browser.random.choice((me, 3, 4)), browser.random.choice(drafts)
        match browser.random.randrange(8):
            case 0 | 1 | 2:
                text = browser.random.choice(("", f"text {number}"))
                drafts.append(
                    (author, browser.send("POST", f"/authors/{author}/drafts/new", body={"text": text})["id"])
                )
            case 3:
                browser.send("POST", f"/authors/{owner}/drafts/{draft}/discard")
            case 4:
                browser.send("POST", f"/authors/{owner}/drafts/{draft}/publish")
            case 5:
                browser.send("GET", f"/authors/{author}/drafts")
            case 6:
                browser.send("POST", "/profile", body={"profile": f"profile {number}"})
                browser.send("GET", f"/authors/{me}")
            case _:
                browser.send("GET", "/")


@pytest.mark.parametrize(
    ("example", "behaviour"),
    [(SHOP, shopping), (TICKETS, reserving), (BLOG, writing)],
    ids=["flask", "fastapi", "django"],
)
def test_the_responses_are_those_of_a_single_server(example, behaviour, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    with servers(example, tmp_path) as found:
        work(found, behaviour)
    assert found.refused == []
    assert len(found.events) > 80
    assert len({event.server for event, _ in found.events}) == 3
    assert found.differences() == []


def test_requests_that_the_recording_does_not_cover(tmp_path: Path) -> None:
    """Refusals, repeated requests, missing keys, and pages without SQL, at servers that forward requests."""
    text = SHOP.recording.read_text(encoding="utf-8")
    delete = "    - DELETE FROM lines WHERE lines.cart_id = :cart AND lines.item_id = :item\n"
    assert delete in text
    with servers(SHOP, tmp_path, recording=text.replace(delete, "")) as found:
        browser = Browser(found, 1)
        cart = browser.send("POST", "/carts", body={"owner": "ada"})["id"]
        for _ in range(3):  # at whichever server
            browser.send("POST", f"/carts/{cart}/lines", body={"item": 11, "amount": 1})
        refused = browser.send("DELETE", f"/carts/{cart}/lines/11")
        assert "DELETE /carts/<int:cart>/lines/<int:item>: this statement is not in the recording" in refused["error"]
        assert "plait gyro record" in refused["hint"]
        assert [r.status for r in found.refused] == [409]
        assert browser.send("GET", f"/carts/{cart}")["lines"] == [[11, 3]]

        once = WebRequest("POST", "/items/11/stock", "", [*FORM, ("idempotency-key", "one")], b"amount=5")
        stocks = {found.send(server, once).body for server in (0, 1, 2, 0)}
        assert stocks == {b'{"stock":105}\n'}
        other = WebRequest("POST", "/items/11/stock", "", [*FORM, ("idempotency-key", "one")], b"amount=6")
        assert found.send(0, other).status == 422
        somebody = WebRequest("POST", once.path, "", [*once.headers, ("cookie", "session=another")], once.body)
        assert found.send(0, somebody).status == 422  # never the response of another user
        assert found.send(0, WebRequest("GET", "/", "", [("idempotency-key", "x" * 201)])).status == 400

        strange = WebRequest("POST", f"/carts/{cart}/lines", "", [("content-type", "application/json")], b"not JSON")
        assert found.send(1, strange).status == 400  # the application says so
        assert found.send(2, WebRequest("GET", "/nowhere")).status == 404
        assert found.send(2, WebRequest("PUT", "/carts")).status == 405
        assert found.send(1, WebRequest("GET", "/")).body == b"<h1>The shop</h1>"
        head = found.send(1, WebRequest("HEAD", f"/carts/{cart}"))
        assert (head.status, head.body) == (200, b"")
        assert found.send(1, WebRequest("GET", "/carts/none")).status == 404
        assert found.send(0, WebRequest("GET", "/status")).status == 200
        assert found.send(0, WebRequest("POST", "/belt/token")).status == 403
        assert found.send(0, WebRequest("POST", "/carts", "", [], b"x" * 1_048_577)).status == 413

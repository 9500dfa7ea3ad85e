"""The tests of the ticket system. They know nothing of Plait; `plait gyro record` runs them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

os.environ["TICKETS_DATABASE"] = "sqlite://"

from fastapi.testclient import TestClient
from sqlalchemy.orm import Session
from tickets import Base, Event, app, engine


@pytest.fixture
def client() -> Iterator[TestClient]:
    """A client of a system with three events."""
    Base.metadata.drop_all(engine())
    Base.metadata.create_all(engine())
    with Session(engine()) as db:
        db.add_all([Event(id=i, title=f"event {i}", seats=i - 10) for i in (15, 16, 17)])
        db.commit()
    with TestClient(app) as made:
        yield made


def reserve(client: TestClient, event: int, seat: int, holder: str) -> int:
    return client.post(f"/events/{event}/tickets", json={"holder": holder, "seat": seat}).status_code


def test_reserve(client: TestClient) -> None:
    assert [e["id"] for e in client.get("/events").json()] == [15, 16, 17]
    assert reserve(client, 15, 2, "ada") == 201
    assert reserve(client, 15, 2, "ben") == 409
    assert reserve(client, 16, 3, "ben") == 201
    assert reserve(client, 16, 4, "cyd") == 201
    assert reserve(client, 15, 6, "ben") == 422
    assert reserve(client, 19, 1, "ben") == 404
    assert client.get("/events/15/free").json() == {"free": 4}
    assert client.get("/events/16/free").json() == {"free": 4}
    assert client.get("/events/19/free").status_code == 404
    assert client.get("/events/15/seats/2").json() == {"holder": "ada"}
    assert client.get("/events/16/seats/1").json() == {"holder": None}


def test_cancel(client: TestClient) -> None:
    for event, seat, holder in ((15, 1, "ada"), (16, 2, "ben")):
        reserve(client, event, seat, holder)
        assert client.delete(f"/events/{event}/tickets/{seat}").status_code == 204
        assert client.delete(f"/events/{event}/tickets/{seat}").status_code == 404
        assert client.get(f"/events/{event}/seats/{seat}").json() == {"holder": None}


def test_enlarge(client: TestClient) -> None:
    for event in (15, 16):
        assert client.post(f"/events/{event}/seats", json={"seats": 3}).json() == {"seats": event - 10 + 3}
    assert client.post("/events/19/seats", json={"seats": 1}).status_code == 404


def test_notes(client: TestClient) -> None:
    for name in ("ada", "ben"):
        for text in ("first", "second"):
            assert client.put(f"/notes/{name}", json={"text": f"{text} of {name}"}).status_code == 200
    assert client.get("/notes/ada").json() == {"text": "second of ada"}
    assert client.get("/notes/ben").json() == {"text": "second of ben"}
    assert client.get("/notes/cyd").json() == {"text": ""}

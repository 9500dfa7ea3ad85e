"""Tickets for events: FastAPI and the ORM of SQLAlchemy. Nothing in it knows of Plait.

Run it alone with `uvicorn tickets:app`. Customers reserve seats of an event and give them back, and have notes. Events
get more seats.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException
from pydantic import BaseModel
from sqlalchemy import Engine, ForeignKey, create_engine, func, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from sqlalchemy.pool import StaticPool


class Base(DeclarativeBase):
    """The tables."""


class Event(Base):
    """An event with a number of seats."""

    __tablename__ = "events"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str]
    seats: Mapped[int]


class Ticket(Base):
    """A reserved seat."""

    __tablename__ = "tickets"
    event_id: Mapped[int] = mapped_column(ForeignKey("events.id"), primary_key=True)
    seat: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    holder: Mapped[str]


class Note(Base):
    """A note of a customer. Only the customer reads it."""

    __tablename__ = "notes"
    customer: Mapped[str] = mapped_column(primary_key=True)
    text: Mapped[str]


class Reservation(BaseModel):
    """Who reserves which seat."""

    holder: str
    seat: int


class More(BaseModel):
    """How many seats are added."""

    seats: int


class Text(BaseModel):
    """The text of a note."""

    text: str


@functools.cache
def engine() -> Engine:
    """The engine, made when it is first needed."""
    url = os.environ.get("TICKETS_DATABASE", "sqlite:///tickets.db")
    return create_engine(url, connect_args={"check_same_thread": False}, poolclass=StaticPool)


def session() -> Iterator[Session]:
    """The session of a request."""
    with Session(engine()) as made:
        yield made


Db = Annotated[Session, Depends(session)]
app = FastAPI(title="Tickets")


@app.get("/events")
def events(db: Db) -> list[dict[str, int | str]]:
    """All events."""
    return [{"id": e.id, "title": e.title, "seats": e.seats} for e in db.scalars(select(Event).order_by(Event.id))]


@app.get("/events/{event}/free")
def free(event: int, db: Db) -> dict[str, int]:
    """How many seats are free."""
    found = db.get(Event, event)
    if found is None:
        raise HTTPException(404, "no such event")
    taken = db.scalar(select(func.count()).select_from(Ticket).where(Ticket.event_id == event))
    return {"free": found.seats - (taken or 0)}


@app.get("/events/{event}/seats/{seat}")
def holder(event: int, seat: int, db: Db) -> dict[str, str | None]:
    """Who has a seat."""
    found = db.get(Ticket, (event, seat))
    return {"holder": found.holder if found is not None else None}


@app.post("/events/{event}/tickets", status_code=201)
def reserve(event: int, wanted: Reservation, db: Db) -> dict[str, int]:
    """Reserve a seat."""
    found = db.get(Event, event)
    if found is None:
        raise HTTPException(404, "no such event")
    if not 1 <= wanted.seat <= found.seats:
        raise HTTPException(422, "no such seat")
    if db.get(Ticket, (event, wanted.seat)) is not None:
        raise HTTPException(409, "the seat is taken")
    db.add(Ticket(event_id=event, seat=wanted.seat, holder=wanted.holder))
    db.commit()
    return {"seat": wanted.seat}


@app.delete("/events/{event}/tickets/{seat}", status_code=204)
async def cancel(event: int, seat: int, db: Db) -> None:
    """Give a seat back."""
    ticket = db.get(Ticket, (event, seat))
    if ticket is None:
        raise HTTPException(404, "no such ticket")
    db.delete(ticket)
    db.commit()


@app.post("/events/{event}/seats")
def enlarge(event: int, more: More, db: Db) -> dict[str, int]:
    """Add seats to an event."""
    found = db.get(Event, event)
    if found is None:
        raise HTTPException(404, "no such event")
    found.seats += more.seats
    db.commit()
    return {"seats": found.seats}


@app.put("/notes/{customer}")
def write_note(customer: str, note: Text, db: Db) -> dict[str, str]:
    """Write or replace the note of a customer."""
    db.merge(Note(customer=customer, text=note.text))
    db.commit()
    return {"text": note.text}


@app.get("/notes/{customer}")
def read_note(customer: str, db: Db) -> dict[str, str]:
    """The note of a customer."""
    found = db.get(Note, customer)
    return {"text": found.text if found is not None else ""}

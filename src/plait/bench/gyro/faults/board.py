"""An application with every class of operations: shared boards, private notes, accounts with a double key, generated ids.

Lists of numbers that only grow show the order in which readers were executed.
"""

from typing import Any

SCHEMA = """
CREATE TABLE boards (id INTEGER PRIMARY KEY, items TEXT NOT NULL DEFAULT '');
CREATE TABLE notes (owner INTEGER PRIMARY KEY, items TEXT NOT NULL DEFAULT '');
CREATE TABLE people (id INTEGER PRIMARY KEY, colour TEXT NOT NULL DEFAULT 'none', score INTEGER NOT NULL DEFAULT 0);
CREATE TABLE tickets (id INTEGER PRIMARY KEY, owner INTEGER NOT NULL, label TEXT, drawn REAL);
CREATE TABLE prizes (id INTEGER PRIMARY KEY, ticket INTEGER NOT NULL, label TEXT);
CREATE TABLE bids (id INTEGER PRIMARY KEY, bidder INTEGER NOT NULL, item INTEGER NOT NULL, amount INTEGER NOT NULL);
INSERT INTO boards (id) VALUES (0), (1), (2);
INSERT INTO notes (owner) VALUES (0), (1), (2), (3), (4), (5);
INSERT INTO people (id) VALUES (0), (1), (2), (3), (4), (5);
"""


def note(db: Any, owner: Any, value: Any) -> Any:
    """Local: a private list."""
    db.execute("UPDATE notes SET items = concat(items, ' ', ?) WHERE owner = ?", (value, owner))
    return db.execute("SELECT items FROM notes WHERE owner = ?", (owner,)).fetchone()[0]


def notes(db: Any, owner: Any) -> Any:
    """Local: a private list, read only."""
    return db.execute("SELECT items FROM notes WHERE owner = ?", (owner,)).fetchone()[0]


def look(db: Any, first: Any, second: Any) -> Any:
    """Local, anywhere: two shared lists in one snapshot."""
    rows = db.execute("SELECT id, items FROM boards WHERE id IN (?, ?) ORDER BY id", (first, second)).fetchall()
    return [list(row) for row in rows]


def post(db: Any, owner: Any, board: Any, value: Any) -> Any:
    """Global: append to a shared list and to a private one; what it writes depends on both."""
    mine = db.execute("SELECT items FROM notes WHERE owner = ?", (owner,)).fetchone()[0]
    db.execute("UPDATE boards SET items = concat(items, ' ', ?) WHERE id = ?", (value, board))
    db.execute("UPDATE notes SET items = concat(items, ' ', ?) WHERE owner = ?", (value, owner))
    there = db.execute("SELECT items FROM boards WHERE id = ?", (board,)).fetchone()[0]
    if len(there.split()) % 7 == 0:
        raise ValueError("unlucky")
    return [mine, there]


def move(db: Any, source: Any, target: Any, value: Any) -> Any:
    """Global: two shared lists at once. Without an order, rows change places when PostgreSQL vacuums the table."""
    db.execute("UPDATE boards SET items = concat(items, ' ', ?) WHERE id IN (?, ?)", (value, source, target))
    rows = db.execute("SELECT id, items FROM boards WHERE id IN (?, ?) ORDER BY id", (source, target)).fetchall()
    return [list(row) for row in rows]


def paint(db: Any, person: Any, colour: Any) -> None:
    """Local: another column of a row whose score is shared."""
    db.execute("UPDATE people SET colour = ? WHERE id = ?", (colour, person))


def portrait(db: Any, person: Any) -> Any:
    """Local: where the colour is known."""
    colour, score = db.execute("SELECT colour, score FROM people WHERE id = ?", (person,)).fetchone()
    return [colour, score]


def praise(db: Any, fan: Any, person: Any) -> None:
    """Global, at the fan's server: the fan's colour is known there, and scores are shown to everybody."""
    colour = db.execute("SELECT colour FROM people WHERE id = ?", (fan,)).fetchone()[0]
    db.execute("UPDATE people SET score = score + ? WHERE id = ?", (1 + len(colour), person))


def ranking(db: Any) -> Any:
    """Local, anywhere."""
    return [list(r) for r in db.execute("SELECT id, score FROM people ORDER BY score DESC, id").fetchall()]


def draw(db: Any, owner: Any, label: Any) -> Any:
    """Local: an id that the server generates."""
    cursor = db.execute("INSERT INTO tickets (owner, label) VALUES (?, ?)", (owner, label))
    return cursor.lastrowid


def drawn(db: Any, owner: Any) -> Any:
    """Local: the tickets of an owner."""
    return [
        list(r) for r in db.execute("SELECT id, label FROM tickets WHERE owner = ? ORDER BY id", (owner,)).fetchall()
    ]


def award(db: Any, owner: Any) -> None:
    """Global: rows of a query over local rows, with ids that are generated, for everybody to see."""
    db.execute(
        "INSERT INTO prizes (ticket, label) SELECT id, label FROM tickets WHERE owner = ? ORDER BY id DESC LIMIT 2",
        (owner,),
    )


def prizes(db: Any) -> Any:
    """Local, anywhere."""
    return [list(r) for r in db.execute("SELECT id, ticket, label FROM prizes ORDER BY id").fetchall()]


def bid(db: Any, user: Any, item: Any, amount: Any) -> Any:
    """Local if user and item are at one server, global if not."""
    return db.execute("INSERT INTO bids (bidder, item, amount) VALUES (?, ?, ?)", (user, item, amount)).lastrowid


def bids_by(db: Any, user: Any) -> Any:
    """Local: the bids of a user."""
    return [list(r) for r in db.execute("SELECT id, amount FROM bids WHERE bidder = ? ORDER BY id", (user,)).fetchall()]


def bids_on(db: Any, item: Any) -> Any:
    """Local: the bids on an item."""
    return [list(r) for r in db.execute("SELECT id, amount FROM bids WHERE item = ? ORDER BY id", (item,)).fetchall()]

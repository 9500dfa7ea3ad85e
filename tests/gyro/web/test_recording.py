"""From requests to recordings: the rule for the sources of values, and the recordings of the examples."""

from __future__ import annotations

import sys
import uuid
from pathlib import Path
from typing import Any

import apsw
import pytest
import yaml

from plait.gyro.analysis import analyze
from plait.gyro.belt.databases.sqlite.connection import SqliteConnection
from plait.gyro.belt.routing import server_of
from plait.gyro.web import engine
from plait.gyro.web.contract import Check, contract
from plait.gyro.web.recording import _Execution, _Request, record, recording_of
from plait.gyro.web.requests import canonical
from plait.kernel.errors import UsageError
from tests.gyro.web.servers import BLOG, SHOP, TICKETS, Example

SCHEMA = "CREATE TABLE carts (id INTEGER PRIMARY KEY, owner TEXT); CREATE TABLE lines (cart INT, item INT);"


def requests(*recorded: tuple[dict[str, Any], list[tuple[str, list[Any], int | None]]]) -> list[_Request]:
    """Requests of one endpoint: parameters, and statements with values and the new id."""
    return [
        _Request("GET /", given, SCHEMA, [_Execution(sql, values, [], [], last) for sql, values, last in executed])
        for given, executed in recorded
    ]


def statements(found: list[_Request]) -> list[str]:
    listed: list[str] = yaml.safe_load(recording_of(found).text)["transactions"]["GET /"]["statements"]
    return listed


QUERY = "SELECT item FROM lines WHERE cart = ?"
NEW = "INSERT INTO carts (owner) VALUES (?)"


def test_a_value_that_varies_with_a_parameter_is_this_parameter() -> None:
    found = requests(({"cart": 3, "query_page": "1"}, [(QUERY, [3], None)]), ({"cart": 4}, [(QUERY, [4], None)]))
    assert statements(found) == ["SELECT item FROM lines WHERE cart = :cart"]


def test_a_value_that_never_varies_is_any_value_and_there_is_a_warning() -> None:
    found = requests(({"cart": 3}, [(QUERY, [3], None)]), ({"cart": 3}, [(QUERY, [3], None)]))
    assert statements(found) == ["SELECT item FROM lines WHERE cart = :any_1"]
    assert "cart had only the value 3" in recording_of(found).warnings[0]


def test_one_counterexample_excludes_a_parameter() -> None:
    given = [({"cart": n}, [(QUERY, [n], None)]) for n in (3, 4, 5)]
    found = requests(*given, ({"cart": 6}, [(QUERY, [99], None)]))
    assert statements(found) == ["SELECT item FROM lines WHERE cart = :any_1"]


def test_parameters_that_are_always_equal_are_named_in_a_warning() -> None:
    found = requests(*(({"cart": n, "json_item": n}, [(QUERY, [n], None)]) for n in (3, 4)))
    assert statements(found) == ["SELECT item FROM lines WHERE cart = :cart"]
    assert "cart and json_item always have the same value" in recording_of(found).warnings[0]


def test_an_id_of_an_earlier_statement_is_new() -> None:
    found = requests(*(({}, [(NEW, ["ada"], n), (QUERY, [n], None)]) for n in (3, 4)))
    assert statements(found)[1] == "SELECT item FROM lines WHERE cart = :new_carts"


def test_an_id_of_another_request_is_not_new() -> None:
    found = requests(*(({}, [(QUERY, [n - 1], None), (NEW, ["ada"], n)]) for n in (3, 4, 5)))
    assert statements(found)[0] == "SELECT item FROM lines WHERE cart = :any_1"


def test_different_sources_become_several_statements() -> None:
    found = requests(*(({"a": n, "b": n + 10}, [(QUERY, [n], None), (QUERY, [n + 10], None)]) for n in (1, 2)))
    assert statements(found) == [f"SELECT item FROM lines WHERE cart = :{name}" for name in ("a", "b")]


def test_a_constant_has_no_other_explanation() -> None:
    sql = "SELECT cart FROM lines WHERE item = ?"
    found = requests(*(({"cart": n}, [(sql, [77], None)]) for n in (1, 2, 3)))
    body = yaml.safe_load(recording_of(found).text)["transactions"]["GET /"]
    assert body["constants"] == {"const_1": 77}
    assert body["statements"] == ["SELECT cart FROM lines WHERE item = :const_1"]
    found = requests(*(({"cart": 77}, [(sql, [77], None)]) for n in (1, 2, 3)))
    assert "constants" not in yaml.safe_load(recording_of(found).text)["transactions"]["GET /"]


def test_a_parameter_with_two_values_in_one_request_is_given_up() -> None:
    """The recorded requests must pass the check of their own recording."""
    sql = "SELECT cart FROM lines WHERE item = ?"
    found = requests(*(({"a": f"{n}"}, [(QUERY, [n], None), (sql, [f"{n}"], None)]) for n in (3, 4)))
    assert statements(found) == ["SELECT item FROM lines WHERE cart = :a", "SELECT cart FROM lines WHERE item = :any_1"]


def test_a_uuid_that_a_request_makes_routes_its_row(tmp_path: Path) -> None:
    """A new row with such a UUID is local, because the server maps the UUID to itself. With any UUID it is global."""
    made = [uuid.uuid4() for _ in range(3)]
    ddl = "CREATE TABLE carts (id VARCHAR PRIMARY KEY, owner TEXT);"
    insert, query = "INSERT INTO carts (id, owner) VALUES (?, ?)", "SELECT owner FROM carts WHERE id = ?"
    found = [
        _Request("POST /carts", {}, ddl, [_Execution(insert, [u.hex, "ada"], [], [], None)], [u.hex]) for u in made
    ]
    found += [_Request("GET /<cart>", {"cart": str(u)}, ddl, [_Execution(query, [u.hex], [], [], None)]) for u in made]
    text = recording_of(found).text
    assert "INSERT INTO carts (id, owner) VALUES (:uuid_1, :const_1)" in text
    file = tmp_path / "carts.yaml"
    file.write_text(text)
    assert [(o.name, o.classed, o.keys) for o in analyze(file).operations] == [
        ("GET /<cart>", "local", ["cart"]),
        ("POST /carts", "local", []),
    ]
    file.write_text(text.replace(":uuid_1", ":any_1"))
    assert [o.classed for o in analyze(file).operations] == ["local", "global"]


def test_requests_make_uuids_of_their_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uuid, "uuid4", uuid.uuid4)  # restored after the test
    engine._uuids(2, 3)
    connection = SqliteConnection(apsw.Connection(":memory:"), None)
    check = Check(contract("recorded: true\nschema: CREATE TABLE t (a INT)\ntransactions: {}"), "GET /", {})
    connection.watch = check
    with engine.inside(connection):
        made = [uuid.uuid4() for _ in range(20)]
    assert {server_of(canonical(str(u), "text"), 3) for u in made} == {2}
    assert check.uuids == {u.hex for u in made}
    assert {server_of(uuid.uuid4().hex, 3) for _ in range(60)} == {0, 1, 2}  # outside of requests


CLASSES = {
    "shop": {
        "GET /cart": ("local", ["session_cart"]),
        "POST /carts": ("local", []),
        "GET /carts/<int:cart>": ("local", ["cart"]),
        "POST /carts/<int:cart>/lines": ("local", ["cart"]),
        "DELETE /carts/<int:cart>/lines/<int:item>": ("local", ["cart"]),
        "POST /carts/<int:cart>/order": ("global", ["cart"]),
        "GET /items": ("local", []),
        "POST /items/<int:item>/stock": ("global", ["item"]),
    },
    "tickets": {
        "GET /events": ("local", []),
        "GET /events/{event}/free": ("local", ["event"]),
        "GET /events/{event}/seats/{seat}": ("local", ["event"]),
        "POST /events/{event}/tickets": ("local", ["event"]),
        "DELETE /events/{event}/tickets/{seat}": ("local", ["event"]),
        "POST /events/{event}/seats": ("global", ["event"]),
        "GET /notes/{customer}": ("local", ["customer"]),
        "PUT /notes/{customer}": ("local", ["customer"]),
    },
    "blog": {
        "GET /": ("local", []),
        "POST /authors": ("local", []),
        "GET /authors/<int:author>": ("local", ["author"]),
        "POST /profile": ("local", ["session_author"]),
        "POST /authors/<int:author>/drafts/new": ("local", ["author"]),
        "GET /authors/<int:author>/drafts": ("local", ["author"]),
        "POST /authors/<int:author>/drafts/<int:draft>/discard": ("local", ["author"]),
        "POST /authors/<int:author>/drafts/<int:draft>/publish": ("global", ["author"]),
    },
}
"""The classes by hand: a cart, an event and an author belong to one server; the stock, the number of seats and the posts
are read at all servers."""


@pytest.mark.slow
@pytest.mark.parametrize("example", [SHOP, TICKETS, BLOG], ids=["flask", "fastapi", "django"])
def test_the_tests_of_an_example_give_its_recording(example: Example, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(example.folder)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    python = [sys.executable, "-W", "ignore"]
    tests = ["manage.py", "test"] if example is BLOG else ["-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    code, found = record([*python, *tests])
    assert code == 0
    assert found is not None
    assert found.warnings == []
    assert found.text == example.recording.read_text(encoding="utf-8")
    classes = {o.name: (o.classed, o.keys) for o in analyze(example.recording).operations}
    assert classes == CLASSES[example.folder.name]


@pytest.mark.slow
def test_another_dbms_is_refused_by_name() -> None:
    """An application that uses PostgreSQL would give a recording without statements."""
    code = "import contextlib, psycopg\nwith contextlib.suppress(Exception):\n    psycopg.connect('host=/nowhere')"
    with pytest.raises(UsageError, match=r"uses PostgreSQL \(with psycopg\), and only statements of SQLite"):
        record([sys.executable, "-c", code])

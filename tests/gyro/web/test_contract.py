"""The check at run time: what a recording allows, and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from typing import Any

import pytest

from plait.gyro.web.contract import Check, UnrecordedError, contract
from plait.kernel.errors import UsageError
from tests.gyro.web.servers import ROOT

RECORDING = """
recorded: true
schema: |
  CREATE TABLE carts (id INTEGER PRIMARY KEY, owner TEXT, next INTEGER);
  CREATE TABLE lines (cart INTEGER, item INTEGER, status TEXT, PRIMARY KEY (cart, item));
transactions:
  POST /carts:
    parameters: [cart, json_item]
    constants: {const_1: open}
    statements:
    - INSERT INTO carts (owner) VALUES (:any_1)
    - INSERT INTO lines (cart, item, status) VALUES (:new_carts, :json_item, :const_1)
    - UPDATE carts SET next = :new_carts WHERE id = :new_carts
    - DELETE FROM lines WHERE cart = :cart
    - DELETE FROM lines WHERE cart = :json_item
    - SELECT item FROM lines WHERE cart = :cart AND item IN (:json_item)
"""
LINE = "INSERT INTO lines (cart, item, status) VALUES (?, ?, ?)"
GIVEN = {"cart": 3, "json_item": "7"}


def check(given: dict[str, Any] = GIVEN, kinds: dict[str, str] | None = None) -> Check:
    """A check of an operation that has generated the ids 5 and 8."""
    made = Check(contract(RECORDING), "POST /carts", given, kinds or {"cart": "number", "json_item": "number"})
    for last in (5, 8):
        made.before("INSERT INTO carts (owner) VALUES (?)", ("ada",))
        made.after("INSERT INTO carts (owner) VALUES (?)", [], [], lambda last=last: last)
    return made


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        (LINE, (5, 7, "open")),
        (LINE, (8, "7", "open")),
        ("INSERT INTO lines (cart, item, status) VALUES (?, ?, ?), (?, ?, ?)", (5, 7, "open", 8, 7, "open")),
        ("UPDATE carts SET next = ? WHERE id = ?", (8, 8)),
        ("DELETE FROM lines WHERE cart = ?", (3,)),
        ("DELETE FROM lines WHERE cart = ?", (7,)),
        ("SELECT item FROM lines WHERE cart = ? AND item IN (?, ?)", (3, 7, 7)),
        ("SELECT item FROM lines WHERE cart = ? AND item IN (SELECT 1 FROM (SELECT 1) WHERE 1!=1)", (3,)),
    ],
)
def test_recorded_statements_pass(sql: str, values: tuple[Any, ...]) -> None:
    check().before(sql, values)


@pytest.mark.parametrize(
    ("sql", "values", "reason"),
    [
        ("DELETE FROM lines", (), "not in the recording"),
        ("DELETE FROM lines WHERE cart = 3", (), "not in the recording"),
        ("DELETE FROM lines WHERE cart = ?; DELETE FROM carts", (3,), "not in the recording"),
        ("DELETE FROM lines WHERE cart = ?", (4,), "parameter cart"),
        ("DELETE FROM lines WHERE cart = ?", (None,), "parameter cart"),
        (LINE, (6, 7, "open"), "new id of carts"),
        (LINE, (5, 8, "open"), "parameter json_item"),
        (LINE, (5, 7, "closed"), "recorded constant"),
        ("INSERT INTO lines (cart, item, status) VALUES (?, ?, ?), (?, ?, ?)", (5, 7, "open", 9, 7, "open"), "new id"),
        ("UPDATE carts SET next = ? WHERE id = ?", (5, 8), "new id of carts"),
        ("SELECT item FROM lines WHERE cart = ? AND item IN (?, ?)", (3, 7, 8), "parameter json_item"),
    ],
)
def test_everything_else_is_refused(sql: str, values: tuple[Any, ...], reason: str) -> None:
    made = check()
    with pytest.raises(UnrecordedError, match=reason) as caught:
        made.before(sql, values)
    assert "POST /carts" in str(caught.value)
    with pytest.raises(UnrecordedError):  # the operation is lost, even if the application goes on
        made.before("DELETE FROM lines WHERE cart = ?", (3,))
    assert made.refused is not None


def test_a_parameter_has_one_value_in_an_operation() -> None:
    """`07` and 7 are one number, but two texts: a statement must not use both."""
    made = check({"cart": "07", "json_item": 1}, {})
    made.before("DELETE FROM lines WHERE cart = ?", (7,))
    with pytest.raises(UnrecordedError):
        made.before("DELETE FROM lines WHERE cart = ?", ("07",))


def test_a_missing_parameter_equals_nothing() -> None:
    with pytest.raises(UnrecordedError):
        check({"json_item": 1}).before("DELETE FROM lines WHERE cart = ?", (None,))


def test_an_endpoint_without_a_recording_has_no_statements() -> None:
    with pytest.raises(UnrecordedError, match="GET /secret"):
        Check(contract(RECORDING), "GET /secret", {}).before("SELECT 1", ())


def test_ids_that_the_application_chooses_are_not_new() -> None:
    made = Check(
        contract(RECORDING.replace("(owner) VALUES (:any_1)", "(id, owner) VALUES (:any_1, :any_2)")),
        "POST /carts",
        GIVEN,
    )
    made.before("INSERT INTO carts (id, owner) VALUES (?, ?)", (5, "ada"))
    made.after("INSERT INTO carts (id, owner) VALUES (?, ?)", [], [], lambda: 5)
    with pytest.raises(UnrecordedError, match="new id"):
        made.before(LINE, (5, 7, "open"))


def test_a_uuid_must_be_one_of_the_operation() -> None:
    recording = RECORDING.replace("(owner) VALUES (:any_1)", "(owner) VALUES (:uuid_1)")
    made, other = uuid.uuid4(), uuid.uuid4()
    check = Check(contract(recording), "POST /carts", GIVEN)
    check.made(made.hex)
    check.before("INSERT INTO carts (owner) VALUES (?)", (str(made),))
    with pytest.raises(UnrecordedError, match="not a new UUID"):
        check.before("INSERT INTO carts (owner) VALUES (?)", (str(other),))


def test_a_list_of_transactions_is_not_a_recording() -> None:
    with pytest.raises(UsageError, match="not a recording"):
        contract(RECORDING.replace("recorded: true", ""))


@pytest.mark.slow
def test_a_wrong_recording_costs_refusals_and_never_rows() -> None:
    """Recordings of the shop that lack a statement, or have another source for a value: the first request that differs is
    refused and changes nothing. The application catches no exception here; Flask makes each one a response."""
    command = [sys.executable, "-m", "tests.gyro.web.mutants", "1", "4"]
    done = subprocess.run(command, capture_output=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr.decode()
    found = json.loads(done.stdout)
    assert len(found) > 20
    assert {name: fate for name, fate in found.items() if fate != "refused"} == {}

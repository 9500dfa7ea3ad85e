"""Parameters of requests, and their canonical form: what is equal in SQL is routed to the same server."""

from __future__ import annotations

import sqlite3
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.gyro.belt.routing import server_of
from plait.gyro.web.requests import Match, WebRequest, canonical, parameters, same

VALUES = st.one_of(
    st.integers(-20, 20),
    st.integers(-20, 20).map(str),
    st.sampled_from(["07", "7.0", " 7", "+7", "7e0", "", "x", True, False, 7.0, 7.5, 2**53 + 1, float(2**53)]),
    st.uuids().map(str),
)


@pytest.mark.parametrize(("kind", "declared"), [("number", "INTEGER"), ("text", "VARCHAR")])
@given(one=VALUES, other=VALUES)
def test_values_that_are_equal_in_sql_have_one_canonical_form(
    kind: str, declared: str, one: object, other: object
) -> None:
    """SQLite is the judge. A value without a canonical form is equal to no parameter, so it is never routed."""
    db = sqlite3.connect(":memory:")
    db.execute(f"CREATE TABLE t (a {declared})")
    db.execute("INSERT INTO t VALUES (?)", (one,))
    forms = canonical(one, kind), canonical(other, kind)
    if db.execute("SELECT 1 FROM t WHERE a = ?", (other,)).fetchall() and None not in forms:
        assert forms[0] == forms[1]
        assert server_of(forms[0], 3) == server_of(forms[1], 3)


def test_uuids_are_equal_in_all_their_forms() -> None:
    made = uuid.uuid4()
    assert same(made.hex, str(made))
    assert same(made, str(made).upper())
    assert canonical(str(made), "text") == canonical(made.hex, "text") == canonical(made, "text")
    assert not same(made.hex, str(uuid.uuid4()))


def test_each_part_of_a_request_has_parameters() -> None:
    form = "multipart/form-data; boundary=x"
    body = (
        b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--x\r\nContent-Disposition: form-data; name="f"; '
    )
    body += b'filename="f"\r\n\r\n2\r\n--x--\r\n'
    headers = [("content-type", form), ("cookie", "k=v; w=1"), ("authorization", "Bearer abc"), ("x-user", "7")]
    found = parameters(WebRequest("POST", "/", "q=1&r=2&r=3", headers, body), Match("/<u>", {"u": 5}, {"id": 9}))
    assert found == {
        "u": 5,
        "session_id": 9,
        "query_q": "1",
        "form_a": "1",
        "cookie_k": "v",
        "cookie_w": "1",
        "header_authorization": "Bearer abc",
        "header_x_user": "7",
        "bearer_token": "abc",
    }


@pytest.mark.parametrize("body", [b"", b"[1, 2]", b"{", b"\xff", b"7", b'{"a": [1], "b": null}'])
def test_a_body_without_names_has_no_parameters(body: bytes) -> None:
    assert parameters(WebRequest("POST", "/", "", [("content-type", "application/json")], body), None) == {}

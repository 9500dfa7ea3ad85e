"""Row images of PostgreSQL keep every value exactly: a row that was inserted or updated is the same at the other server."""

from __future__ import annotations

import shutil

import pytest

from plait.gyro.belt.databases.postgresql.rows import fields
from plait.gyro.belt.logs.embedded import EmbeddedLog
from plait.gyro.belt.records import Call, Entry, chained
from tests.gyro.belt.variants import needs_postgresql
from tests.support.engines import Postgresql, scratch

_TYPES = """
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE DOMAIN positive AS integer CHECK (VALUE > 0);
CREATE TYPE pair AS (a integer, b numeric);
"""
VALUES = {
    "numeric": ["12345678901234567890.123456789012345", f"1{'0' * 40}", "1.500", "'NaN'", "'-Infinity'"],
    "double precision": ["'-0'", "'NaN'", "5e-324", "1.0::float8 / 3", "1e300"],
    "real": ["0.1"],
    "bigint": ["9223372036854775807"],
    "bytea": ["'\\x00ff5c22'", "''"],
    "text": ["''", "'a \"b\", (c)\\d'", "E'x\\ny'", "' '"],
    "char(5)": ["'ab'"],
    "uuid": ["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"],
    "timestamp": ["'infinity'", "'2019-02-01 00:00:00.123456'"],
    "timestamptz": ["'2019-01-01 00:00:00.123456+05:30'", "'0044-03-15 12:00 BC'"],
    "date": ["'2019-02-01'", "'0044-03-15 BC'"],
    "time": ["'24:00:00'"],
    "interval": ["'1 mon -2 days 03:04:05.678'"],
    "json": ['\'{"b" : 1,  "a":2, "a":3}\'', "'null'"],
    "jsonb": ["'null'", "'{\"x\": 12345678901234567890123.50}'", "'\"7\"'"],
    "jsonb[]": ["ARRAY['null'::jsonb, NULL, '1']"],
    "integer[]": ["'{1,NULL,3}'", "'{{1,2},{3,4}}'", "'[0:1]={7,8}'"],
    "text[]": ["ARRAY['a', 'b\"c', NULL, '', 'NULL']"],
    "mood": ["'sad'"],
    "positive": ["5"],
    "pair": ["ROW(1, 123456789012345678901.5)", "ROW(NULL, NULL)"],
    "int4range": ["'[1,5)'"],
    "boolean": ["true"],
    "inet": ["'10.0.0.1/8'"],
    "tsvector": ["'a fat cat'"],
}


def test_the_fields_of_a_row() -> None:
    assert fields("()") == [None]
    assert fields('(,"")') == [None, ""]
    assert fields('(1,"(2,""a """"b"""""")","\\\\")') == ["1", '(2,"a ""b""")', "\\"]


@pytest.mark.slow
@needs_postgresql
def test_every_value_is_the_same_at_the_other_server() -> None:
    folder = scratch()
    columns = ", ".join(f"c{n} {kind}" for n, kind in enumerate(VALUES))
    engine = Postgresql(folder, f"{_TYPES} CREATE TABLE t (id integer PRIMARY KEY, dull integer, {columns})")
    here, there = (engine.open(n, 2, lambda _: None) for n in range(2))
    log = EmbeddedLog(folder / "log.db")
    log.reissue(0)
    cases = [(f"c{n}", value) for n, values in enumerate(VALUES.values()) for value in values]

    def work(db: object) -> bytes:
        execute = db.execute  # type: ignore[attr-defined]
        execute("SELECT set_config('datestyle', 'SQL, DMY', true), set_config('extra_float_digits', '0', true)")
        for number, (column, value) in enumerate(cases):
            execute(f"INSERT INTO t (id, {column}) VALUES ({2 * number}, {value})")
            execute(f"INSERT INTO t (id) VALUES ({2 * number + 1})")
            execute(f"UPDATE t SET {column} = {value} WHERE id = {2 * number + 1}")
        return b"null"

    with here.visit() as visit:
        reply, update = visit.execute(Call("r", "t", {}, work))
        visit.commit(chained(visit.chain, [Entry(1, 1, 0, 0, "r", "t", b"{}", reply, update)]), log)
    there.apply(log.read(0), 1)
    query = "SELECT id, t::text FROM t ORDER BY id"
    found = engine.rows(0, query)
    assert len(found) == 2 * len(cases)
    assert found == engine.rows(1, query)
    for each in (here, there, log, engine):
        each.close()
    shutil.rmtree(folder)

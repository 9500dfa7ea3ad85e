"""SQLAlchemy Core: what is understood does on SQLite what SQLAlchemy itself does there, and everything else is refused."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plait.gyro.analysis import analyze, read
from plait.gyro.belt.application import load
from plait.gyro.sql.terms import Constant, Generated, Parameter, Unknown
from plait.gyro.transactions import Transaction
from plait.kernel.errors import UsageError

EXAMPLES = Path(__file__).parents[2] / "examples" / "gyro"
HEAD = """
import sqlalchemy as sa
from sqlalchemy import Column, Integer, MetaData, String, Table, and_, bindparam, func, not_, or_
from sqlalchemy import delete, insert, select, update

metadata = MetaData()
cart = Table("cart", metadata, Column("id", Integer, primary_key=True), Column("owner", Integer), Column("note", String))
line = Table("line", metadata, Column("cart", Integer, primary_key=True), Column("item", Integer, primary_key=True),
             Column("amount", Integer))
stamped = Table("stamped", metadata, Column("id", Integer, primary_key=True), Column("at", Integer, default=7))
flagged = Table("flagged", metadata, Column("id", Integer, primary_key=True), Column("on", sa.Boolean))
"""
SCHEMA = '''
SCHEMA = """
CREATE TABLE cart (id INTEGER PRIMARY KEY, owner INTEGER, note VARCHAR);
CREATE TABLE line (cart INTEGER, item INTEGER, amount INTEGER, PRIMARY KEY (cart, item));
CREATE TABLE stamped (id INTEGER PRIMARY KEY, at INTEGER);
CREATE TABLE flagged (id INTEGER PRIMARY KEY, "on" BOOLEAN);
"""
'''

UNDERSTOOD = [
    "select(cart.c.note).where(cart.c.id == p)",
    "select(cart).where(cart.c.owner == p)",
    "select(cart).where(cart.c.owner != p)",
    "select(cart).where(p == cart.c.owner)",
    "select(cart).where(~(cart.c.owner != p))",
    "select(cart).where(cart.c.owner == None)",
    "select(cart).where(cart.c.owner != None)",
    "select(cart).where(cart.c.owner.is_(None) | (cart.c.owner == p))",
    "select(cart).where(cart.c.owner.is_not(None) & (cart.c.id < 3))",
    "select(cart).where(and_(cart.c.owner == p, cart.c.id == q))",
    "select(cart).where(cart.c.owner == p).where(cart.c.id == q)",
    "select(cart).where(cart.c.owner == p, cart.c.id != q)",
    "select(cart).where(cart.c.owner.in_([p, q]))",
    "select(cart).where(cart.c.owner.not_in([p, 1]))",
    "select(cart).where(cart.c.id.between(1, 2))",
    "select(cart).where(cart.c.note.like('x%'))",
    "select(cart.c['id'], cart.columns.note.label('text')).order_by(cart.c.note.desc(), cart.c.id).limit(2)",
    "select(func.count()).select_from(line).where(line.c.cart == p)",
    "select(func.max(line.c.amount), line.c.cart).group_by(line.c.cart).order_by(line.c.cart)",
    "select(cart.c.note, line.c.item).where(cart.c.id == line.c.cart, cart.c.owner == p)",
    "select(cart.c.note, line.c.item).join(line, cart.c.id == line.c.cart).where(line.c.item == p)",
    "sa.select(cart.c.owner).distinct().where(cart.c.id >= 0)",
    "cart.select().where(cart.c.id == p).with_for_update()",
    "select(cart).where(cart.c.owner == bindparam('x')), {'x': 1}",
    "insert(cart).values(id=9, owner=p, note='new')",
    "insert(cart), {'id': 9, 'owner': p}",
    "insert(line), [{'cart': 8, 'item': 1}, {'cart': 8, 'item': 2}]",
    "cart.insert().values({'id': 9, 'owner': p})",
    "insert(cart).values({cart.c.id: 9, cart.c.note: 'x'})",
    "update(cart).where(cart.c.id == p).values(owner=q)",
    "update(cart).where(cart.c.owner == p).values(owner=cart.c.owner + 1, note='y')",
    "update(cart).values(owner=q)",
    "update(cart), {'owner': q}",
    "delete(cart).where(cart.c.owner == p)",
    "cart.delete().where(cart.c.owner != p)",
]
WEAKER = [
    "select(cart).where(not_(cart.c.owner == p))",
    "select(cart).where(~(~(cart.c.owner == p)))",
    "select(cart).where(not_(or_(cart.c.owner == p, cart.c.note == 'x')))",
    "select(cart).where(not_(and_(cart.c.owner == p, cart.c.note != p)))",
    "delete(cart).where(not_(cart.c.owner == p))",
]


def transaction(folder: Path, body: str) -> Transaction:
    file = folder / "application.py"
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    file.write_text(f"{HEAD}{SCHEMA}\ndef act(connection, p, q):\n{lines}\n")
    (found,) = read(file, None)[1]
    return found


def _fill(connection: sqlite3.Connection) -> None:
    connection.executescript(
        "INSERT INTO cart VALUES (0, 1, 'x'), (1, NULL, NULL), (2, 0, 'xy'), (3, 1, 'z');"
        "INSERT INTO line VALUES (0, 0, 5), (0, 1, NULL), (2, 1, 3);"
    )


def _state(connection: sqlite3.Connection) -> Any:
    return [connection.execute(f"SELECT * FROM {t} ORDER BY 1, 2").fetchall() for t in ("cart", "line")]


def difference(found: Transaction, source: str, change: Callable[[str], str] = lambda sql: sql) -> str | None:
    """What SQLAlchemy does and the statements of the analysis do not, with small values; `change` makes mutants."""
    names: dict[str, Any] = {}
    exec(HEAD, names)
    engine = sqlalchemy.create_engine("sqlite://")
    for p, q in itertools.product([0, 1, None], [0, 2]):
        with engine.connect() as theirs:
            names["metadata"].drop_all(theirs)
            names["metadata"].create_all(theirs)
            raw: Any = theirs.connection.driver_connection
            _fill(raw)
            result = eval(f"connection.execute({source})", names, {"connection": theirs, "p": p, "q": q})
            rows = sorted(map(repr, map(tuple, result))) if result.returns_rows else []
            after = _state(raw)
            schema = "".join(f"{s};" for (s,) in raw.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"))
        ours = sqlite3.connect(":memory:")
        ours.executescript(schema)
        _fill(ours)
        mine: list[Any] = []
        for statement in found.statements:
            given = {}
            for name, term in statement.bindings.items():
                assert isinstance(term, Parameter | Constant)
                given[name] = {"p": p, "q": q}[term.name] if isinstance(term, Parameter) else term.value
            mine = ours.execute(change(statement.sql), given).fetchall()
        left = _state(ours)
        ours.close()
        if source in UNDERSTOOD:
            fits = sorted(map(repr, mine)) == rows and left == after
        else:  # more rows are selected, and more are deleted
            fits = {*map(repr, mine)} >= {*rows} and all({*a} >= {*b} for a, b in zip(after, left, strict=True))
        if not fits:
            return f"{source} with {p} and {q}: {mine} and not {rows}; {left} and not {after}"
    engine.dispose()
    return None


@pytest.mark.slow
@pytest.mark.parametrize("source", [*UNDERSTOOD, *WEAKER])
def test_the_sql_does_what_sqlalchemy_does(source: str, tmp_path: Path) -> None:
    found = transaction(tmp_path, f"return connection.execute({source})")
    assert found.refusals == []
    assert difference(found, source) is None


ATOMS = st.sampled_from(
    ["cart.c.owner == p", "cart.c.owner != p", "cart.c.id == q", "p == cart.c.id", "cart.c.note == 'x'",
     "cart.c.owner < 1", "cart.c.owner == cart.c.id", "cart.c.owner.in_([p, q])", "cart.c.owner.not_in([q, p])",
     "cart.c.owner.is_(None)", "cart.c.note != None", "cart.c.id.between(q, 2)"]
)  # fmt: skip
CONDITIONS = st.recursive(
    ATOMS.map(lambda a: f"({a})"),
    lambda inner: st.one_of(
        inner.map(lambda a: f"not_({a})"),
        inner.map(lambda a: f"(~{a})"),
        st.tuples(inner, inner).map(lambda t: f"or_({t[0]}, {t[1]})"),
        st.tuples(inner, inner).map(lambda t: f"({t[0]} & {t[1]})"),
    ),
    max_leaves=4,
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(condition=CONDITIONS, deletes=st.booleans())
def test_random_conditions_are_never_too_strong(condition: str, deletes: bool, tmp_path: Path) -> None:
    source = f"{'delete' if deletes else 'select'}(cart).where({condition})"
    found = transaction(tmp_path, f"connection.execute({source})")
    assert found.refusals == []
    assert difference(found, source) is None


MUTANTS = {
    "None is not NULL": (" IS NOT DISTINCT FROM ", " = "),
    "and for or": (" AND ", " OR "),
    "or for and": (" OR ", " AND "),
    "another comparison": ("<>", "="),
    "the other rows": (" NOT IN ", " IN "),
    "rows twice": ("SELECT DISTINCT", "SELECT"),
    "more": ("LIMIT", "LIMIT 1 +"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("old", "new"), MUTANTS.values(), ids=MUTANTS)
def test_wrong_translations_are_noticed(old: str, new: str, tmp_path: Path) -> None:
    def noticed(source: str) -> bool:
        found = transaction(tmp_path, f"connection.execute({source})")
        return difference(found, source, lambda sql: sql.replace(old, new)) is not None

    assert any(noticed(source) for source in UNDERSTOOD)


REFUSED = {
    "select(cart.alias().c.id)": "needs columns of a Table",
    "select(cart).where(cart.c.id.in_(select(line.c.cart)))": "subquery",
    "select(cart).where(cart.c.id == select(line.c.cart).scalar_subquery())": "scalar_subquery",
    "select(cart).where(somewhere())": "not an expression",
    "select(cart).where(cart.c.id == somewhere())": "may be an expression",
    "select(cart).where(cart.c.id.in_(somewhere(p)))": "may be a subquery",
    "select(cart).where(sa.text('id = 1'))": "not an expression",
    "select(cart).where(sa.exists())": "not an expression",
    "select(cart).where(cart.c.id == p and cart.c.owner == q)": "not an expression",
    "select(cart).outerjoin(line, cart.c.id == line.c.cart)": "outerjoin",
    "select(cart).join(line)": "join",
    "select(cart, *p)": "",
    "select(Cart).where(Cart.id == p)": "needs columns of a Table",
    "select(cart.c.nothing)": "needs columns of a Table",
    "select(cart).where(cart.c.keys != p)": "a method of SQLAlchemy",
    "select(func.random())": "func.random",
    "select(cart).order_by(line.c.item)": "another",
    "update(cart).where(cart.c.id == line.c.cart).values(owner=1)": "another table",
    "update(cart).values(owner=select(line.c.item))": "subquery",
    "update(cart).where(cart.c.id == 1).values(**p)": "constant keys",
    "insert(cart).from_select(['id'], select(line.c.cart))": "from_select",
    "insert(cart), p": "not a dict",
    "insert(stamped).values(id=p)": "the default of the column at",
    "insert(cart).values(id=p).prefix_with('OR REPLACE')": "prefix_with",
    "insert(cart).values([{'id': 1}])": "not a dict",
}


@pytest.mark.parametrize(("source", "reason"), REFUSED.items(), ids=list(REFUSED))
def test_what_is_not_understood_is_refused(source: str, reason: str, tmp_path: Path) -> None:
    found = transaction(tmp_path, f"connection.execute({source})")
    assert len(found.refusals) >= 1
    assert any(reason in r.reason for r in found.refusals)
    assert not found.read_only


BODIES = {
    "a branch": "s = select(cart)\nif p:\n    s = s.where(cart.c.id == q)\nconnection.execute(s)",
    "given away": "somewhere(select(cart))",
    "given away in a list": "somewhere([select(cart)])",
    "another ORM": "Cart.query.filter_by(id=p).delete()",
    "given away, not understood": "somewhere(select(Cart))",
    "a table of this function": "cart = somewhere()\nconnection.execute(select(cart))",
    "an imported name that is something else": "select = somewhere\nconnection.execute(select(cart))",
    "imported here": "from elsewhere import select\nconnection.execute(select(cart))",
    "orm": "connection.add(p)",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_what_is_not_certain_is_refused(body: str, tmp_path: Path) -> None:
    assert transaction(tmp_path, body).refusals


FLOWS = {
    "in a variable": "s = select(cart.c.note)\ns = s.where(cart.c.id == p)\nconnection.execute(s)",
    "scalar": "connection.scalar(select(cart.c.note).where(cart.c.id == p))",
    "scalars": "for x in connection.scalars(select(cart.c.note).where(cart.c.id == p)).all():\n    pass",
}


@pytest.mark.parametrize("body", FLOWS.values(), ids=FLOWS)
def test_parameters_flow(body: str, tmp_path: Path) -> None:
    found = transaction(tmp_path, body)
    assert found.refusals == []
    assert list(found.statements[-1].bindings.values()) == [Parameter("p")]


def test_values_that_are_read_are_values(tmp_path: Path) -> None:
    body = (
        "x = connection.execute(select(cart.c.owner).where(cart.c.id == p)).scalar_one()\n"
        "for y in q:\n    connection.execute(update(line).where(line.c.cart == x).values(amount=y + 1))"
    )
    found = transaction(tmp_path, body)
    assert found.refusals == []
    assert all(isinstance(t, Unknown) for t in found.statements[-1].bindings.values())


def test_types_that_convert_values_hide_them(tmp_path: Path) -> None:
    found = transaction(tmp_path, "connection.execute(select(flagged).where(flagged.c.on == p))")
    assert found.refusals == []
    assert all(isinstance(t, Unknown) for t in found.statements[-1].bindings.values())


def test_ids_that_the_server_generates(tmp_path: Path) -> None:
    body = (
        "new = connection.execute(insert(cart).values(owner=p)).inserted_primary_key[0]\n"
        "connection.execute(insert(line).values(cart=new, item=q))"
    )
    found = transaction(tmp_path, body)
    assert found.refusals == []
    assert any(isinstance(t, Generated) for t in found.statements[-1].bindings.values())


def test_none_is_compared_as_sqlalchemy_does(tmp_path: Path) -> None:
    """`owner == p` selects rows without an owner if p is None, so it conflicts with inserts of such rows."""
    file = tmp_path / "application.py"
    file.write_text(
        HEAD + SCHEMA + "def find(connection, p):\n    connection.execute(select(cart).where(cart.c.owner == p))\n"
        "def put(connection, i):\n    connection.execute(insert(cart).values(id=i, owner=None))\n"
    )
    found = analyze(file)
    assert found.operation("put").classed == "global"


def test_any_number_of_values_may_be_any_row(tmp_path: Path) -> None:
    file = tmp_path / "application.py"
    file.write_text(
        HEAD + SCHEMA + "def find(connection, p):\n    connection.execute(select(cart).where(cart.c.id.in_(p)))\n"
        "def put(connection, i):\n    connection.execute(update(cart).where(cart.c.id == i).values(note='x'))\n"
    )
    found = analyze(file)
    assert found.operation("put").classed == "global"
    assert found.operation("find").read_only


@pytest.mark.slow
def test_the_store_is_classified_as_in_sql() -> None:
    ours, theirs = analyze(EXAMPLES / "store_core.py"), analyze(EXAMPLES / "store.py")
    assert [(o.name, o.classed, o.keys, o.refused) for o in ours.operations] == [
        (o.name, o.classed, o.keys, []) for o in theirs.operations
    ]


def test_the_store_runs() -> None:
    module = load(str(EXAMPLES / "store_core.py"))
    engine = sqlalchemy.create_engine("sqlite://")
    with engine.begin() as connection:
        module.metadata.create_all(connection)
        connection.execute(module.items.insert().values(id=1, name="book", stock=5))
        module.create(connection, 7)
        assert module.add(connection, 7, 1, 2)
        module.order(connection, 7)
        assert connection.execute(sqlalchemy.select(module.items.c.stock)).scalar_one() == 3
    engine.dispose()


def test_a_schema_that_is_not_certain_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "application.py"
    file.write_text(f"{HEAD}\ndef act(connection, p):\n    connection.execute(select(cart).where(cart.c.id == p))\n")
    with pytest.raises(UsageError, match="the Table stamped is not understood"):
        read(file, None)


SMALL = """
from sqlalchemy import Column, Index, Integer, MetaData, String, Table, func, insert, select

metadata = MetaData()
cart = Table("cart", metadata, Column("id", Integer, primary_key=True), Column("note", String))
"""


def test_the_schema_of_tables(tmp_path: Path) -> None:
    file = tmp_path / "application.py"
    file.write_text(f"{SMALL}\ndef act(connection, p):\n    connection.execute(insert(cart).values(note=p))\n")
    schema, (found,) = read(file, None)
    assert schema.tables["cart"].generated == "id"
    assert found.generated


@pytest.mark.parametrize(
    "more",
    [
        "Index('i', cart.c.note, unique=True)",
        "other = Table('other', metadata, Column('a', String(9, 'NOCASE')))",
        "other = Table('other', metadata, *columns)",
        "cart.append_constraint(something)",
    ],
)
def test_a_schema_of_tables_must_be_all_of_it(more: str, tmp_path: Path) -> None:
    file = tmp_path / "application.py"
    file.write_text(f"{SMALL}\n{more}\ndef act(connection, p):\n    connection.execute(insert(cart).values(note=p))\n")
    with pytest.raises(UsageError, match="not understood"):
        read(file, None)


def test_a_default_that_may_be_an_expression_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "application.py"
    body = "connection.execute(select(cart).where(cart.c.id == p))"
    file.write_text(f"{SMALL}\ndef act(connection, p=select(func.max(cart.c.id))):\n    {body}\n")
    assert read(file, None)[1][0].refusals

"""Python applications: which parameters flow into which SQL parameters, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.gyro.analysis import analyze, read
from plait.gyro.sql.terms import Constant, Generated, Parameter, Unknown
from plait.gyro.transactions import Transaction

SCHEMA = '''
SCHEMA = """
CREATE TABLE cart (id INTEGER PRIMARY KEY, owner INTEGER, note TEXT);
CREATE TABLE line (cart INTEGER, item INTEGER, amount INTEGER, PRIMARY KEY (cart, item));
"""
SQL = "SELECT note FROM cart WHERE id = 0"
TABLE = "cart"
BUILT = f"SELECT note FROM {TABLE} WHERE id = ?"
QUERIES = {"find": "SELECT note FROM cart WHERE id = ?", "drop": f"DELETE FROM {TABLE} WHERE id = ?"}
LISTED = ["SELECT note FROM cart WHERE id = ?", "DELETE FROM cart WHERE id = ?"]
'''


def transactions(folder: Path, source: str) -> dict[str, Transaction]:
    file = folder / "application.py"
    file.write_text(SCHEMA + source)
    return {t.name: t for t in read(file, None)[1]}


def only(folder: Path, body: str, parameters: str = "db, cart, other") -> Transaction:
    """A transaction with this body."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return transactions(folder, f"def act({parameters}):\n{lines}\n")["act"]


def bound(transaction: Transaction, statement: int = -1) -> list[object]:
    return list(transaction.statements[statement].bindings.values())


FLOWS = {
    "directly": "db.execute('SELECT note FROM cart WHERE id = ?', (cart,))",
    "list": "db.execute('SELECT note FROM cart WHERE id = ?', [cart])",
    "named": "db.execute('SELECT note FROM cart WHERE id = :c', {'c': cart})",
    "pyformat": "db.execute('SELECT note FROM cart WHERE id = %(c)s', {'c': cart})",
    "format": "db.execute('SELECT note FROM cart WHERE id = %s', (cart,))",
    "assigned": "x = cart\ny = x\ndb.execute('SELECT note FROM cart WHERE id = ?', (y,))",
    "tuple": "args = (cart,)\ndb.execute('SELECT note FROM cart WHERE id = ?', args)",
    "kept list": "args = [cart]\ndb.execute('SELECT note FROM cart WHERE id = ?', args)",
    "cursor": "cur = db.cursor()\ncur.execute('SELECT note FROM cart WHERE id = ?', (cart,))",
    "with": "with db.begin() as tx:\n    tx.execute('SELECT note FROM cart WHERE id = ?', (cart,))",
    "text": "db.execute(text('SELECT note FROM cart WHERE id = :c'), {'c': cart})",
    "bindparams": "db.execute(text('SELECT note FROM cart WHERE id = :c').bindparams(c=cart))",
    "equal branches": "if other:\n    x = cart\nelse:\n    x = cart\ndb.execute('SELECT note FROM cart WHERE id = ?', (x,))",
    "concatenated constants": "db.execute('SELECT note FROM cart ' + 'WHERE id = ?', (cart,))",
    "in a loop": "for i in other:\n    db.execute('SELECT note FROM cart WHERE id = ?', (cart,))",
    "unpacked": "x, y = cart, other\ndb.execute('SELECT note FROM cart WHERE id = ?', (x,))",
    "a dict of SQL": "db.execute(QUERIES['find'], (cart,))",
    "a list of SQL": "db.execute(LISTED[0], (cart,))",
    "an f-string of constants": "db.execute(f'SELECT note FROM {TABLE} WHERE id = ?', (cart,))",
    "an f-string at the top level": "db.execute(BUILT, (cart,))",
    "a loop over SQL": "for sql in LISTED:\n    db.execute(sql, (cart,))",
    "asyncpg": "db.fetch('SELECT note FROM cart WHERE id = $1', cart)",
    "asyncpg, a row": "x = db.fetchrow('SELECT note FROM cart WHERE id = $1', cart)",
    "a list of one row": "db.execute(text('SELECT note FROM cart WHERE id = :c'), [{'c': cart}])",
    "unknown connection": "with somewhere.acquire() as c:\n    c.execute('SELECT note FROM cart WHERE id = ?', (cart,))",
    "a row as a list": "return list(db.execute('SELECT note FROM cart WHERE id = ?', (cart,)).fetchone())",
    "rows sorted": "return sorted(db.execute('SELECT note FROM cart WHERE id = ?', (cart,)).fetchall(), key=str)",
    "rows of a comprehension": "db.executemany('DELETE FROM cart WHERE id = ?', [(cart,) for i in other])",
}


@pytest.mark.parametrize("body", FLOWS.values(), ids=FLOWS)
def test_parameters_flow(body: str, tmp_path: Path) -> None:
    found = only(tmp_path, body)
    assert found.refusals == []
    assert bound(found) == [Parameter("cart")]
    assert found.parameters == ("cart", "other")


LOST = {
    "computed": "db.execute('SELECT note FROM cart WHERE id = ?', (cart + 1,))",
    "converted": "db.execute('SELECT note FROM cart WHERE id = ?', (int(cart),))",
    "reassigned": "cart = cart or 1\ndb.execute('SELECT note FROM cart WHERE id = ?', (cart,))",
    "one branch": "x = cart\nif other:\n    x = other\ndb.execute('SELECT note FROM cart WHERE id = ?', (x,))",
    "later in a loop": "x = cart\nfor i in other:\n    db.execute('SELECT note FROM cart WHERE id = ?', (x,))\n    x = i",
    "while": "x = cart\nwhile x:\n    db.execute('SELECT note FROM cart WHERE id = ?', (x,))\n    x -= 1",
    "exception": "x = cart\ntry:\n    x = other\nexcept E: pass\ndb.execute('SELECT note FROM cart WHERE id = ?', (x,))",
    "finally": "x = cart\ntry:\n    x = other\nfinally:\n    db.execute('SELECT note FROM cart WHERE id = ?', (x,))",
    "changed list": "args = [cart]\nargs[0] = other\ndb.execute('SELECT note FROM cart WHERE id = ?', args)",
    "appended list": "args = []\nargs.append(cart)\ndb.execute('SELECT note FROM cart WHERE id = ?', args)",
    "walrus": "x = cart\nother and (x := other)\ndb.execute('SELECT note FROM cart WHERE id = ?', (x,))",
    "walrus in a comprehension": "x = cart\n[x := i for i in other]\ndb.execute('SELECT note FROM cart WHERE id = ?', (x,))",
    "global": "global x\nx = cart\ndb.execute('SELECT note FROM cart WHERE id = ?', (x,))",
    "match": "x = cart\nmatch other:\n    case [x]:\n        pass\ndb.execute('SELECT note FROM cart WHERE id = ?', (x,))",
    "read": "(x,) = db.execute('SELECT id FROM cart').fetchone()\ndb.execute('SELECT note FROM cart WHERE id = ?', (x,))",
    "deleted": "x = cart\ndel x\nx = other or cart\ndb.execute('SELECT note FROM cart WHERE id = ?', (x,))",
}


@pytest.mark.parametrize("body", LOST.values(), ids=LOST)
def test_what_is_not_certain_is_unknown(body: str, tmp_path: Path) -> None:
    found = only(tmp_path, body)
    assert found.refusals == []
    assert isinstance(bound(found)[0], Unknown)


REFUSED = {
    "f-string": ("db.execute(f'SELECT note FROM cart WHERE id = {cart}')", "an f-string"),
    "concatenated": ("db.execute('SELECT note FROM cart WHERE id = ' + cart)", "the string is built at run time"),
    "percent": ("db.execute('SELECT note FROM cart WHERE id = %s' % cart)", "the string is built at run time"),
    "parameter": ("db.execute(cart)", "a parameter"),
    "one of two": (
        "sql = 'SELECT 1'\nif cart:\n    sql = 'DELETE FROM cart'\ndb.execute(sql)",
        "differs between branches",
    ),
    "orm": ("db.add(Cart(cart))", "belongs to the ORM"),
    "passed": ("helper(db, cart)", "helper gets the connection"),
    "passed in a tuple": ("helper((db, cart))", "helper gets the connection"),
    "bound method": ("run = db.execute\nrun('DELETE FROM cart')", "is not called directly"),
    "imported here": ("from elsewhere import SQL\ndb.execute(SQL)", "is imported inside of the function"),
    "a helper that is imported here": ("from elsewhere import helper\nhelper(db)", "helper gets the connection"),
    "lambda": ("later = lambda: db.execute('DELETE FROM cart')", "a lambda"),
    "nested": ("def inner():\n    db.execute('DELETE FROM cart')\ninner()", "the nested function inner"),
    "unknown interface": ("somewhere.query('SELECT note FROM cart')", "somewhere.query gets SQL"),
    "unknown function": ("read_sql('DELETE FROM cart')", "read_sql gets SQL"),
    "f-string to anybody": ("read_sql(f'DELETE FROM cart WHERE id = {cart}')", "read_sql gets SQL"),
    "SQL beside a row": (
        "helper(list(db.execute('SELECT 1').fetchone()), 'DELETE FROM cart')",
        "helper gets SQL",
    ),
    "unparsable": ("db.execute('SELEKT * FROM cart')", ""),
    "ddl": ("db.execute('DROP TABLE cart')", "expected a query, INSERT"),
}


@pytest.mark.parametrize(("body", "reason"), REFUSED.values(), ids=REFUSED)
def test_unknown_sql_makes_a_transaction_global(body: str, reason: str, tmp_path: Path) -> None:
    """Transactions that write what it might read are global too."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    source = f"{SCHEMA}\ndef act(db, cart):\n{lines}\n"
    source += "\ndef put(db, cart):\n    db.execute('UPDATE cart SET note = 1 WHERE id = ?', (cart,))\n"
    source += "\ndef look(db, cart):\n    db.execute('SELECT note FROM cart WHERE id = ?', (cart,))\n"
    file = tmp_path / "application.py"
    file.write_text(source)
    found = analyze(file)
    assert {o.name: o.classed for o in found.operations} == {"act": "global", "put": "global", "look": "local"}
    assert reason in found.operation("act").refused[0]
    assert any("act" in warning for warning in found.warnings)
    assert "act (" in found.operation("put").blockers[0].change


def test_without_it_the_others_are_local(tmp_path: Path) -> None:
    found = only(tmp_path, "db.execute('UPDATE cart SET note = 1 WHERE id = ?', (cart,))")
    assert not found.refusals


def test_generated_ids_flow(tmp_path: Path) -> None:
    for body in (
        "x = db.execute('INSERT INTO cart (owner) VALUES (?)', (cart,)).lastrowid",
        "cur = db.cursor()\ncur.execute('INSERT INTO cart (owner) VALUES (?)', (cart,))\nx = cur.lastrowid",
        "x = db.execute('INSERT INTO cart (owner) VALUES (?) RETURNING id', (cart,)).fetchone()[0]",
        "x = db.execute('INSERT INTO cart (owner) VALUES (?) RETURNING id', (cart,)).scalar_one()",
    ):
        found = only(tmp_path, f"{body}\ndb.execute('INSERT INTO line (cart, item) VALUES (?, ?)', (x, other))")
        assert bound(found) == [Generated("cart.id", 0), Parameter("other")], body


def test_an_id_that_may_be_an_older_one_is_unknown(tmp_path: Path) -> None:
    for body in (
        "x = db.execute('INSERT OR IGNORE INTO cart (owner) VALUES (1)').lastrowid",
        "cur = db.cursor()\nif cart:\n    cur.execute('INSERT INTO cart (owner) VALUES (1)')\nx = cur.lastrowid",
        "cur = db.cursor()\ncur.execute('INSERT INTO cart (owner) VALUES (1)')\ncur.execute('SELECT 1')\nx = cur.lastrowid",
    ):
        found = only(tmp_path, f"{body}\ndb.execute('SELECT 1 FROM cart WHERE id = ?', (x,))")
        assert isinstance(bound(found)[0], Unknown), body


def test_helpers_are_followed(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(
        "QUERY = 'SELECT note FROM cart WHERE id = ?'\ndef look(db, number, *, sql=QUERY):\n"
        "    return db.execute(sql, (number,)).fetchone()\n"
    )
    found = transactions(
        tmp_path,
        "import tools\nfrom tools import look as peek\n"
        "def _helper(db, a, b):\n    if a:\n        return peek(db, b)\n    return tools.look(db, number=b)\n"
        "def act(db, cart):\n    return _helper(db, 1, cart)\n"
        "def recursive(db, cart):\n    db.execute('SELECT 1 FROM cart')\n    recursive(db, cart)\n"
        "def pure(x):\n    return x + 1\n",
    )
    assert found.keys() == {"act", "recursive"}
    assert [bound(found["act"], i) for i in (0, 1)] == [[Parameter("cart")]] * 2
    assert "calls itself" in found["recursive"].refusals[0].reason


def test_methods_and_packages(tmp_path: Path) -> None:
    package = tmp_path / "shop"
    package.mkdir()
    (package / "__init__.py").write_text("from .carts import Carts\n" + SCHEMA)
    (package / "carts.py").write_text(
        "class Carts:\n    def __init__(self, db):\n        self.db = db\n"
        "    def put(self, cart, note):\n        self._write('UPDATE cart SET note = ? WHERE id = ?', note, cart)\n"
        "    def _write(self, sql, note, cart):\n        self.db.execute(sql, (note, cart))\n"
        "    def leak(self, cart):\n        send(self.db)\n"
    )
    found = {t.name: t for t in read(package, None)[1]}
    assert bound(found["Carts.put"]) == [Parameter("note"), Parameter("cart")]
    assert found["Carts.put"].parameters == ("cart", "note")
    assert found["Carts.leak"].refusals


def test_all_names_the_transactions(tmp_path: Path) -> None:
    source = "__all__ = ['act']\ndef act(db, cart):\n    return other(db, cart)\n"
    source += "def other(db, cart):\n    db.execute('SELECT note FROM cart WHERE id = ?', (cart,))\n"
    assert transactions(tmp_path, source).keys() == {"act"}


def test_literals_of_the_code_are_constants(tmp_path: Path) -> None:
    found = only(tmp_path, "kind = 'open'\ndb.execute('SELECT id FROM cart WHERE note = ? AND owner = ?', (kind, 3))")
    assert bound(found) == [Constant("open"), Constant(3)]
    found = only(tmp_path, "db.execute('SELECT id FROM cart WHERE note = ? AND owner = ?', (True, 1.5))")
    assert all(isinstance(b, Unknown) for b in bound(found))


def test_nothing_is_imported_or_run(tmp_path: Path) -> None:
    source = (
        "raise SystemExit('run')\ndef act(db, cart):\n    db.execute('SELECT note FROM cart WHERE id = ?', (cart,))\n"
    )
    assert transactions(tmp_path, source).keys() == {"act"}


def test_a_constant_that_is_imported_over_is_none(tmp_path: Path) -> None:
    (found,) = transactions(tmp_path, "from elsewhere import SQL\ndef act(db):\n    db.execute(SQL)\n").values()
    assert found.refusals


CHANGED = {
    "an element": "QUERIES['find'] = other\ndb.execute(QUERIES['find'], (cart,))",
    "a method": "QUERIES.update(other)\ndb.execute(QUERIES['find'], (cart,))",
    "another name": "mine = QUERIES\nmine['find'] = other\ndb.execute(QUERIES['find'], (cart,))",
    "a call": "change(QUERIES)\ndb.execute(QUERIES['find'], (cart,))",
    "a deleted element": "del LISTED[0]\ndb.execute(LISTED[0], (cart,))",
    "a missing key": "db.execute(QUERIES['lost'], (cart,))",
    "a computed key": "db.execute(QUERIES[other], (cart,))",
    "a format": "db.execute(f'SELECT note FROM {TABLE!r} WHERE id = ?', (cart,))",
    "a value": "db.execute(f'SELECT note FROM cart WHERE id = {cart}')",
}


@pytest.mark.parametrize("body", CHANGED.values(), ids=CHANGED)
def test_sql_of_a_container_that_may_change_is_refused(body: str, tmp_path: Path) -> None:
    assert only(tmp_path, body).refusals != []


def test_every_statement_of_a_list_is_found(tmp_path: Path) -> None:
    found = only(tmp_path, "for sql in LISTED:\n    db.execute(sql, (cart,))")
    assert [s.sql.split()[0] for s in found.statements] == ["SELECT", "DELETE"]


def test_constants_of_another_module(tmp_path: Path) -> None:
    (tmp_path / "queries.py").write_text('SQL = "SELECT note FROM cart WHERE id = ?"\nALL = {"find": SQL}\n')
    body = "import queries\nfrom queries import ALL\n"
    body += "def one(db, cart):\n    db.execute(queries.SQL, (cart,))\n"
    body += "def two(db, cart):\n    db.execute(ALL['find'], (cart,))\n"
    body += "def three(db, cart):\n    db.execute(queries.ALL['find'], (cart,))\n"
    assert all(not t.refusals for t in transactions(tmp_path, body).values())
    changed = transactions(tmp_path, body + "def four(cart):\n    queries.ALL.clear()\n    queries.SQL = cart\n")
    assert all(t.refusals for t in changed.values())

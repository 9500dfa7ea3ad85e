"""`plait gyro analyze`: what it prints, and what it says about bad input."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from plait.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "examples" / "gyro"
DDL = "CREATE TABLE cart (id INTEGER PRIMARY KEY, note TEXT);\n"
ACT = "def act(db, cart):\n    db.execute('UPDATE cart SET note = 1 WHERE id = ?', (cart,))\n"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["gyro", "analyze", *arguments])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return code, captured.out, captured.err


@pytest.mark.slow
def test_text(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, str(EXAMPLES / "store.py"))
    assert (code, err) == (0, "")
    assert out.startswith("2 local, 1 global, 0 local/global  in ")
    assert re.search(r"^  order +global +cart +add reads items \(stock\) at another server", out, re.MULTILINE)
    assert "to change that: do not select items.stock in add" in out
    assert max(map(len, out.splitlines())) <= 120


@pytest.mark.slow
def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, str(EXAMPLES / "tpcw.py"), "--json")
    assert code == 0
    found = json.loads(out)
    assert [o["class"] for o in found["operations"]].count("local") == 15
    cart = next(o for o in found["operations"] if o["name"] == "do_cart")
    assert (cart["keys"], cart["kinds"]["cart_id"]) == (["cart_id"], "number")
    assert {"table", "attributes", "condition", "role", "place", "digest"} == set(cart["writes"][0])
    assert cart["columns"]["cart_id"]["shopping_cart.sc_id"] == "INTEGER"
    remaining = {(c["writer"], c["other"]) for c in found["conflicts"] if not c["local"]}
    assert ("refresh_session", "get_customer") in remaining
    assert not any(writer == "do_cart" for writer, _ in remaining)


@pytest.mark.slow
def test_html(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    code, _, err = run(capsys, str(EXAMPLES / "rubis.py"), "--html", str(page))
    assert code == 0
    assert f"report: {page}" in err
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"(src|href)=\"(?!data:)", text), "it needs nothing else"
    for name in ("store_bid", "my_bids", "close_auction"):
        assert f'data-name="{name}"' in text
    edges = re.findall(r'class="conflict (\w+)" data-writer="(\w+)" data-other="(\w+)"', text)
    assert ("remains", "close_auction", "search_items_in_category") in edges
    assert ("local", "store_comment", "view_comments") in edges


def test_names_are_escaped(capsys: pytest.CaptureFixture[str], workplace: Path) -> None:
    Path("a.yaml").write_text(
        f"schema: |\n  {DDL}transactions:\n  <b>&:\n    parameters: [c]\n"
        "    statements: [\"UPDATE cart SET note = '<i>' WHERE id = :c\"]\n"
    )
    assert run(capsys, "a.yaml", "--html", "a.html")[0] == 0
    text = Path("a.html").read_text()
    assert "<b>&" not in text
    assert "<i>" not in text


@pytest.mark.slow
def test_a_search_says_that_it_is_one(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from plait.gyro import analysis, search

    monkeypatch.setattr(analysis, "partition", lambda *a, **k: search.partition(*a, **{**k, "budget": 100}))
    code, out, _ = run(capsys, str(EXAMPLES / "rubis.py"))
    assert code == 0
    assert "that was found; not all 512 were tried" in out
    assert out.startswith("21 local, 3 global, 2 local/global")


def test_dynamic_sql_is_a_warning(capsys: pytest.CaptureFixture[str], workplace: Path) -> None:
    Path("a.py").write_text(f"SCHEMA = '''{DDL}'''\n{ACT}def wild(db, q):\n    db.execute(f'DELETE FROM cart {{q}}')\n")
    code, out, _ = run(capsys, "a.py", "--html", "a.html")
    assert code == 0
    assert out.startswith("0 local, 2 global")
    advice = "to change that: write the statement as a constant string, with placeholders for values"
    assert out.count(advice) == 1
    assert advice in Path("a.html").read_text()
    assert "warning: a.py:6: the SQL of wild is not known: the statement is not a constant: an f-string" in out


def files(**content: str) -> None:
    for name, text in content.items():
        stem, _, suffix = name.rpartition("_")
        Path(f"{stem}.{suffix}").write_text(text)


BAD: dict[str, tuple[dict[str, str], list[str], str, str]] = {
    "no application": ({}, ["nowhere.py"], "no application nowhere.py", "give a Python file"),
    "no schema": ({"a_py": ACT}, ["a.py"], "a.py: no schema", "--schema FILE"),
    "no such schema": ({"a_py": ACT}, ["a.py", "--schema", "x.sql"], "the schema x.sql cannot be read", "DDL"),
    "bad schema": (
        {"a_py": ACT, "s_sql": "CREATE TABLE ("},
        ["a.py", "--schema", "s.sql"],
        "cannot be parsed",
        "--dialect",
    ),
    "empty schema": ({"a_py": ACT, "s_sql": "-- nothing"}, ["a.py", "--schema", "s.sql"], "no CREATE TABLE", "DDL"),
    "altered schema": (
        {"a_py": ACT, "s_sql": f"{DDL}ALTER TABLE cart ADD COLUMN x INT;"},
        ["a.py", "--schema", "s.sql"],
        "ALTER and DROP are not supported",
        "final tables",
    ),
    "no transactions": ({"a_py": f"SCHEMA = '''{DDL}'''\n"}, ["a.py"], "a.py has no transactions", "public function"),
    "syntax error": ({"a_py": "def (:\n"}, ["a.py"], "a.py:1:", "correct the Python code"),
    "missing table": (
        {"a_py": ACT, "s_sql": "CREATE TABLE x (id INT)"},
        ["a.py", "--schema", "s.sql"],
        "no table cart",
        "x",
    ),
    "unknown column": (
        {"a_py": ACT.replace("note", "nute"), "s_sql": DDL},
        ["a.py", "--schema", "s.sql"],
        "a.py:2: cart has no column nute",
        "id, note",
    ),
    "unknown column in WHERE": (
        {"a_py": ACT.replace("id =", "di ="), "s_sql": DDL},
        ["a.py", "--schema", "s.sql"],
        "a.py:2: no column di (in cart)",
        "correct the statement",
    ),
    "ambiguous column": (
        {"s_sql": f"{DDL}-- transaction: t()\nSELECT id FROM cart AS a, cart AS b;"},
        ["s.sql"],
        "column id is ambiguous",
        "a.id",
    ),
    "too few values": (
        {"a_py": ACT.replace("(cart,)", "()"), "s_sql": DDL},
        ["a.py", "--schema", "s.sql"],
        "no value for the placeholder '1'",
        "one value for each placeholder",
    ),
    "too few columns": (
        {"s_sql": f"{DDL}-- transaction: t()\nINSERT INTO cart (id) VALUES (1, 2);"},
        ["s.sql"],
        "2 values for 1 columns",
        "one value for each column",
    ),
    "unknown parameter": (
        {"s_sql": f"{DDL}-- transaction: t(c)\nSELECT note FROM cart WHERE id = :d;"},
        ["s.sql"],
        "s.sql:3: :d is neither a parameter",
        "known names: c",
    ),
    "bad header": (
        {"s_sql": f"{DDL}-- transaction: t c\nSELECT 1;"},
        ["s.sql"],
        "s.sql:2: expected a name",
        "add(cart, item)",
    ),
    "no statements": ({"s_sql": f"{DDL}-- transaction: t(c)\n"}, ["s.sql"], "t has no statements", "below"),
    "same name twice": (
        {"s_sql": f"{DDL}-- transaction: t()\nSELECT 1;\n-- transaction: t()\nSELECT 2;"},
        ["s.sql"],
        "two transactions have the name t",
        "rename",
    ),
    "not YAML": ({"a_yaml": "a: [1"}, ["a.yaml"], "a.yaml is not YAML", "correct"),
    "other YAML": ({"a_yaml": "[1, 2]"}, ["a.yaml"], "expected a mapping with `transactions`", "docs/guides/gyro.md"),
    "YAML without schema": (
        {"a_yaml": "transactions: {t: {statements: [SELECT 1]}}"},
        ["a.yaml"],
        "a.yaml has no schema",
        "--schema",
    ),
    "YAML, missing schema": (
        {"a_yaml": "schema: s.sql\ntransactions: {t: {statements: [SELECT 1]}}"},
        ["a.yaml"],
        "no schema file s.sql",
        "DDL",
    ),
    "YAML, odd key": (
        {"a_yaml": "transactions: {t: {sql: SELECT 1}}", "s_sql": DDL},
        ["a.yaml", "--schema", "s.sql"],
        "expected the keys parameters, statements, constants and weight",
        "docs",
    ),
    "YAML, bad weight": (
        {"a_yaml": "transactions: {t: {statements: [SELECT 1], weight: -1}}", "s_sql": DDL},
        ["a.yaml", "--schema", "s.sql"],
        "weight -1 is not a weight",
        "at least 0",
    ),
    "no such weights": (
        {"a_py": ACT, "s_sql": DDL},
        ["a.py", "--schema", "s.sql", "--weights", "w"],
        "w cannot be read",
        "order: 3",
    ),
    "other ending": ({"a_txt": "x"}, ["a.txt"], "a.txt: expected a Python file", "docs"),
    "report in no folder": (
        {"a_py": ACT},
        ["a.py", "--html", "x/y.html"],
        "--html: x/y.html cannot be written",
        "folder",
    ),
    "no server": (
        {"a_py": ACT, "s_sql": DDL},
        ["a.py", "--schema", "s.sql", "--servers", "1"],
        "--servers 1: expected at least 2",
        "needs two servers",
    ),
    "dialect": ({"a_py": ACT}, ["a.py", "--dialect", "oracle"], "oracle", "plait gyro analyze --help"),
}


@pytest.mark.parametrize(("content", "arguments", "message", "hint"), BAD.values(), ids=BAD)
def test_bad_input(
    content: dict[str, str],
    arguments: list[str],
    message: str,
    hint: str,
    capsys: pytest.CaptureFixture[str],
    workplace: Path,
) -> None:
    files(**content)
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    error, _, said = err.partition("hint: ")
    assert message in error
    assert hint in said


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ("act: -1", "act: -1 is not a weight"),
        ("act: many", "act: 'many' is not a weight"),
        ("act: .inf", "act: inf is not a weight"),
        ("act: true", "act: True is not a weight"),
        ("buy: 1", "no transaction buy"),
        ("3", "expected a number for each transaction"),
        ("a: [", "cannot be read"),
    ],
)
def test_bad_weights(weights: str, message: str, capsys: pytest.CaptureFixture[str], workplace: Path) -> None:
    files(a_py=ACT, s_sql=DDL, w_yaml=weights)
    code, _, err = run(capsys, "a.py", "--schema", "s.sql", "--weights", "w.yaml")
    assert code == 2
    assert message in err


def test_weights_that_are_missing_are_said(capsys: pytest.CaptureFixture[str], workplace: Path) -> None:
    files(a_py=ACT + ACT.replace("act", "other"), s_sql=DDL, w_yaml="act: 2.5")
    code, out, _ = run(capsys, "a.py", "--schema", "s.sql", "--weights", "w.yaml", "--json")
    assert code == 0
    assert [o["weight"] for o in json.loads(out)["operations"]] == [2.5, 1]
    assert json.loads(out)["warnings"] == ["w.yaml has no weight for other: the weight is 1"]

"""The published classifications: figure 4 and Table 1 of Saissi 2019. They come out of the analysis of real code."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path
from types import ModuleType

import pytest

from plait.gyro.analysis import analyze
from plait.kernel.classification import Classification

EXAMPLES = Path(__file__).parents[2] / "examples" / "gyro"


def counts(found: Classification) -> tuple[int, int, int]:
    return found.count("local"), found.count("global"), found.count("local/global")


def names(found: Classification, classed: str) -> set[str]:
    return {o.name for o in found.operations if o.classed == classed}


@pytest.fixture(scope="module")
def tpcw() -> Classification:
    return analyze(EXAMPLES / "tpcw.py")


@pytest.fixture(scope="module")
def rubis() -> Classification:
    return analyze(EXAMPLES / "rubis.py")


def test_the_online_store() -> None:
    """Figure 4: orders are global, all else is local; operations are partitioned by the cart."""
    found = analyze(EXAMPLES / "store.py")
    assert {o.name: o.classed for o in found.operations} == {"create": "local", "add": "local", "order": "global"}
    assert all(o.keys == ["cart"] for o in found.operations)
    blockers = {(b.other, b.kind, b.table) for b in found.operation("order").blockers}
    assert blockers == {("add", "reads", "items"), ("order", "reads", "items"), ("order", "writes", "items")}


@pytest.mark.slow
def test_the_online_store_as_lists() -> None:
    """The same store in YAML and in SQL."""
    for name in ("store.yaml", "store_listed.sql"):
        found = analyze(EXAMPLES / name)
        assert {o.name: o.classed for o in found.operations} == {"create": "local", "add": "local", "order": "global"}


@pytest.mark.slow
def test_tpcw(tpcw: Classification) -> None:
    """Table 1: 20 transactions, 13 of them read-only; 15 local and 5 global. Ordering and administration are global."""
    assert len(tpcw.operations) == 20
    assert sum(o.read_only for o in tpcw.operations) == 13
    assert counts(tpcw) == (15, 5, 0)
    assert {"buy_confirm", "buy_confirm_ship_to", "admin_update"} <= names(tpcw, "global")
    assert tpcw.operation("do_cart").keys == tpcw.operation("get_cart").keys == ["cart_id"]
    assert tpcw.operation("create_empty_cart").generated == ["shopping_cart.sc_id"]
    assert tpcw.exhaustive


@pytest.mark.slow
def test_tpcw_with_counted_ids() -> None:
    """A cart whose number is the number of carts may be anybody's: nothing that writes is local any more."""
    found = analyze(EXAMPLES / "tpcw_counted.py")
    assert (len(found.operations), sum(o.read_only for o in found.operations)) == (20, 13)
    assert counts(found) == (13, 7, 0)
    assert names(found, "local") == {o.name for o in found.operations if o.read_only}
    change = found.operation("do_cart").blockers[0].change
    assert "let the server generate shopping_cart.sc_id in create_empty_cart, or make it a parameter" in change
    assert "COUNT(*)" in change


@pytest.mark.slow
def test_tpcw_with_ids_of_the_table(tpcw: Classification) -> None:
    """Without server-specific ranges, an id that is left out is a MAX by another name."""
    found = analyze(EXAMPLES / "tpcw.py", ids="table")
    assert counts(found) == (13, 7, 0)


Reason = set[tuple[str, str, str]]
"""Why a transaction needs coordination: (other transaction, what it does, table). Empty if it needs none."""

_ORDERED: Reason = {
    ("buy_confirm", "writes", "item"),
    ("get_best_sellers", "reads", "orders"),
    ("get_book", "reads", "item"),
}
TPCW: dict[str, tuple[str, list[str], Reason]] = {
    "create_empty_cart": ("local", [], set()),
    "do_cart": ("local", ["cart_id"], set()),
    "refresh_session": ("global", ["customer_id"], {("get_customer", "reads", "customer")}),
    "create_new_customer": (
        "global", [], {("create_new_customer", "reads", "address"), ("get_password", "reads", "customer")}
    ),
    "buy_confirm": ("global", ["cart_id"], _ORDERED),
    "buy_confirm_ship_to": ("global", ["cart_id"], {*_ORDERED, ("create_new_customer", "reads", "address")}),
    "admin_update": ("global", ["item_id"], {("do_subject_search", "reads", "item"), ("get_related", "reads", "item")}),
}  # fmt: skip
"""The transactions of TPC-W that write: class, keys, and reasons among others. All others are read-only and local."""
RUBIS: dict[str, tuple[str, list[str], Reason]] = {
    "store_comment": ("local", ["user"], set()),
    "store_bid": ("local/global", ["item", "user"], {("my_bids", "reads", "bids"), ("my_won_items", "reads", "bids")}),
    "register_item": ("local/global", ["category", "user"], {("my_sales", "reads", "items")}),
    "register_user": ("global", ["nickname"], {("search_items_in_region", "reads", "users")}),
    "store_buy_now": (
        "global", ["item"], {("search_items_in_category", "reads", "items"), ("my_purchases", "reads", "buy_now")}
    ),
    "close_auction": (
        "global", ["item"], {("close_auction", "writes", "old_items"), ("view_old_item", "reads", "old_items")}
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("name", "expected"), [("tpcw", TPCW), ("rubis", RUBIS)], ids=["TPC-W", "RUBiS"])
def test_the_class_of_each_transaction(
    name: str, expected: dict[str, tuple[str, list[str], Reason]], request: pytest.FixtureRequest
) -> None:
    """The tables of docs/guides/gyro.md, one transaction after the other."""
    found: Classification = request.getfixturevalue(name)
    assert {o.name for o in found.operations if not o.read_only} == set(expected)
    assert all(o.classed == "local" and not o.blockers for o in found.operations if o.read_only)
    guide = (EXAMPLES.parents[1] / "docs" / "guides" / "gyro.md").read_text(encoding="utf-8")
    for writer, (classed, keys, reasons) in expected.items():
        operation = found.operation(writer)
        blockers = {(b.other, str(b.kind), b.table) for b in operation.blockers}
        assert (operation.classed, operation.keys) == (classed, keys), writer
        assert reasons <= blockers, writer
        assert bool(blockers) == bool(reasons), writer
        assert f"| `{writer}` | {classed} |" in guide


@pytest.mark.slow
def test_rubis(rubis: Classification, monkeypatch: pytest.MonkeyPatch) -> None:
    """26 transactions for the 26 interactions of the benchmark, of which 5 write."""
    site, _ = load("rubis", monkeypatch)
    assert (len(rubis.operations), len(site.INTERACTIONS)) == (26, 26)
    used = {name for names in site.INTERACTIONS.values() for name in names}
    assert {o.name for o in rubis.operations} - used == {"close_auction"}
    writing = {i for i, names in site.INTERACTIONS.items() if any(not rubis.operation(n).read_only for n in names)}
    assert writing == {"Register user", "Register item", "Store bid", "Store buy now", "Store comment"}
    assert rubis.operation("my_bids").keys == ["user"]
    assert rubis.operation("view_bid_history").keys == ["item"]
    assert counts(rubis) == (21, 3, 2)


@pytest.mark.slow
def test_buying_that_does_not_end_an_auction_has_two_keys(tmp_path: Path) -> None:
    """Saissi 2019 has buying among the transactions with two keys. Ours is global because it may end the auction."""
    code = (EXAMPLES / "rubis.py").read_text()
    changed = code.replace("SET quantity = 0, end_date = CURRENT_TIMESTAMP", "SET quantity = 0")
    assert changed != code
    (tmp_path / "rubis.py").write_text(changed)
    found = analyze(tmp_path / "rubis.py")
    assert found.operation("store_buy_now").classed == "local/global"
    assert set(found.operation("store_buy_now").keys) == {"item", "user"}


@pytest.mark.slow
def test_a_change_that_is_proposed_does_what_it_says(tpcw: Classification, tmp_path: Path) -> None:
    """TPC-W: refreshing a session is local if c_login and c_expiration are not selected by another column."""
    blockers = tpcw.operation("refresh_session").blockers
    assert {b.other for b in blockers} == {"get_customer", "get_most_recent_order"}
    assert all(b.change.startswith("do not select customer.c_expiration, c_login in ") for b in blockers)
    code = (EXAMPLES / "tpcw.py").read_text()
    fewer = "c_id, c_uname, c_fname, c_lname, c_discount, address.*, co_name"
    changed = code.replace("SELECT * FROM customer, address", f"SELECT {fewer} FROM customer, address")
    changed = changed.replace("orders.*, customer.*,", "orders.*, customer.c_fname,")
    assert changed != code
    (tmp_path / "tpcw.py").write_text(changed)
    assert names(tpcw, "global") - names(analyze(tmp_path / "tpcw.py"), "global") == {"refresh_session"}


@pytest.mark.slow
def test_weights_decide(tmp_path: Path) -> None:
    """Two keys are possible; what is called more often is made local."""
    ddl = "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, n INTEGER);"
    (tmp_path / "app.sql").write_text(
        f"{ddl}\n-- transaction: write(a, b)\nUPDATE t SET n = n + 1 WHERE a = :a AND b = :b;\n"
        "-- transaction: by_a(a)\nUPDATE t SET n = 0 WHERE a = :a;\n"
        "-- transaction: by_b(b)\nUPDATE t SET n = 1 WHERE b = :b;\n"
    )
    for heavy, light in (("by_a", "by_b"), ("by_b", "by_a")):
        found = analyze(tmp_path / "app.sql", weights={heavy: 10, light: 1, "write": 1})
        assert found.operation("write").keys[0] == heavy[-1]


# -- the case studies are programs that run ----------------------------------------------------------------------------


def load(name: str, monkeypatch: pytest.MonkeyPatch) -> tuple[ModuleType, sqlite3.Connection]:
    import importlib

    monkeypatch.syspath_prepend(str(EXAMPLES))
    sys.modules.pop(name, None)
    module = importlib.import_module(name)
    database = sqlite3.connect(":memory:")
    database.row_factory = sqlite3.Row
    database.executescript(module.SCHEMA)
    return module, database


@pytest.mark.parametrize("name", ["tpcw", "tpcw_counted"])
def test_tpcw_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shop, db = load(name, monkeypatch)
    db.executescript(
        "INSERT INTO country VALUES (1, 'Utopia', 1, 'U'); INSERT INTO author (a_id, a_lname) VALUES (1, 'More');"
        "INSERT INTO address (addr_id, addr_co_id) VALUES (0, 1); INSERT INTO customer (c_id, c_addr_id) VALUES (0, 0);"
        "INSERT INTO orders (o_id) VALUES (0);"
    )
    for i in range(100):
        db.execute(
            "INSERT INTO item (i_id, i_title, i_a_id, i_subject, i_cost, i_stock, i_related1) "
            "VALUES (?, ?, 1, 'ARTS', 5, 30, 7)",
            (i, f"Book {i}"),
        )
    customer, user = shop.create_new_customer(db, "T", "M", ("1", "2", "3", "4", "5", "Utopia"), "0", "@", "d", "x", 0)
    cart = shop.create_empty_cart(db)
    assert len(shop.do_cart(db, cart, None, [])) == 1
    shop.do_cart(db, cart, 3, [(7, 0)])
    assert [(r["i_id"], r["scl_qty"]) for r in shop.get_cart(db, cart)] == [(3, 1)]
    order = shop.buy_confirm(db, cart, customer, "VISA", "1", "n", "e", "AIR")
    assert shop.get_cart(db, cart) == []
    assert shop.get_most_recent_order(db, user)[0]["o_id"] == order
    assert shop.get_book(db, 3)["i_stock"] == 29
    shop.do_cart(db, cart, 4, [])
    shop.buy_confirm_ship_to(db, cart, customer, "VISA", "1", "n", "e", "AIR", ("9", "2", "3", "4", "5", "Utopia"))
    assert {r["i_id"] for r in shop.get_best_sellers(db, "ARTS")} == {3, 4}
    shop.refresh_session(db, customer)
    shop.admin_update(db, 3, 6, "i", "t")
    assert shop.get_book(db, 3)["i_cost"] == 6
    assert shop.get_customer(db, user)["c_id"] == customer
    assert shop.get_user_name(db, customer)[0] == user
    assert shop.get_password(db, user)[0] == user.lower()
    assert shop.get_name(db, customer)["c_lname"] == "M"
    assert len(shop.do_subject_search(db, "ARTS")) == len(shop.get_new_products(db, "ARTS")) == 50
    assert len(shop.do_title_search(db, "Book 1_")) == 10
    assert len(shop.do_author_search(db, "M%")) == 50
    assert shop.get_related(db, 5)[0]["i_id"] == 7


def test_rubis_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    site, db = load("rubis", monkeypatch)
    db.executescript("INSERT INTO regions VALUES (1, 'North'); INSERT INTO categories VALUES (1, 'Toys');")
    seller = site.register_user(db, "A", "B", "ab", "p", "@", "North")
    buyer = site.register_user(db, "C", "D", "cd", "p", "@", "North")
    with pytest.raises(sqlite3.IntegrityError):
        site.register_user(db, "C", "D", "cd", "p", "@", "North")
    item = site.register_item(db, seller, 1, "Kite", "red", 5, 6, 20, 2, "2999-01-01")
    assert site.store_bid(db, item, buyer, 7, 9, 1)
    assert not site.store_bid(db, 99, buyer, 7, 9, 1)
    assert site.view_item(db, item)["max_bid"] == 7
    assert (
        len(site.view_bid_history(db, item))
        == len(site.my_bids(db, buyer))
        == len(site.get_greatest_bids(db, item, 3))
        == 1
    )
    assert site.view_item(db, item)["nb_of_bids"] == 1
    assert [tuple(row) for row in site.bid_details(db, item)] == [("Kite", seller, 5, 7, 2), (1, 7)]
    assert tuple(site.buy_now_details(db, item)) == ("Kite", seller, 20, 2)
    assert tuple(site.item_name(db, item)) == ("Kite",)
    region, categories = site.browse_categories_in_region(db, "North")
    assert (region[0], len(categories)) == (1, 1)
    assert len(site.search_items_in_category(db, 1)) == len(site.search_items_in_region(db, 1, 1)) == 1
    assert site.store_buy_now(db, item, buyer, 1)
    assert site.store_buy_now(db, item, buyer, 1)
    assert not site.store_buy_now(db, item, buyer, 1)
    assert len(site.my_purchases(db, buyer)) == 2
    site.store_comment(db, buyer, seller, item, 5, "fine")
    assert site.view_user(db, seller)["rating"] == 5
    assert len(site.view_comments(db, seller)) == 1
    site.close_auction(db, item)
    assert site.view_item(db, item) is None
    assert site.view_old_item(db, item)["id"] == item
    assert [row["name"] for row in site.my_won_items(db, buyer)] == ["Kite"]
    assert site.my_won_items(db, seller) == []
    assert (len(site.my_sales(db, seller)), len(site.my_old_sales(db, seller))) == (0, 1)
    assert site.authenticate(db, "cd", "p")[0] == buyer
    assert len(site.browse_categories(db)) == len(site.browse_regions(db)) == 1


def test_the_store_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    store, db = load("store", monkeypatch)
    db.execute("INSERT INTO items VALUES (1, 'pen', 3)")
    store.create(db, 7)
    assert store.add(db, 7, 1, 2)
    assert not store.add(db, 7, 1, 4)
    store.order(db, 7)
    assert db.execute("SELECT stock FROM items").fetchone()[0] == 1

"""The workloads of clients: TPC-W's shopping mix, RUBiS' bidding mix, and operations that only take time.

A mix is a distribution of web pages, with the published shares. Each page calls its transactions. A client stays near
one server: its cart, its customer and its user have ids of that server.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterator
from typing import Any

Step = tuple[str, dict[str, Any]]
Send = Callable[[str, dict[str, Any]], Any]
ITEMS, CUSTOMERS, USERS, CATEGORIES = 500, 500, 500, 20
_SUBJECTS = ("ARTS", "COOKING", "HISTORY", "SCIENCE", "TRAVEL")


@dataclasses.dataclass
class Session:
    """A client: its nearest server, its random numbers and its cart."""

    near: int
    servers: int
    random: random.Random
    cart: int | None = None

    def own(self, count: int) -> int:
        """A random id up to `count` that belongs to the nearest server."""
        found = self.random.randrange(count // self.servers) * self.servers + self.near
        return found if found else self.servers * (count // self.servers)

    def any(self, count: int) -> int:
        """A random id of any server."""
        return self.random.randrange(1, count + 1)


@dataclasses.dataclass(frozen=True)
class Workload:
    """An application, its initial rows, and the pages that clients call."""

    name: str
    application: str
    data: str
    page: Callable[[Session, Send], None]
    """Calls the transactions of one page."""
    partitions: dict[str, str] = dataclasses.field(default_factory=dict)
    """For the baseline with partitioned data: tables and the columns by which they are partitioned."""


TPCW_PARTITIONS = {
    "shopping_cart": "sc_id", "shopping_cart_line": "scl_sc_id", "customer": "c_id", "orders": "o_id",
    "order_line": "ol_o_id", "cc_xacts": "cx_o_id",
}  # fmt: skip
"""By customer and by cart, as in Saissi 2019, section 2.8.1, and by order. All servers have items, authors and addresses."""
RUBIS_PARTITIONS = {"items": "id", "old_items": "id", "bids": "item_id", "buy_now": "item_id", "comments": "to_user_id"}
"""By item, and comments by user. All servers have users, because no server alone could check that names are unique."""


def tpcw_data() -> str:
    """A small bookstore."""
    lines = ["INSERT INTO country VALUES (1, 'Germany', 1, 'EUR'), (2, 'Japan', 1, 'JPY');"]
    lines += _rows("author", ((n, f"F{n}", f"L{n % 50}", "", "1950-01-01", "bio") for n in range(1, ITEMS // 4 + 1)))
    lines += _rows(
        "address", ((n, f"{n} street", "", "city", "state", "123", 1 + n % 2) for n in range(1, CUSTOMERS + 1))
    )
    lines += _rows(
        "customer",
        (
            (n, f"U{n}", f"u{n}", f"F{n}", f"L{n}", n, "1", "e", *["2020-01-01"] * 4, 5, 0, 0, "1980-01-01", "data")
            for n in range(1, CUSTOMERS + 1)
        ),
    )  # fmt: skip
    lines += _rows(
        "item",
        (
            (n, f"Title {n % 97}", 1 + n % (ITEMS // 4), "2020-01-01", "publisher", _SUBJECTS[n % 5], "about",
             *((n * k) % ITEMS + 1 for k in range(2, 7)), "t.gif", "i.gif", 20.0, 10.0, "2020-01-01", 1000,
             f"{n}", 100, "PAPER", "1x1")
            for n in range(1, ITEMS + 1)
        ),
    )  # fmt: skip
    lines += [
        "INSERT INTO item (i_id, i_title, i_a_id, i_related1, i_stock, i_cost) VALUES (0, 'none', 1, 1, 1000, 1.0);"
    ]
    lines += _rows(
        "orders", ((n, n, "2020-01-01", 10.0, 1.0, 11.0, "AIR", "2020-01-02", n, n, "SHIPPED") for n in range(1, 301))
    )
    lines += _rows("order_line", ((1, n, 1 + (n * 7) % ITEMS, 2, 0.0, "") for n in range(1, 301)))
    lines += _rows("cc_xacts", ((n, "VISA", "1", "x", "2030", "a", 11.0, "2020-01-01", 1) for n in range(1, 301)))
    return "\n".join(lines)


def tpcw_page(client: Session, send: Send) -> None:
    """A page of the shopping mix."""
    pick = client.random.random
    page = client.random.choices(list(_SHOPPING), weights=list(_SHOPPING.values()))[0]
    subject = {"subject": client.random.choice(_SUBJECTS)}
    if page == "home":
        send("get_name", {"customer_id": client.own(CUSTOMERS)})
        send("get_related", {"item_id": client.any(ITEMS)})
    elif page == "new products":
        send("get_new_products", subject)
    elif page == "best sellers":
        send("get_best_sellers", subject)
    elif page in ("product detail", "admin request"):
        send("get_book", {"item_id": client.any(ITEMS)})
    elif page == "search request":
        send("get_related", {"item_id": client.any(ITEMS)})
    elif page == "search results":
        kind = client.random.randrange(3)
        if kind == 0:
            send("do_subject_search", subject)
        elif kind == 1:
            send("do_title_search", {"title": f"Title {client.random.randrange(97)}"})
        else:
            send("do_author_search", {"author": f"L{client.random.randrange(50)}"})
    elif page == "shopping cart":
        _cart(client, send)
    elif page == "customer registration":
        send("get_user_name", {"customer_id": client.own(CUSTOMERS)})
    elif page == "buy request":
        if pick() < 0.2:
            address = ["s", "", "c", "s", f"{client.random.randrange(10**6)}", "Germany"]
            given: dict[str, Any] = {"first": "a", "last": "b", "address": address, "phone": "1", "email": "e"}
            send("create_new_customer", given | {"birthdate": "1990-01-01", "data": "d", "discount": 0})
        else:
            number = client.own(CUSTOMERS)
            send("get_customer", {"user_name": f"U{number}"})
            send("refresh_session", {"customer_id": number})
        send("get_cart", {"cart_id": client.cart or client.own(CUSTOMERS)})
    elif page == "buy confirm":
        cart = _cart(client, send)
        given = {"cart_id": cart, "customer_id": client.own(CUSTOMERS), "card_type": "VISA", "card_number": "1"}
        send("buy_confirm", given | {"card_name": "x", "card_expiry": "2030", "shipping": "AIR"})
        client.cart = None
    elif page == "order inquiry":
        send("get_password", {"user_name": f"U{client.own(CUSTOMERS)}"})
    elif page == "order display":
        send("get_most_recent_order", {"user_name": f"U{client.own(CUSTOMERS)}"})
    else:
        given = {"item_id": client.any(ITEMS), "cost": 12.5, "image": "i", "thumbnail": "t"}
        send("admin_update", given)


_SHOPPING = {
    "home": 16.0, "new products": 5.0, "best sellers": 5.0, "product detail": 17.0, "search request": 20.0,
    "search results": 17.0, "shopping cart": 11.6, "customer registration": 3.0, "buy request": 2.6, "buy confirm": 1.2,
    "order inquiry": 0.75, "order display": 0.66, "admin request": 0.1, "admin confirm": 0.09,
}  # fmt: skip


def _cart(client: Session, send: Send) -> int:
    if client.cart is None:
        client.cart = int(send("create_empty_cart", {}))
    send("do_cart", {"cart_id": client.cart, "item_id": client.any(ITEMS), "changes": []})
    return client.cart


def rubis_data() -> str:
    """A small auction site."""
    lines = _rows("categories", ((n, f"category {n}") for n in range(1, CATEGORIES + 1)))
    lines += _rows("regions", ((n, f"region {n}") for n in range(1, 11)))
    lines += _rows(
        "users",
        ((n, "f", "l", f"nick{n}", "p", "e", 0, 0.0, "2020-01-01", 1 + n % 10) for n in range(1, USERS + 1)),
    )
    lines += _rows(
        "items",
        (
            (n, f"item {n}", "about", 1.0, 1000, 1.0, 5.0, 0, 0.0, "2020-01-01", "2099-01-01", 1 + n % USERS,
             1 + n % CATEGORIES)
            for n in range(1, ITEMS + 1)
        ),
    )  # fmt: skip
    return "\n".join(lines)


def rubis_page(client: Session, send: Send) -> None:
    """A page of the bidding mix: 15 % of the pages write. Users mostly look at categories of their own server."""
    category = {"category": client.own(CATEGORIES)}
    item = {"item": client.own(ITEMS) if client.random.random() < 0.8 else client.any(ITEMS)}
    user = {"user": client.own(USERS)}
    page = client.random.choices(list(_BIDDING), weights=list(_BIDDING.values()))[0]
    if page == "browse":
        send("browse_categories", {})
        send("search_items_in_category", category)
    elif page == "browse region":
        region = client.any(10)
        send("browse_regions", {})
        send("browse_categories_in_region", {"region": f"region {region}"})
        send("search_items_in_region", category | {"region": region})
    elif page == "item":
        send("view_item", item)
        send("get_greatest_bids", item | {"quantity": 1})
    elif page == "history":
        send("view_bid_history", item)
    elif page == "user":
        send("view_user", user)
        send("view_comments", user)
    elif page == "about me":
        for name in ("my_bids", "my_won_items", "my_purchases", "my_sales", "my_old_sales"):
            send(name, user)
    elif page == "bid":
        send("bid_details", item)
        bid = 1 + client.random.random() * 100
        send("store_bid", item | user | {"bid": bid, "max_bid": bid, "quantity": 1})
    elif page == "buy now":
        send("buy_now_details", item)
        send("store_buy_now", item | user | {"quantity": 1})
    elif page == "comment":
        send("item_name", item)
        send("store_comment", user | item | {"author": client.own(USERS), "rating": 1, "comment": "good"})
    elif page == "sell":
        given = {"name": "n", "description": "d", "price": 1.0, "reserve": 1.0, "buy_now": 2.0, "quantity": 10}
        send("register_item", user | category | given | {"end": "2099-01-01"})
    else:
        name = f"new{client.random.randrange(10**12)}"
        given = {
            "firstname": "f",
            "lastname": "l",
            "nickname": name,
            "password": "p",
            "email": "e",
            "region": "region 1",
        }
        send("register_user", given)


_BIDDING = {
    "browse": 25.0, "browse region": 8.0, "item": 30.0, "history": 5.0, "user": 10.0, "about me": 7.0, "bid": 11.0,
    "buy now": 1.0, "comment": 1.5, "sell": 1.0, "register": 0.5,
}  # fmt: skip

MICRO = '''"""Operations that take five milliseconds."""

import time

SCHEMA = """
CREATE TABLE shared (id INTEGER PRIMARY KEY, n INTEGER NOT NULL);
CREATE TABLE own (id INTEGER PRIMARY KEY, n INTEGER NOT NULL);
INSERT INTO shared VALUES (1, 0);
INSERT INTO own VALUES (1, 0);
"""


def mine(db, key):
    time.sleep(0.005)
    return db.execute("SELECT n FROM own WHERE id = ?", (key,)).fetchone()


def ours(db, key):
    time.sleep(0.005)
    db.execute("UPDATE shared SET n = n + 1")


def seen(db):
    return db.execute("SELECT n FROM shared").fetchone()
'''


def micro_page(share: float) -> Callable[[Session, Send], None]:
    """A page with one operation, which is local with this probability."""

    def page(client: Session, send: Send) -> None:
        send("mine" if client.random.random() < share else "ours", {"key": client.near})

    return page


def _rows(table: str, rows: Iterator[tuple[Any, ...]]) -> list[str]:
    """INSERT statements."""

    def cell(value: Any) -> str:
        return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)

    values = [f"({', '.join(map(cell, row))})" for row in rows]
    return [f"INSERT INTO {table} VALUES {', '.join(values[n : n + 200])};" for n in range(0, len(values), 200)]

"""TPC-W with ids from MAX and COUNT, as in the original code of the benchmark. A new id reads a whole table.

    plait gyro analyze examples/gyro/tpcw_counted.py

Everything else is in `tpcw.py`.
"""

from datetime import date

from tpcw import (
    SCHEMA,
    _syllables,
    admin_update,
    do_author_search,
    do_cart,
    do_subject_search,
    do_title_search,
    get_best_sellers,
    get_book,
    get_cart,
    get_customer,
    get_most_recent_order,
    get_name,
    get_new_products,
    get_password,
    get_related,
    get_user_name,
    refresh_session,
)

__all__ = [
    "SCHEMA",
    "admin_update",
    "buy_confirm",
    "buy_confirm_ship_to",
    "create_empty_cart",
    "create_new_customer",
    "do_author_search",
    "do_cart",
    "do_subject_search",
    "do_title_search",
    "get_best_sellers",
    "get_book",
    "get_cart",
    "get_customer",
    "get_most_recent_order",
    "get_name",
    "get_new_products",
    "get_password",
    "get_related",
    "get_user_name",
    "refresh_session",
]


def create_empty_cart(db):
    (cart_id,) = db.execute("SELECT COUNT(*) FROM shopping_cart").fetchone()
    db.execute("INSERT INTO shopping_cart (sc_id, sc_time) VALUES (?, CURRENT_TIMESTAMP)", (cart_id,))
    return cart_id


def create_new_customer(db, first, last, address, phone, email, birthdate, data, discount):
    address_id = _enter_address(db, address)
    (greatest,) = db.execute("SELECT MAX(c_id) FROM customer").fetchone()
    customer_id = greatest + 1
    name = _syllables(customer_id)
    db.execute(
        "INSERT INTO customer (c_id, c_uname, c_passwd, c_fname, c_lname, c_addr_id, c_phone, c_email, c_since, "
        "c_last_login, c_login, c_expiration, c_discount, c_balance, c_ytd_pmt, c_birthdate, c_data) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, "
        "CURRENT_DATE, CURRENT_DATE, CURRENT_TIMESTAMP, datetime('now', '+2 hours'), ?, 0, 0, ?, ?)",
        (customer_id, name, name.lower(), first, last, address_id, phone, email, discount, birthdate, data),
    )
    return customer_id, name


def _enter_address(db, address):
    street1, street2, city, state, code, country = address
    (country_id,) = db.execute("SELECT co_id FROM country WHERE co_name = ?", (country,)).fetchone()
    found = db.execute(
        "SELECT addr_id FROM address WHERE addr_street1 = ? AND addr_street2 = ? AND addr_city = ? AND addr_state = ? "
        "AND addr_zip = ? AND addr_co_id = ?",
        (street1, street2, city, state, code, country_id),
    ).fetchone()
    if found is not None:
        return found[0]
    (greatest,) = db.execute("SELECT MAX(addr_id) FROM address").fetchone()
    db.execute(
        "INSERT INTO address (addr_id, addr_street1, addr_street2, addr_city, addr_state, addr_zip, addr_co_id) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (greatest + 1, street1, street2, city, state, code, country_id),
    )
    return greatest + 1


def buy_confirm(db, cart_id, customer_id, card_type, card_number, card_name, card_expiry, shipping):
    (address_id,) = db.execute("SELECT c_addr_id FROM customer WHERE c_id = ?", (customer_id,)).fetchone()
    return _order(db, cart_id, customer_id, address_id, (card_type, card_number, card_name, card_expiry), shipping)


def buy_confirm_ship_to(db, cart_id, customer_id, card_type, card_number, card_name, card_expiry, shipping, address):
    address_id = _enter_address(db, address)
    return _order(db, cart_id, customer_id, address_id, (card_type, card_number, card_name, card_expiry), shipping)


def _order(db, cart_id, customer_id, address_id, card, shipping):
    discount, billing = db.execute(
        "SELECT c_discount, c_addr_id FROM customer WHERE c_id = ?", (customer_id,)
    ).fetchone()
    lines = get_cart(db, cart_id)
    total = sum(line["scl_qty"] * line["i_cost"] for line in lines) * (100 - discount) / 100
    (greatest,) = db.execute("SELECT MAX(o_id) FROM orders").fetchone()
    order_id = greatest + 1
    db.execute(
        "INSERT INTO orders (o_id, o_c_id, o_date, o_sub_total, o_tax, o_total, o_ship_type, o_ship_date, o_bill_addr_id, "
        "o_ship_addr_id, o_status) VALUES (?, ?, CURRENT_TIMESTAMP, ?, 8.25, ?, ?, ?, ?, ?, 'PENDING')",
        (order_id, customer_id, total, total, shipping, date.today().isoformat(), billing, address_id),
    )
    for number, line in enumerate(lines):
        item_id, quantity = line["scl_i_id"], line["scl_qty"]
        db.execute(
            "INSERT INTO order_line (ol_id, ol_o_id, ol_i_id, ol_qty, ol_discount) VALUES (?, ?, ?, ?, ?)",
            (number, order_id, item_id, quantity, discount),
        )
        (stock,) = db.execute("SELECT i_stock FROM item WHERE i_id = ?", (item_id,)).fetchone()
        left = stock - quantity
        db.execute("UPDATE item SET i_stock = ? WHERE i_id = ?", (left if left >= 10 else left + 21, item_id))
    kind, number, name, expiry = card
    db.execute(
        "INSERT INTO cc_xacts (cx_o_id, cx_type, cx_num, cx_name, cx_expire, cx_xact_amt, cx_xact_date, cx_co_id) "
        "VALUES (?, ?, ?, ?, ?, ?, CURRENT_DATE, "
        "(SELECT co_id FROM address, country WHERE addr_id = ? AND addr_co_id = co_id))",
        (order_id, kind, number, name, expiry, total, address_id),
    )
    db.execute("DELETE FROM shopping_cart_line WHERE scl_sc_id = ?", (cart_id,))
    return order_id

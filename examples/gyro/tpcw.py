"""TPC-W, an online bookstore: its 20 transactions, written from the public specification of the benchmark.

    plait gyro analyze examples/gyro/tpcw.py

The server that executes the operation generates the ids of new carts, customers, addresses and orders: INSERT leaves out
these columns. In `tpcw_counted.py`, ids come from MAX and COUNT.
"""

from datetime import date

SCHEMA = """
CREATE TABLE country (co_id INTEGER PRIMARY KEY, co_name TEXT, co_exchange REAL, co_currency TEXT);
CREATE TABLE address (
  addr_id INTEGER PRIMARY KEY, addr_street1 TEXT, addr_street2 TEXT, addr_city TEXT, addr_state TEXT, addr_zip TEXT,
  addr_co_id INTEGER REFERENCES country (co_id));
CREATE TABLE customer (
  c_id INTEGER PRIMARY KEY, c_uname TEXT, c_passwd TEXT, c_fname TEXT, c_lname TEXT,
  c_addr_id INTEGER REFERENCES address (addr_id), c_phone TEXT, c_email TEXT, c_since TEXT, c_last_login TEXT,
  c_login TEXT, c_expiration TEXT, c_discount REAL, c_balance REAL, c_ytd_pmt REAL, c_birthdate TEXT, c_data TEXT);
CREATE TABLE author (a_id INTEGER PRIMARY KEY, a_fname TEXT, a_lname TEXT, a_mname TEXT, a_dob TEXT, a_bio TEXT);
CREATE TABLE item (
  i_id INTEGER PRIMARY KEY, i_title TEXT, i_a_id INTEGER REFERENCES author (a_id), i_pub_date TEXT, i_publisher TEXT,
  i_subject TEXT, i_desc TEXT, i_related1 INTEGER, i_related2 INTEGER, i_related3 INTEGER, i_related4 INTEGER,
  i_related5 INTEGER, i_thumbnail TEXT, i_image TEXT, i_srp REAL, i_cost REAL, i_avail TEXT, i_stock INTEGER, i_isbn TEXT,
  i_page INTEGER, i_backing TEXT, i_dimensions TEXT);
CREATE TABLE orders (
  o_id INTEGER PRIMARY KEY, o_c_id INTEGER REFERENCES customer (c_id), o_date TEXT, o_sub_total REAL, o_tax REAL,
  o_total REAL, o_ship_type TEXT, o_ship_date TEXT, o_bill_addr_id INTEGER REFERENCES address (addr_id),
  o_ship_addr_id INTEGER REFERENCES address (addr_id), o_status TEXT);
CREATE TABLE order_line (
  ol_id INTEGER, ol_o_id INTEGER REFERENCES orders (o_id), ol_i_id INTEGER REFERENCES item (i_id), ol_qty INTEGER,
  ol_discount REAL, ol_comments TEXT, PRIMARY KEY (ol_o_id, ol_id));
CREATE TABLE cc_xacts (
  cx_o_id INTEGER PRIMARY KEY REFERENCES orders (o_id), cx_type TEXT, cx_num TEXT, cx_name TEXT, cx_expire TEXT,
  cx_auth_id TEXT, cx_xact_amt REAL, cx_xact_date TEXT, cx_co_id INTEGER REFERENCES country (co_id));
CREATE TABLE shopping_cart (sc_id INTEGER PRIMARY KEY, sc_time TEXT);
CREATE TABLE shopping_cart_line (
  scl_sc_id INTEGER REFERENCES shopping_cart (sc_id), scl_i_id INTEGER REFERENCES item (i_id), scl_qty INTEGER,
  PRIMARY KEY (scl_sc_id, scl_i_id));
"""

_SYLLABLES = ("BA", "OG", "AL", "RI", "RE", "SE", "AT", "UL", "IN", "NG")


# -- the 13 read-only transactions -------------------------------------------------------------------------------------


def get_name(db, customer_id):
    """Home: greet a customer."""
    return db.execute("SELECT c_fname, c_lname FROM customer WHERE c_id = ?", (customer_id,)).fetchone()


def get_book(db, item_id):
    """Product detail."""
    return db.execute("SELECT * FROM item, author WHERE item.i_a_id = author.a_id AND i_id = ?", (item_id,)).fetchone()


def get_customer(db, user_name):
    """Buy request: a returning customer."""
    return db.execute(
        "SELECT * FROM customer, address, country WHERE customer.c_addr_id = address.addr_id "
        "AND address.addr_co_id = country.co_id AND customer.c_uname = ?",
        (user_name,),
    ).fetchone()


def do_subject_search(db, subject):
    """Search result."""
    return db.execute(
        "SELECT * FROM item, author WHERE item.i_a_id = author.a_id AND item.i_subject = ? ORDER BY item.i_title LIMIT 50",
        (subject,),
    ).fetchall()


def do_title_search(db, title):
    return db.execute(
        "SELECT * FROM item, author WHERE item.i_a_id = author.a_id AND item.i_title LIKE ? ORDER BY item.i_title LIMIT 50",
        (title,),
    ).fetchall()


def do_author_search(db, author):
    return db.execute(
        "SELECT * FROM author, item WHERE author.a_lname LIKE ? AND item.i_a_id = author.a_id "
        "ORDER BY item.i_title LIMIT 50",
        (author,),
    ).fetchall()


def get_new_products(db, subject):
    return db.execute(
        "SELECT i_id, i_title, a_fname, a_lname FROM item, author WHERE item.i_a_id = author.a_id AND item.i_subject = ? "
        "ORDER BY item.i_pub_date DESC, item.i_title LIMIT 50",
        (subject,),
    ).fetchall()


def get_best_sellers(db, subject):
    """The best-selling items of the last 3,333 orders."""
    return db.execute(
        "SELECT i_id, i_title, a_fname, a_lname FROM item, author, order_line WHERE item.i_id = order_line.ol_i_id "
        "AND item.i_a_id = author.a_id AND order_line.ol_o_id > (SELECT MAX(o_id) - 3333 FROM orders) "
        "AND item.i_subject = ? GROUP BY i_id, i_title, a_fname, a_lname ORDER BY SUM(ol_qty) DESC LIMIT 50",
        (subject,),
    ).fetchall()


def get_related(db, item_id):
    return db.execute(
        "SELECT j.i_id, j.i_thumbnail FROM item AS i, item AS j WHERE j.i_id IN (i.i_related1, i.i_related2, i.i_related3, "
        "i.i_related4, i.i_related5) AND i.i_id = ?",
        (item_id,),
    ).fetchall()


def get_user_name(db, customer_id):
    return db.execute("SELECT c_uname FROM customer WHERE c_id = ?", (customer_id,)).fetchone()


def get_password(db, user_name):
    return db.execute("SELECT c_passwd FROM customer WHERE c_uname = ?", (user_name,)).fetchone()


def get_most_recent_order(db, user_name):
    """Order display."""
    order = db.execute(
        "SELECT o_id FROM customer, orders WHERE customer.c_id = orders.o_c_id AND c_uname = ? "
        "ORDER BY o_date DESC, orders.o_id DESC LIMIT 1",
        (user_name,),
    ).fetchone()
    if order is None:
        return None
    details = db.execute(
        "SELECT orders.*, customer.*, cc_xacts.cx_type, ship.*, bill.* FROM customer, orders, cc_xacts, address AS ship, "
        "address AS bill WHERE orders.o_id = ? AND cx_o_id = orders.o_id AND customer.c_id = orders.o_c_id "
        "AND orders.o_bill_addr_id = bill.addr_id AND orders.o_ship_addr_id = ship.addr_id",
        (order[0],),
    ).fetchone()
    lines = db.execute("SELECT * FROM order_line, item WHERE ol_o_id = ? AND ol_i_id = i_id", (order[0],)).fetchall()
    return details, lines


def get_cart(db, cart_id):
    return db.execute(
        "SELECT * FROM shopping_cart_line, item WHERE scl_i_id = item.i_id AND scl_sc_id = ?", (cart_id,)
    ).fetchall()


# -- carts -------------------------------------------------------------------------------------------------------------


def create_empty_cart(db):
    return db.execute("INSERT INTO shopping_cart (sc_time) VALUES (CURRENT_TIMESTAMP)").lastrowid


def do_cart(db, cart_id, item_id, changes):
    """Shopping cart: add an item, change quantities (pairs of item and quantity), and show the content."""
    if item_id is not None:
        _add_item(db, cart_id, item_id)
    for item, quantity in changes:
        if quantity == 0:
            db.execute("DELETE FROM shopping_cart_line WHERE scl_sc_id = ? AND scl_i_id = ?", (cart_id, item))
        else:
            db.execute(
                "UPDATE shopping_cart_line SET scl_qty = ? WHERE scl_sc_id = ? AND scl_i_id = ?",
                (quantity, cart_id, item),
            )
    (count,) = db.execute("SELECT COUNT(*) FROM shopping_cart_line WHERE scl_sc_id = ?", (cart_id,)).fetchone()
    if count == 0:
        (related,) = db.execute("SELECT i_related1 FROM item WHERE i_id = ?", (cart_id % 100,)).fetchone()
        _add_item(db, cart_id, related)
    db.execute("UPDATE shopping_cart SET sc_time = CURRENT_TIMESTAMP WHERE sc_id = ?", (cart_id,))
    return get_cart(db, cart_id)


def _add_item(db, cart_id, item_id):
    line = db.execute(
        "SELECT scl_qty FROM shopping_cart_line WHERE scl_sc_id = ? AND scl_i_id = ?", (cart_id, item_id)
    ).fetchone()
    if line is not None:
        db.execute(
            "UPDATE shopping_cart_line SET scl_qty = ? WHERE scl_sc_id = ? AND scl_i_id = ?",
            (line[0] + 1, cart_id, item_id),
        )
    else:
        db.execute(
            "INSERT INTO shopping_cart_line (scl_sc_id, scl_qty, scl_i_id) VALUES (?, ?, ?)", (cart_id, 1, item_id)
        )


# -- customers ---------------------------------------------------------------------------------------------------------


def refresh_session(db, customer_id):
    db.execute(
        "UPDATE customer SET c_login = CURRENT_TIMESTAMP, c_expiration = datetime('now', '+2 hours') WHERE c_id = ?",
        (customer_id,),
    )


def create_new_customer(db, first, last, address, phone, email, birthdate, data, discount):
    """Customer registration; `address` is (street1, street2, city, state, zip, country)."""
    address_id = _enter_address(db, address)
    customer_id = db.execute(
        "INSERT INTO customer (c_fname, c_lname, c_addr_id, c_phone, c_email, c_since, c_last_login, c_login, c_expiration, "
        "c_discount, c_balance, c_ytd_pmt, c_birthdate, c_data) VALUES (?, ?, ?, ?, ?, CURRENT_DATE, CURRENT_DATE, "
        "CURRENT_TIMESTAMP, datetime('now', '+2 hours'), ?, 0, 0, ?, ?)",
        (first, last, address_id, phone, email, discount, birthdate, data),
    ).lastrowid
    name = _syllables(customer_id)
    db.execute("UPDATE customer SET c_uname = ?, c_passwd = ? WHERE c_id = ?", (name, name.lower(), customer_id))
    return customer_id, name


def _syllables(number):
    """The user name of a customer: a syllable for each digit of the id."""
    return "".join(_SYLLABLES[int(digit)] for digit in str(number))


def _enter_address(db, address):
    """The id of an existing address, or of a new one."""
    street1, street2, city, state, code, country = address
    (country_id,) = db.execute("SELECT co_id FROM country WHERE co_name = ?", (country,)).fetchone()
    found = db.execute(
        "SELECT addr_id FROM address WHERE addr_street1 = ? AND addr_street2 = ? AND addr_city = ? AND addr_state = ? "
        "AND addr_zip = ? AND addr_co_id = ?",
        (street1, street2, city, state, code, country_id),
    ).fetchone()
    if found is not None:
        return found[0]
    return db.execute(
        "INSERT INTO address (addr_street1, addr_street2, addr_city, addr_state, addr_zip, addr_co_id) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (street1, street2, city, state, code, country_id),
    ).lastrowid


# -- orders ------------------------------------------------------------------------------------------------------------


def buy_confirm(db, cart_id, customer_id, card_type, card_number, card_name, card_expiry, shipping):
    """Order the content of the cart, to the address of the customer."""
    (address_id,) = db.execute("SELECT c_addr_id FROM customer WHERE c_id = ?", (customer_id,)).fetchone()
    return _order(db, cart_id, customer_id, address_id, (card_type, card_number, card_name, card_expiry), shipping)


def buy_confirm_ship_to(db, cart_id, customer_id, card_type, card_number, card_name, card_expiry, shipping, address):
    """Order the content of the cart, to another address."""
    address_id = _enter_address(db, address)
    return _order(db, cart_id, customer_id, address_id, (card_type, card_number, card_name, card_expiry), shipping)


def _order(db, cart_id, customer_id, address_id, card, shipping):
    (discount,) = db.execute("SELECT c_discount FROM customer WHERE c_id = ?", (customer_id,)).fetchone()
    lines = get_cart(db, cart_id)
    total = sum(line["scl_qty"] * line["i_cost"] for line in lines) * (100 - discount) / 100
    order_id = _enter_order(db, customer_id, total, address_id, shipping)
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


def _enter_order(db, customer_id, total, address_id, shipping):
    (billing,) = db.execute("SELECT c_addr_id FROM customer WHERE c_id = ?", (customer_id,)).fetchone()
    return db.execute(
        "INSERT INTO orders (o_c_id, o_date, o_sub_total, o_tax, o_total, o_ship_type, o_ship_date, o_bill_addr_id, "
        "o_ship_addr_id, o_status) VALUES (?, CURRENT_TIMESTAMP, ?, 8.25, ?, ?, ?, ?, ?, 'PENDING')",
        (customer_id, total, total, shipping, date.today().isoformat(), billing, address_id),
    ).lastrowid


# -- administration ----------------------------------------------------------------------------------------------------


def admin_update(db, item_id, cost, image, thumbnail):
    """Change a book, and compute related books: those that its buyers bought most often."""
    db.execute(
        "UPDATE item SET i_cost = ?, i_image = ?, i_thumbnail = ?, i_pub_date = CURRENT_DATE WHERE i_id = ?",
        (cost, image, thumbnail, item_id),
    )
    related = db.execute(
        "SELECT other.ol_i_id FROM orders, order_line AS this, order_line AS other WHERE orders.o_id = this.ol_o_id "
        "AND this.ol_o_id = other.ol_o_id AND this.ol_i_id = ? AND other.ol_i_id <> ? "
        "AND orders.o_id > (SELECT MAX(o_id) - 10000 FROM orders) GROUP BY other.ol_i_id "
        "ORDER BY SUM(other.ol_qty) DESC LIMIT 5",
        (item_id, item_id),
    ).fetchall()
    found = [row[0] for row in related] + [item_id] * 5
    db.execute(
        "UPDATE item SET i_related1 = ?, i_related2 = ?, i_related3 = ?, i_related4 = ?, i_related5 = ? WHERE i_id = ?",
        (found[0], found[1], found[2], found[3], found[4], item_id),
    )

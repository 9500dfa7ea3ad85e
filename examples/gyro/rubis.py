"""RUBiS, an auction site like eBay: its transactions, written from the public description of the benchmark.

    plait gyro analyze examples/gyro/rubis.py

The benchmark has 26 interactions. `INTERACTIONS` lists the transactions of each. Eight of them only show a form or a
menu, and do not use the database. An interaction consists of several transactions, as in the original: first a list of
items, then the details of each item. A bid belongs to a user and to an item. It is local if both are mapped to one server,
and global otherwise (two keys).
"""

SCHEMA = """
CREATE TABLE categories (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE regions (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE users (
  id INTEGER PRIMARY KEY, firstname TEXT, lastname TEXT, nickname TEXT UNIQUE, password TEXT, email TEXT, rating INTEGER,
  balance REAL, creation_date TEXT, region INTEGER);
CREATE TABLE items (
  id INTEGER PRIMARY KEY, name TEXT, description TEXT, initial_price REAL, quantity INTEGER, reserve_price REAL,
  buy_now REAL, nb_of_bids INTEGER, max_bid REAL, start_date TEXT, end_date TEXT, seller INTEGER, category INTEGER);
CREATE TABLE old_items (
  id INTEGER PRIMARY KEY, name TEXT, description TEXT, initial_price REAL, quantity INTEGER, reserve_price REAL,
  buy_now REAL, nb_of_bids INTEGER, max_bid REAL, start_date TEXT, end_date TEXT, seller INTEGER, category INTEGER);
CREATE TABLE bids (
  id INTEGER PRIMARY KEY, user_id INTEGER, item_id INTEGER, qty INTEGER, bid REAL, max_bid REAL, date TEXT);
CREATE TABLE buy_now (id INTEGER PRIMARY KEY, buyer_id INTEGER, item_id INTEGER, qty INTEGER, date TEXT);
CREATE TABLE comments (
  id INTEGER PRIMARY KEY, from_user_id INTEGER, to_user_id INTEGER, item_id INTEGER, rating INTEGER, date TEXT,
  comment TEXT);
"""

INTERACTIONS = {
    "Home": [],
    "Browse": [],
    "Browse categories": ["browse_categories"],
    "Search items in category": ["search_items_in_category"],
    "Browse regions": ["browse_regions"],
    "Browse categories in region": ["browse_categories_in_region"],
    "Search items in region": ["search_items_in_region"],
    "View item": ["view_item", "view_old_item", "get_greatest_bids", "view_user"],
    "View user info": ["view_user", "view_comments"],
    "View bid history": ["view_item", "view_old_item", "view_bid_history", "view_user"],
    "Buy now auth": [],
    "Buy now": ["authenticate", "buy_now_details", "view_user"],
    "Store buy now": ["store_buy_now"],
    "Put bid auth": [],
    "Put bid": ["authenticate", "bid_details", "view_user"],
    "Store bid": ["store_bid"],
    "Put comment auth": [],
    "Put comment": ["authenticate", "view_user", "item_name"],
    "Store comment": ["store_comment"],
    "Register": [],
    "Register user": ["register_user"],
    "Sell": [],
    "Select category to sell item": ["authenticate", "browse_categories"],
    "Sell item form": [],
    "Register item": ["register_item"],
    "About me": [
        "authenticate", "view_user", "view_comments", "my_bids", "my_won_items", "my_purchases", "my_sales", "my_old_sales"
    ],
}  # fmt: skip
"""The interactions of the benchmark, and the transactions of each. `close_auction` moves sold items, outside of them."""


# -- browsing ----------------------------------------------------------------------------------------------------------


def browse_categories(db):
    return db.execute("SELECT id, name FROM categories ORDER BY name").fetchall()


def browse_regions(db):
    return db.execute("SELECT id, name FROM regions ORDER BY name").fetchall()


def browse_categories_in_region(db, region):
    """The region by its name, and all categories."""
    found = db.execute("SELECT id FROM regions WHERE name = ?", (region,)).fetchone()
    return found, db.execute("SELECT id, name FROM categories ORDER BY name").fetchall()


def search_items_in_category(db, category):
    return db.execute(
        "SELECT id, name, initial_price, end_date FROM items WHERE category = ? AND end_date >= CURRENT_TIMESTAMP "
        "ORDER BY end_date",
        (category,),
    ).fetchall()


def search_items_in_region(db, category, region):
    return db.execute(
        "SELECT items.id, items.name, items.initial_price, items.end_date FROM items JOIN users ON items.seller = users.id "
        "WHERE items.category = ? AND users.region = ? AND items.end_date >= CURRENT_TIMESTAMP ORDER BY items.end_date",
        (category, region),
    ).fetchall()


# -- an item -----------------------------------------------------------------------------------------------------------


def view_item(db, item):
    return db.execute("SELECT * FROM items WHERE id = ?", (item,)).fetchone()


def view_old_item(db, item):
    return db.execute("SELECT * FROM old_items WHERE id = ?", (item,)).fetchone()


def view_bid_history(db, item):
    return db.execute(
        "SELECT user_id, bid, qty, date FROM bids WHERE item_id = ? ORDER BY date DESC", (item,)
    ).fetchall()


def get_greatest_bids(db, item, quantity):
    return db.execute(
        "SELECT bid, qty FROM bids WHERE item_id = ? ORDER BY bid DESC, id LIMIT ?", (item, quantity)
    ).fetchall()


def bid_details(db, item):
    """Put bid: the item, and the bids so far."""
    row = db.execute(
        "SELECT name, seller, initial_price, max_bid, quantity FROM items WHERE id = ?", (item,)
    ).fetchone()
    bids = db.execute("SELECT COUNT(*), MAX(bid) FROM bids WHERE item_id = ?", (item,)).fetchone()
    return row, bids


def buy_now_details(db, item):
    """Buy now: the price, and how many pieces are left."""
    return db.execute("SELECT name, seller, buy_now, quantity FROM items WHERE id = ?", (item,)).fetchone()


def item_name(db, item):
    """Put comment: the item that the comment is about."""
    return db.execute("SELECT name FROM items WHERE id = ?", (item,)).fetchone()


# -- a user ------------------------------------------------------------------------------------------------------------


def authenticate(db, nickname, password):
    return db.execute("SELECT id FROM users WHERE nickname = ? AND password = ?", (nickname, password)).fetchone()


def view_user(db, user):
    return db.execute("SELECT nickname, rating, creation_date FROM users WHERE id = ?", (user,)).fetchone()


def view_comments(db, user):
    return db.execute(
        "SELECT from_user_id, item_id, rating, date, comment FROM comments WHERE to_user_id = ? ORDER BY date DESC",
        (user,),
    ).fetchall()


def my_bids(db, user):
    return db.execute(
        "SELECT item_id, bid, max_bid, qty, date FROM bids WHERE user_id = ? ORDER BY date DESC", (user,)
    ).fetchall()


def my_won_items(db, user):
    """Sold items with a bid of the user that was the greatest."""
    return db.execute(
        "SELECT DISTINCT old_items.id, old_items.name, old_items.max_bid FROM bids JOIN old_items "
        "ON bids.item_id = old_items.id WHERE bids.user_id = ? AND bids.bid = old_items.max_bid",
        (user,),
    ).fetchall()


def my_purchases(db, user):
    return db.execute(
        "SELECT item_id, qty, date FROM buy_now WHERE buyer_id = ? ORDER BY date DESC", (user,)
    ).fetchall()


def my_sales(db, user):
    return db.execute("SELECT id, name, start_date, end_date FROM items WHERE seller = ?", (user,)).fetchall()


def my_old_sales(db, user):
    return db.execute("SELECT id, name, max_bid, end_date FROM old_items WHERE seller = ?", (user,)).fetchall()


# -- transactions that write -------------------------------------------------------------------------------------------


def register_user(db, firstname, lastname, nickname, password, email, region):
    return db.execute(
        "INSERT INTO users (firstname, lastname, nickname, password, email, rating, balance, creation_date, region) "
        "VALUES (?, ?, ?, ?, ?, 0, 0, CURRENT_TIMESTAMP, (SELECT id FROM regions WHERE name = ?))",
        (firstname, lastname, nickname, password, email, region),
    ).lastrowid


def register_item(db, user, category, name, description, price, reserve, buy_now, quantity, end):
    return db.execute(
        "INSERT INTO items (name, description, initial_price, quantity, reserve_price, buy_now, nb_of_bids, max_bid, "
        "start_date, end_date, seller, category) VALUES (?, ?, ?, ?, ?, ?, 0, 0, CURRENT_TIMESTAMP, ?, ?, ?)",
        (name, description, price, quantity, reserve, buy_now, end, user, category),
    ).lastrowid


def store_bid(db, item, user, bid, max_bid, quantity):
    """Bid for an item. The bid belongs to the user. The item has the number of bids and the greatest bid."""
    row = db.execute("SELECT nb_of_bids, max_bid FROM items WHERE id = ?", (item,)).fetchone()
    if row is None:
        return False
    count, greatest = row
    db.execute(
        "INSERT INTO bids (user_id, item_id, qty, bid, max_bid, date) VALUES (?, ?, ?, ?, ?, CURRENT_TIMESTAMP)",
        (user, item, quantity, bid, max_bid),
    )
    db.execute("UPDATE items SET nb_of_bids = ?, max_bid = ? WHERE id = ?", (count + 1, max(greatest, bid), item))
    return True


def store_buy_now(db, item, user, quantity):
    """Buy without bidding. The auction ends when the last piece is sold."""
    (left,) = db.execute("SELECT quantity FROM items WHERE id = ?", (item,)).fetchone()
    if left < quantity:
        return False
    if left == quantity:
        db.execute("UPDATE items SET quantity = 0, end_date = CURRENT_TIMESTAMP WHERE id = ?", (item,))
    else:
        db.execute("UPDATE items SET quantity = ? WHERE id = ?", (left - quantity, item))
    db.execute(
        "INSERT INTO buy_now (buyer_id, item_id, qty, date) VALUES (?, ?, ?, CURRENT_TIMESTAMP)", (user, item, quantity)
    )
    return True


def store_comment(db, author, user, item, rating, comment):
    """Comment on a user, and change the rating of the user."""
    db.execute(
        "INSERT INTO comments (from_user_id, to_user_id, item_id, rating, date, comment) "
        "VALUES (?, ?, ?, ?, CURRENT_TIMESTAMP, ?)",
        (author, user, item, rating, comment),
    )
    db.execute("UPDATE users SET rating = rating + ? WHERE id = ?", (rating, user))


def close_auction(db, item):
    """Move an item to the sold items."""
    db.execute("INSERT INTO old_items SELECT * FROM items WHERE id = ?", (item,))
    db.execute("DELETE FROM items WHERE id = ?", (item,))

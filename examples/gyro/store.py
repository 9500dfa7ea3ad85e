"""The online store of Saissi 2019, figure 4. Carts are partitioned; only orders need coordination.

plait gyro analyze examples/gyro/store.py
"""

SCHEMA = """
CREATE TABLE carts (id INTEGER PRIMARY KEY, opened TEXT);
CREATE TABLE lines (cart INTEGER NOT NULL, item INTEGER NOT NULL, amount INTEGER NOT NULL, PRIMARY KEY (cart, item));
CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT, stock INTEGER NOT NULL);
"""


def create(db, cart):
    db.execute("INSERT INTO carts (id, opened) VALUES (?, CURRENT_TIMESTAMP)", (cart,))


def add(db, cart, item, amount):
    """Put items into a cart if the stock is sufficient."""
    (stock,) = db.execute("SELECT stock FROM items WHERE id = ?", (item,)).fetchone()
    if stock < amount:
        return False
    db.execute("DELETE FROM lines WHERE cart = ? AND item = ?", (cart, item))
    db.execute("INSERT INTO lines (cart, item, amount) VALUES (?, ?, ?)", (cart, item, amount))
    return True


def order(db, cart):
    """Order the content of the cart."""
    for item, amount in db.execute("SELECT item, amount FROM lines WHERE cart = ?", (cart,)).fetchall():
        db.execute("UPDATE items SET stock = stock - ? WHERE id = ?", (amount, item))
    db.execute("DELETE FROM lines WHERE cart = ?", (cart,))

"""The online store of Saissi 2019, figure 4, in SQLAlchemy Core. The Tables are the schema.

plait gyro analyze examples/gyro/store_core.py
plait gyro serve examples/gyro/store_core.py
"""

from sqlalchemy import Column, Integer, MetaData, String, Table, delete, func, insert, select, update

metadata = MetaData()
carts = Table("carts", metadata, Column("id", Integer, primary_key=True), Column("opened", String))
lines = Table(
    "lines",
    metadata,
    Column("cart", Integer, primary_key=True),
    Column("item", Integer, primary_key=True),
    Column("amount", Integer, nullable=False),
)
items = Table(
    "items",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String),
    Column("stock", Integer, nullable=False),
)


def create(connection, cart):
    connection.execute(insert(carts).values(id=cart, opened=func.now()))


def add(connection, cart, item, amount):
    """Put items into a cart if the stock is sufficient."""
    stock = connection.execute(select(items.c.stock).where(items.c.id == item)).scalar_one()
    if stock < amount:
        return False
    connection.execute(delete(lines).where(lines.c.cart == cart, lines.c.item == item))
    connection.execute(insert(lines), {"cart": cart, "item": item, "amount": amount})
    return True


def order(connection, cart):
    """Order the content of the cart."""
    for line in connection.execute(select(lines).where(lines.c.cart == cart)).all():
        change = update(items).where(items.c.id == line.item)
        connection.execute(change.values(stock=items.c.stock - line.amount))
    connection.execute(delete(lines).where(lines.c.cart == cart))

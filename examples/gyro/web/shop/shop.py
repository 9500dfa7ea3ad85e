"""A shop: Flask and the ORM of SQLAlchemy. Nothing in it knows of Plait.

Run it alone with `flask --app shop run`. Carts, items with a stock, and orders.
"""

from __future__ import annotations

import os

from flask import Flask, jsonify, request, session
from flask.typing import ResponseReturnValue
from sqlalchemy import ForeignKey, create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship, scoped_session, sessionmaker


class Base(DeclarativeBase):
    """The tables."""


class Item(Base):
    """An item with its stock."""

    __tablename__ = "items"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str]
    price: Mapped[int]
    stock: Mapped[int]


class Cart(Base):
    """A cart with its lines."""

    __tablename__ = "carts"
    id: Mapped[int] = mapped_column(primary_key=True)
    owner: Mapped[str]
    lines: Mapped[list[Line]] = relationship(back_populates="cart", cascade="all, delete-orphan")


class Line(Base):
    """An item in a cart."""

    __tablename__ = "lines"
    cart_id: Mapped[int] = mapped_column(ForeignKey("carts.id"), primary_key=True)
    item_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    amount: Mapped[int]
    cart: Mapped[Cart] = relationship(back_populates="lines")


class Order(Base):
    """An order, made from a cart."""

    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    cart_id: Mapped[int]
    total: Mapped[int]


engine = create_engine(os.environ.get("SHOP_DATABASE", "sqlite:///shop.db"))
db = scoped_session(sessionmaker(engine))
app = Flask(__name__)
app.secret_key = os.environ.get("SHOP_SECRET", "for development only")


@app.teardown_appcontext
def close(_error: BaseException | None) -> None:
    """End the session of a request."""
    db.remove()


@app.get("/items")
def items() -> ResponseReturnValue:
    """All items, without their stock."""
    return jsonify(
        [{"id": i, "title": t, "price": p} for i, t, p in db.execute(select(Item.id, Item.title, Item.price))]
    )


@app.post("/items/<int:item>/stock")
def restock(item: int) -> ResponseReturnValue:
    """Add to the stock of an item."""
    found = db.get(Item, item)
    if found is None:
        return {"error": "no such item"}, 404
    found.stock += int(request.form["amount"])
    db.commit()
    return {"stock": found.stock}


@app.post("/carts")
def create_cart() -> ResponseReturnValue:
    """A new, empty cart, which the session remembers."""
    made = Cart(owner=request.get_json()["owner"])
    db.add(made)
    db.commit()
    session["cart"] = made.id
    return {"id": made.id}, 201


@app.get("/carts/<int:cart>")
def show_cart(cart: int) -> ResponseReturnValue:
    """The lines of a cart."""
    found = db.get(Cart, cart)
    if found is None:
        return {"error": "no such cart"}, 404
    lines = sorted((line.item_id, line.amount) for line in found.lines)
    return {"owner": found.owner, "lines": lines}


@app.post("/carts/<int:cart>/lines")
def add_line(cart: int) -> ResponseReturnValue:
    """Put an item into a cart."""
    wanted = request.get_json()
    if db.get(Cart, cart) is None:
        return {"error": "no such cart"}, 404
    line = db.get(Line, (cart, wanted["item"]))
    if line is None:
        line = Line(cart_id=cart, item_id=wanted["item"], amount=0)
        db.add(line)
    line.amount += wanted["amount"]
    db.commit()
    return {"amount": line.amount}


@app.delete("/carts/<int:cart>/lines/<int:item>")
def remove_line(cart: int, item: int) -> ResponseReturnValue:
    """Take an item out of a cart."""
    line = db.get(Line, (cart, item))
    if line is not None:
        db.delete(line)
        db.commit()
    return "", 204


@app.get("/cart")
def my_cart() -> ResponseReturnValue:
    """The cart of the session."""
    if "cart" not in session:
        return {"error": "no cart"}, 404
    count = db.query(Line).filter_by(cart_id=session["cart"]).count()
    return {"id": session["cart"], "lines": count}


@app.post("/carts/<int:cart>/order")
def order(cart: int) -> ResponseReturnValue:
    """Order what is in a cart: it takes the items from the stock, and empties the cart."""
    found = db.get(Cart, cart)
    if found is None:
        return {"error": "no such cart"}, 404
    total = 0
    for line in list(found.lines):
        item = db.get(Item, line.item_id)
        if item is None or item.stock < line.amount:
            return {"error": f"item {line.item_id} is sold out"}, 409
        item.stock -= line.amount
        total += item.price * line.amount
        db.delete(line)
    made = Order(cart_id=cart, total=total)
    db.add(made)
    db.commit()
    return {"order": made.id, "total": total}, 201


@app.get("/")
def home() -> ResponseReturnValue:
    """A page without SQL."""
    return "<h1>The shop</h1>"

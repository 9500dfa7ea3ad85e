"""The tests of the shop. They know nothing of Plait; `plait gyro record` runs them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

os.environ["SHOP_DATABASE"] = "sqlite://"

from flask.testing import FlaskClient
from shop import Base, Item, app, db, engine


@pytest.fixture
def client() -> Iterator[FlaskClient]:
    """A client of a shop with four items."""
    Base.metadata.drop_all(engine)
    Base.metadata.create_all(engine)
    db.add_all([Item(id=i, title=f"item {i}", price=10 * i, stock=5) for i in (11, 12, 13, 14)])
    db.commit()
    db.remove()
    with app.test_client() as made:
        yield made


def carts(client: FlaskClient, count: int) -> list[int]:
    return [client.post("/carts", json={"owner": f"owner {n}"}).get_json()["id"] for n in range(count)]


def test_home(client: FlaskClient) -> None:
    assert client.get("/").status_code == 200


def test_lines_of_a_cart(client: FlaskClient) -> None:
    first, second, third = carts(client, 3)
    assert client.post(f"/carts/{first}/lines", json={"item": 11, "amount": 2}).get_json() == {"amount": 2}
    assert client.post(f"/carts/{first}/lines", json={"item": 11, "amount": 1}).get_json() == {"amount": 3}
    assert client.post(f"/carts/{second}/lines", json={"item": 12, "amount": 4}).get_json() == {"amount": 4}
    assert client.post(f"/carts/{second}/lines", json={"item": 12, "amount": 1}).get_json() == {"amount": 5}
    assert client.get(f"/carts/{first}").get_json() == {"owner": "owner 0", "lines": [[11, 3]]}
    assert client.get(f"/carts/{second}").get_json()["lines"] == [[12, 5]]
    assert client.get(f"/carts/{third}").get_json()["lines"] == []
    assert client.delete(f"/carts/{first}/lines/11").status_code == 204
    assert client.delete(f"/carts/{second}/lines/12").status_code == 204
    assert client.get(f"/carts/{first}").get_json()["lines"] == []


def test_a_session_has_a_cart(client: FlaskClient) -> None:
    assert client.get("/cart").status_code == 404
    for number in range(3):
        cart = client.post("/carts", json={"owner": f"owner {number}"}).get_json()["id"]
        client.post(f"/carts/{cart}/lines", json={"item": 13, "amount": 1})
        assert client.get("/cart").get_json() == {"id": cart, "lines": 1}


def test_orders(client: FlaskClient) -> None:
    first, second, third = carts(client, 3)
    for cart, item in ((first, 11), (second, 12)):
        client.post(f"/carts/{cart}/lines", json={"item": item, "amount": 2})
        client.post(f"/carts/{cart}/lines", json={"item": 13, "amount": 1})
    assert client.post(f"/carts/{first}/order").get_json()["total"] == 350
    assert client.post(f"/carts/{second}/order").get_json()["total"] == 370
    assert client.post(f"/carts/{third}/order").get_json()["total"] == 0
    client.post(f"/carts/{third}/lines", json={"item": 13, "amount": 4})
    assert client.post(f"/carts/{third}/order").status_code == 409
    assert client.post("/items/13/stock", data={"amount": "7"}).get_json() == {"stock": 10}
    assert client.post("/items/14/stock", data={"amount": "1"}).get_json() == {"stock": 6}
    assert client.post(f"/carts/{third}/order").status_code == 201
    assert len(client.get("/items").get_json()) == 4


@pytest.mark.parametrize("cart", [98, 99])
def test_there_is_no_such_cart(client: FlaskClient, cart: int) -> None:
    assert client.get(f"/carts/{cart}").status_code == 404
    assert client.post(f"/carts/{cart}/order").status_code == 404
    assert client.post(f"/carts/{cart}/lines", json={"item": 11, "amount": 1}).status_code == 404
    assert client.post(f"/items/{cart}/stock", data={"amount": "1"}).status_code == 404

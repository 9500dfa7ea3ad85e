"""Shops that share a stock: values of Python's library in fields, and properties of one or two processes.

A warehouse has a stock (a `Counter`), and a short queue of orders (a `deque` with a limit, which forgets the oldest order if
it is full). Shops order goods, and pay by an exact share (`Fraction`). A shop may have several rights at once (`Flag`).

    plait check examples/stock.py                       # holds
    plait check examples/stock.py -p generous=true      # the warehouse gives away what it does not have

The properties are about each warehouse, each shop, or two shops, and call methods of the processes.
"""

from collections import Counter, deque
from enum import Flag, auto
from fractions import Fraction

from plait import Message, Pid, Process, System, action, always, field, on, reachable


class Right(Flag):
    """What a shop may do."""

    ORDER = auto()
    RETURN = auto()


class Goods(str):
    """The name of a kind of goods."""


class Order(Message):
    goods: Goods


class Delivery(Message):
    goods: Goods
    share: Fraction
    """The part of the price that the shop pays."""


APPLES, PEARS = Goods("apples"), Goods("pears")


class Warehouse(Process):
    generous: bool
    stock: Counter[Goods] = field(default_factory=lambda: Counter({APPLES: 1, PEARS: 1}))
    orders: deque[tuple[Pid, Goods]] = field(default_factory=lambda: deque(maxlen=2))

    def can_deliver(self, goods: Goods) -> bool:
        return self.stock[goods] > 0 or self.generous

    @property
    def is_full(self) -> bool:
        return len(self.orders) == self.orders.maxlen

    @on(Order)
    def queue(self, m: Order) -> None:
        self.orders.append((m.sender, m.goods))

    @action(when=lambda self: self.orders)
    def deliver(self) -> None:
        shop, goods = self.orders.popleft()
        if self.can_deliver(goods):
            self.stock[goods] -= 1
            self.send(shop, Delivery(goods, Fraction(1, 3)))


class Shop(Process):
    wants: Goods
    rights: Right = Right.ORDER | Right.RETURN
    has: Counter[Goods] = field(default_factory=Counter)
    paid: Fraction = Fraction(0)

    MOST = Fraction(1)

    def owns(self, goods: Goods) -> bool:
        return self.has[goods] > 0

    @action(when=lambda self: Right.ORDER in self.rights)
    def order(self) -> None:
        self.rights &= ~Right.ORDER
        self.send(Warehouse.pid(0), Order(self.wants))

    @on(Delivery)
    def store(self, m: Delivery) -> None:
        self.has[m.goods] += 1
        self.paid += m.share


@always(each=Warehouse)
def the_queue_is_short(warehouse: Warehouse) -> bool:
    """An order that does not fit makes the oldest one go."""
    return warehouse.is_full or len(warehouse.orders) < 2


@always(each=Shop)
def nobody_pays_too_much(shop: Shop) -> bool:
    """A third per delivery, exactly."""
    return shop.paid <= shop.MOST and shop.paid == Fraction(sum(shop.has.values()), 3)


@always(pairs=Shop)
def one_owner(one: Shop, other: Shop) -> bool:
    """There is one box of each kind."""
    return not (one.owns(APPLES) and other.owns(APPLES))


@reachable
def everything_is_sold(s) -> bool:
    return sum((shop.has for shop in s[Shop]), Counter()) == Counter({APPLES: 1, PEARS: 1})


def stock(shops: int = 3, generous: bool = False) -> System:
    """Shops that want apples, except for the last one, which wants pears."""
    wanted = [APPLES] * (shops - 1) + [PEARS]
    return System(
        [Warehouse(generous=generous), *(Shop(wants=goods) for goods in wanted)],
        properties=[the_queue_is_short, nobody_pays_too_much, one_owner, everything_is_sold],
        name="stock",
    )

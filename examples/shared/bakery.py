"""Lamport's bakery: mutual exclusion for any number of customers, in the order of their tickets.

A customer takes a ticket that is greater than all others, and waits for everybody with a smaller one. To look at the
other tickets and to take one's own are two steps. `choosing` says that a customer is between them.

    plait check examples/shared/bakery.py                     mutual exclusion
    plait check examples/shared/bakery.py -p choosing=false   a customer with an equal ticket is overlooked
"""

from plait import Process, Shared, System, action, always, field


class Shop(Shared):
    """What the customers share. Ticket 0: none."""

    choosing: list[bool] = field(default_factory=list)
    tickets: list[int] = field(default_factory=list)


class Customer(Process):
    """Is served `rounds` times. `line` is the next line of its program."""

    shop: Shop
    me: int
    rounds: int = 1
    careful: bool = True
    line: str = "idle"
    next: int = 0
    """The ticket that it will take, and then the customer that it waits for."""

    @action(when=lambda self: self.line == "idle" and self.rounds > 0)
    def come(self) -> None:
        self.rounds -= 1
        if self.careful:
            self.shop.choosing[self.me] = True
        self.line = "look"

    @action(when=lambda self: self.line == "look")
    def look(self) -> None:
        self.next = max(self.shop.tickets) + 1
        self.line = "take"

    @action(when=lambda self: self.line == "take")
    def take(self) -> None:
        self.shop.tickets[self.me] = self.next
        self.next = 0
        self.line = "chosen"

    @action(when=lambda self: self.line == "chosen")
    def have_chosen(self) -> None:
        self.shop.choosing[self.me] = False
        self.line = "wait"

    @action(when=lambda self: self.line == "wait" and not self.shop.choosing[self.next])
    def compare(self) -> None:
        self.line = "compare"

    @action(when=lambda self: self.line == "compare" and not self.comes_first(self.next))
    def pass_by(self) -> None:
        self.next += 1
        self.line = "wait"
        if self.next == len(self.shop.tickets):
            self.next = 0
            self.line = "served"

    @action(when=lambda self: self.line == "served")
    def leave(self) -> None:
        self.shop.tickets[self.me] = 0
        self.line = "idle"

    def comes_first(self, other: int) -> bool:
        """Whether another customer is served before this one."""
        tickets = self.shop.tickets
        return tickets[other] > 0 and (tickets[other], other) < (tickets[self.me], self.me)


@always
def one_at_a_time(s):  # type: ignore[no-untyped-def]
    """At most one customer is served."""
    return sum(customer.line == "served" for customer in s[Customer]) <= 1


def bakery(customers: int = 2, rounds: int = 2, choosing: bool = True) -> System:
    """Customers that are served so many times each: tickets grow without bound otherwise."""
    shop = Shop(choosing=[False] * customers, tickets=[0] * customers)
    return System(
        [Customer(shop=shop, me=me, rounds=rounds, careful=choosing) for me in range(customers)],
        properties=[one_at_a_time],
    )

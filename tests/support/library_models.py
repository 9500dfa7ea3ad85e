"""Small models whose fields hold values of Python's library and of derived classes, one for each kind of value."""

from __future__ import annotations

import enum
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from plait import Message, Process, Property, System, action, always, field, on


def _system(role: type[Process], *properties: Property) -> System:
    return System([role(), role()], properties=properties, symmetric=[role])


class Item(Message):
    number: int


# -- deque -------------------------------------------------------------------------------------------------------------


class Queue(Process):
    waiting: deque[int] = field(default_factory=lambda: deque(maxlen=3))
    done: deque[int] = field(default_factory=deque)
    left: int = 2

    @action(when=lambda self: self.left and len(self.waiting) < 3)
    def put(self) -> None:
        if self.left % 2:
            self.waiting.append(self.left)
        else:
            self.waiting.appendleft(self.left)
        self.left -= 1
        self.broadcast(Queue, Item(self.waiting[0]), myself=False)

    @action(when=lambda self: self.waiting and self.waiting[0] != 2)
    def take(self) -> None:
        self.done.extend([self.waiting.popleft()])

    @action(when=lambda self: len(self.waiting) > 1)
    def turn(self) -> None:
        self.waiting.rotate(1)
        assert sum(x for x in self.waiting) <= 9

    @on(Item)
    def more(self, m: Item) -> None:
        if m.number not in self.done and len(self.done) < 3:
            self.done.append(m.number)
        elif self.done:
            self.done.pop()


@always(each=Queue)
def short(queue: Queue) -> bool:
    return len(queue.waiting) <= (queue.waiting.maxlen or 0) and all(x > 0 for x in queue.done)


# -- defaultdict -------------------------------------------------------------------------------------------------------


class Index(Process):
    lists: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    counts: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    sets: defaultdict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    left: int = 3

    @action(when=lambda self: self.left > 0)
    def tell(self) -> None:
        self.left -= 1
        self.counts["told"] += 1
        self.broadcast(Index, Item(self.left), myself=False)

    @on(Item)
    def hear(self, m: Item) -> None:
        self.lists[m.number % 2].append(m.number)
        self.sets[m.number].add(self.counts["told"])
        if not self.sets[5] and 5 in self.sets:
            del self.sets[5]


@always(each=Index)
def bounded(index: Index) -> bool:
    return sum(index.counts.values()) <= 3 and all(len(numbers) <= 3 for numbers in index.lists.values())


# -- Counter -----------------------------------------------------------------------------------------------------------


class Ledger(Process):
    has: Counter[str] = field(default_factory=lambda: Counter(a=2, b=1))
    sent: Counter[int] = field(default_factory=Counter)
    left: int = 3

    @action(when=lambda self: self.has["a"] > 0 and self.left > 0 and self.sent.total() < 3)
    def give(self) -> None:
        self.left -= 1
        self.has["a"] -= 1
        self.has += Counter("b")
        self.sent.update([self.has["a"]])
        self.broadcast(Ledger, Item(self.has.most_common(1)[0][1]), myself=False)

    @on(Item)
    def receive(self, m: Item) -> None:
        self.has = self.has + Counter("a") if m.number > 1 else self.has - Counter("b")
        self.sent.subtract({m.number: 1})


@always(pairs=Ledger)
def nothing_is_lost(one: Ledger, other: Ledger) -> bool:
    return (one.has + other.has)["c"] == 0 and sum((one.has, other.has), Counter()).total() < 20


# -- OrderedDict -------------------------------------------------------------------------------------------------------


class Cache(Process):
    recent: OrderedDict[int, str] = field(default_factory=OrderedDict)
    left: int = 4

    @action(when=lambda self: self.left > 0)
    def ask(self) -> None:
        self.left -= 1
        self.broadcast(Cache, Item(self.left % 3))

    @on(Item)
    def use(self, m: Item) -> None:
        if m.number in self.recent:
            self.recent.move_to_end(m.number)
        else:
            self.recent[m.number] = "x" * m.number
        if len(self.recent) > 2:
            self.recent.popitem(last=False)


@always(each=Cache)
def small(cache: Cache) -> bool:
    return len(cache.recent) <= 2 and (cache.recent == OrderedDict(cache.recent.items()))


# -- Flag --------------------------------------------------------------------------------------------------------------


class Right(enum.Flag):
    NONE = 0
    READ = enum.auto()
    WRITE = enum.auto()
    BOTH = READ | WRITE
    SHARE = enum.auto()


class Holder(Process):
    rights: Right = Right.BOTH

    @action(when=lambda self: Right.WRITE in self.rights)
    def close(self) -> None:
        self.rights &= ~Right.WRITE
        self.broadcast(Holder, Item(self.rights.value), myself=False)

    @action(when=lambda self: self.rights and not self.rights & Right.SHARE)
    def share(self) -> None:
        self.rights |= Right.SHARE

    @on(Item)
    def flip(self, m: Item) -> None:
        self.rights ^= Right(m.number)


@always(each=Holder)
def known(holder: Holder) -> bool:
    return len(holder.rights) == sum(1 for _ in holder.rights) and (bool(holder.rights) or holder.rights is Right.NONE)


# -- classes that derive from str, int and tuple -------------------------------------------------------------------------


class Name(str):
    def loud(self) -> str:
        return self.upper() + "!"


class Amount(int):
    @property
    def is_much(self) -> bool:
        return self > 2


class Pair(tuple[int, int]):
    def swapped(self) -> Pair:
        return Pair((self[1], self[0]))


class Entry(NamedTuple):
    name: str
    amount: int = 0

    def more(self) -> Entry:
        return self._replace(amount=self.amount + 1)


class Sent(Message):
    name: Name
    amount: Amount
    pair: Pair


class Account(Process):
    name: Name = Name("ann")
    amount: Amount = Amount(3)
    pair: Pair = Pair((1, 2))
    entry: Entry = Entry("x")
    seen: dict[str, int] = field(default_factory=dict)

    @action(when=lambda self: self.amount.is_much)
    def pay(self) -> None:
        self.amount = Amount(self.amount - 1)
        self.pair = self.pair.swapped()
        self.broadcast(Account, Sent(self.name, self.amount, self.pair))

    @on(Sent)
    def book(self, m: Sent) -> None:
        self.seen[m.name.loud()] = m.amount + len(m.pair)
        first, _ = m.pair
        if first > 1 and m.name == "ann":
            self.entry = self.entry.more()
        if self.name.startswith("ann") and self.entry.amount < 2:
            self.name = Name(f"{self.name}y")


@always(each=Account)
def sane(account: Account) -> bool:
    return account.amount <= 3 and account.name[:3] == "ann" and sorted(account.pair) == [1, 2]


# -- dataclasses with inheritance --------------------------------------------------------------------------------------


@dataclass
class Job:
    size: int
    steps: int = 0

    def work(self) -> None:
        self.steps += self.speed()

    def speed(self) -> int:
        return 1


@dataclass
class FastJob(Job):
    boost: int = 2

    def speed(self) -> int:
        return super().speed() * self.boost


@dataclass(frozen=True)
class Report:
    size: int


@dataclass(frozen=True)
class LongReport(Report):
    words: tuple[str, ...] = ()


class Finished(Message):
    report: Report


class Worker(Process):
    jobs: list[Job] = field(default_factory=lambda: [Job(2), FastJob(4)])
    reports: list[Report] = field(default_factory=list)

    @action(when=lambda self: self.jobs and self.jobs[0].steps < self.jobs[0].size)
    def work(self) -> None:
        self.jobs[0].work()

    @action(when=lambda self: self.jobs and self.jobs[0].steps >= self.jobs[0].size)
    def finish(self) -> None:
        job = self.jobs.pop(0)
        report = LongReport(job.size, ("fast",)) if isinstance(job, FastJob) else Report(job.size)
        self.broadcast(Worker, Finished(report), myself=False)

    @on(Finished)
    def note(self, m: Finished) -> None:
        if m.report not in self.reports:
            self.reports.append(m.report)


@always(each=Worker)
def few(worker: Worker) -> bool:
    return all(isinstance(report, Report) and report.size in (2, 4) for report in worker.reports)


# -- Fraction and Decimal ----------------------------------------------------------------------------------------------


class Share(Message):
    part: Fraction


class Partner(Process):
    owns: Fraction = Fraction(1, 2)
    left: int = 2

    @action(when=lambda self: self.left > 0 and self.owns > Fraction(1, 8))
    def give(self) -> None:
        self.left -= 1
        part = self.owns / 3
        self.owns -= part
        self.broadcast(Partner, Share(part), myself=False)

    @on(Share)
    def get(self, m: Share) -> None:
        self.owns += m.part


@always(pairs=Partner)
def at_most_all(one: Partner, other: Partner) -> bool:
    return 0 < one.owns + other.owns <= 1


class Price(Process):
    price: Decimal = Decimal("1.00")

    @action(when=lambda self: self.price < Decimal("1.20"))
    def rise(self) -> None:
        self.price += Decimal("0.05")


@always(each=Price)
def cheap(price: Price) -> bool:
    return price.price <= Decimal("1.20")


MODELS: dict[str, Callable[[], System]] = {
    "deque": lambda: _system(Queue, short),
    "defaultdict": lambda: _system(Index, bounded),
    "Counter": lambda: _system(Ledger, nothing_is_lost),
    "OrderedDict": lambda: _system(Cache, small),
    "Flag": lambda: _system(Holder, known),
    "derived": lambda: _system(Account, sane),
    "dataclass": lambda: _system(Worker, few),
    "Fraction": lambda: _system(Partner, at_most_all),
    "Decimal": lambda: _system(Price, cheap),
}
"""By kind of value."""
NATIVE = tuple(name for name in MODELS if name != "Decimal")
"""The kinds that the virtual machine has."""

"""Values of Python's library and of derived classes: what code can tell apart is a different value, and nothing is lost."""

from __future__ import annotations

import enum
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import pytest

from plait import Message, Pid, Process, Property, System, action, always, check, final, init, on
from plait._native import Codec
from plait.check.explain.replay import replay
from plait.kernel.values import exact, text, to_data
from plait.model.loading.convert import NotConvertibleError, convert
from plait.report.itf import load_trace
from plait.rounds.program.creation_order import renamed
from plait.rounds.program.protocol import key_of
from tests.oracle.explorer import explore
from tests.oracle.orbits import orbits
from tests.oracle.relation import freeze, thaw
from tests.support.bad_models import explained

T = TypeVar("T")


class Right(enum.Flag):
    READ = 1
    WRITE = 2
    BOTH = 3
    SHARE = 4


class Bits(enum.IntFlag):
    LOW = 1


class Weight(int):
    """Says the wrong thing about itself."""

    def __str__(self) -> str:
        return "heavy"

    def __add__(self, other: int) -> int:
        return 99

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int)

    def __hash__(self) -> int:
        return 0


class Name(str):
    def __str__(self) -> str:
        return "somebody"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and str.lower(self) == str.lower(other)

    def __hash__(self) -> int:
        return hash(self.lower())


class Crew(tuple[Any, ...]):
    def __new__(cls, *members: Any) -> Crew:
        return super().__new__(cls, sorted(members))

    def __iter__(self) -> Any:
        return iter(())

    def joined(self, one: Any) -> Crew:
        return Crew(*tuple.__iter__(self), one)


class Pair(NamedTuple):
    one: int
    two: int = 0


class Doubled(Pair):
    def __new__(cls, one: int, two: int = 0) -> Doubled:
        return super().__new__(cls, 2 * one, two)


@dataclass
class Shape:
    at: int = 0


@dataclass
class Circle(Shape):
    radius: Fraction = Fraction(1)
    tags: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Fixed:
    at: int = 0


@dataclass(frozen=True, slots=True)
class Ball(Fixed):
    size: int = 1


@dataclass
class Box(Generic[T]):
    content: T


def moved() -> OrderedDict[str, int]:
    value = OrderedDict(a=1, b=2)
    value.move_to_end("a")
    return value


VALUES: tuple[Callable[[], Any], ...] = (
    *(lambda: deque([1, 2]), lambda: deque([2, 1]), lambda: deque([1, 2], 2), lambda: deque([1, 2], 3), lambda: [1, 2]),
    *(lambda: {"a": 1}, lambda: Counter(a=1), lambda: Counter(a=1, b=0), lambda: OrderedDict(a=1)),
    *(lambda: defaultdict(int, a=1), lambda: defaultdict(list, a=1), lambda: defaultdict(None, a=1)),
    *(lambda: defaultdict(Shape, a=1), lambda: OrderedDict(a=1, b=2), moved),
    *(lambda: Right.READ | Right.SHARE, lambda: Right(0), lambda: Right.BOTH, lambda: ~Right.READ, lambda: Bits(6)),
    *(lambda: 1, lambda: True, lambda: Weight(1), lambda: Weight(2), lambda: Weight(2**70), lambda: Weight(-1)),
    *(lambda: "a", lambda: Name("a"), lambda: Name("A")),
    *(lambda: (1, 2), lambda: Crew(2, 1), lambda: Crew(), lambda: Pair(1, 2), lambda: Pair(2), lambda: Doubled(1)),
    *(lambda: Fraction(1), lambda: Fraction(-2, 3), lambda: Fraction(2**70, 3)),
    *(lambda: Decimal("1.0"), lambda: Decimal("1.00"), lambda: Decimal("1E+3"), lambda: Decimal("-0"), Decimal),
    *(lambda: Decimal("NaN"), lambda: Decimal("sNaN7"), lambda: Decimal("-Infinity")),
    *(Shape, Circle, lambda: Circle(at=1), Fixed, Ball, lambda: Ball(1, 2), lambda: Box(3), lambda: Box(Box(3))),
)


def test_what_code_can_tell_apart_is_different_and_nothing_is_lost() -> None:
    codec = Codec(Pid)
    contents = [codec.encode(make()) for make in VALUES]
    assert len(set(contents)) == len(VALUES)
    for make, content in zip(VALUES, contents, strict=True):
        again = codec.decode(content)
        assert type(again) is type(make())
        assert freeze(again) == freeze(make())  # the oracle's own notion of content
        assert codec.encode(again) == content
        assert codec.encode((make(), [again]))  # also inside of others
    # The same holds for data of traces, for keys of the sequential program, and for the oracle.
    assert len({exact(to_data(make())) for make in VALUES}) == len(VALUES)
    assert len({key_of(make()) for make in VALUES}) == len(VALUES)
    assert len({freeze(make()) for make in VALUES}) == len(VALUES)
    assert all(freeze(thaw(freeze(make()))) == freeze(make()) for make in VALUES)


def test_what_code_cannot_tell_apart_is_equal() -> None:
    codec = Codec(Pid)
    one, other = Counter("ab"), Counter("ba")
    assert codec.encode(one) == codec.encode(other)
    assert codec.encode(defaultdict(int, a=1, b=2)) == codec.encode(defaultdict(int, b=2, a=1))
    assert codec.encode(Right.READ | Right.WRITE) == codec.encode(Right.BOTH)
    assert codec.encode(Fraction(2, 4)) == codec.encode(Fraction(1, 2))
    with localcontext() as context:
        context.capitals = 0
        assert codec.encode(Decimal("1E+9")) == Codec(Pid).encode(Decimal("1e+9"))


@pytest.mark.parametrize(
    ("make", "shown"),
    [
        (lambda: deque([1], 3), "deque([1], 3)"),
        (lambda: Counter(a=1), "Counter({'a': 1})"),
        (lambda: defaultdict(int, a=1), "defaultdict(int, {'a': 1})"),
        (moved, "OrderedDict([('b', 2), ('a', 1)])"),
        (lambda: Right.READ | Right.SHARE, "Right.READ|SHARE"),
        (lambda: Right(0), "Right(0)"),
        (lambda: [Weight(1), Name("a"), Crew(2, 1)], "[Weight(1), Name('a'), Crew((1, 2))]"),
        (lambda: (Fraction(1, 2), Decimal("1.0")), "(Fraction(1, 2), Decimal('1.0'))"),
    ],
)
def test_values_are_shown_as_python_makes_them(make: Callable[[], Any], shown: str) -> None:
    assert text(to_data(make())) == shown


def test_flags_are_parameters() -> None:
    assert convert("read|share", Right) == Right.READ | Right.SHARE
    for value in (Right.READ | Right.SHARE, Right.BOTH, Right(0), Right.READ):
        assert convert(to_data(value), Right, parse=False) is value
    with pytest.raises(NotConvertibleError):
        convert("read|eat", Right)


def with_attribute(value: Any, name: str) -> Any:
    setattr(value, name, 1)
    return value


class Deck(deque[int]): ...


class Bag(Counter[str]): ...


class Slotted(str):
    __slots__ = ("hidden",)


class Stamped(Decimal): ...


REFUSED: dict[Callable[[], Any], tuple[str, ...]] = {
    lambda: defaultdict(lambda: 0): ("default_factory of a defaultdict is the function <lambda>",),
    lambda: Deck([1]): ("Deck", "cannot be part of a state"),
    lambda: Bag("a"): ("Bag", "cannot be part of a state"),
    lambda: Stamped(1): ("Stamped", "cannot be part of a state"),
    lambda: with_attribute(Weight(1), "unit"): ("Weight", "unit", "not a part of its content"),
    lambda: with_attribute(Slotted("a"), "hidden"): ("Slotted", "hidden"),
    lambda: with_attribute(Crew(), "boat"): ("Crew", "boat"),
    lambda: with_attribute(Counter(), "total_"): ("Counter", "total_"),
    lambda: with_attribute(OrderedDict(), "limit"): ("OrderedDict", "limit"),
    lambda: with_attribute(Circle(), "dirty"): ("Circle", "dirty"),
    lambda: Box[int](3): ("Box", "__orig_class__", "typing"),
    lambda: [(shared := deque([1])), shared]: ("the same deque object", "two places"),
}


@pytest.mark.parametrize("make", REFUSED, ids=lambda make: " ".join(REFUSED[make]))
def test_what_would_change_its_meaning_is_refused_by_name(make: Callable[[], Any]) -> None:
    class Node(Process):
        value: Any = None

        @action(when=lambda self: self.value is None)
        def go(self) -> None:
            self.value = make()

    assert explained(lambda: check(System([Node()])), "Node.go: field value", *REFUSED[make]).hint


# -- models that say the same with other values ------------------------------------------------------------------------


class Item(Message):
    number: int


class Holder(Process):
    """Keeps what comes in `held`, in a way of its own."""

    held: Any

    @init
    def start(self) -> None:
        for number in range(4):
            self.send(self.id, Item(number % 3))

    def keep(self, number: int) -> None: ...

    @on(Item)
    def take(self, m: Item) -> None:
        self.keep(m.number)


def holder(first: Callable[[], Any], keep: Callable[[Any, int], Any]) -> System:
    cls = type("Keeper", (Holder,), {"keep": keep, "__annotations__": {}, "__module__": __name__})
    few: Property = always(lambda p: len(p.held) <= 9, each=cls, name="few")
    return System([cls(held=first())], properties=[few, final(lambda s: True, name="ends")])


def push(self: Any, number: int) -> None:
    self.held.append(number)


def push_list(self: Any, number: int) -> None:
    self.held = [*self.held, number][-2:]


def count(self: Any, number: int) -> None:
    self.held[number] += 1


def count_dict(self: Any, number: int) -> None:
    self.held[number] = self.held.get(number, 0) + 1


def recent(self: Any, number: int) -> None:
    self.held[number] = True
    self.held.move_to_end(number)


def recent_list(self: Any, number: int) -> None:
    self.held = [n for n in self.held if n != number] + [number]


def flags(self: Any, number: int) -> None:
    self.held.append((self.held[-1] if self.held else Right(0)) ^ Right(1 << number))


def flags_set(self: Any, number: int) -> None:
    self.held.append((self.held[-1] if self.held else frozenset()) ^ {number})


def halves(self: Any, number: int) -> None:
    self.held.append((self.held[-1] if self.held else Fraction(0)) + Fraction(number, 2))


def halves_int(self: Any, number: int) -> None:
    self.held.append((self.held[-1] if self.held else 0) + number)


TWINS: list[tuple[Any, Any, Any, Any]] = [
    (lambda: deque(maxlen=2), push, list, push_list),
    (Counter, count, dict, count_dict),
    (lambda: defaultdict(int), count, dict, count_dict),
    (OrderedDict, recent, list, recent_list),
    (list, flags, list, flags_set),
    (list, halves, list, halves_int),
]


@pytest.mark.parametrize(("first", "keep", "plain", "by_hand"), TWINS, ids=lambda f: getattr(f, "__name__", None))
@pytest.mark.parametrize("options", [{}, {"native": "off"}, {"search": "dfs"}, {"reduce": "por"}], ids=str)
def test_models_with_library_values_are_as_large_as_those_without(
    first: Any, keep: Any, plain: Any, by_hand: Any, options: dict[str, Any]
) -> None:
    found, other = (check(s, workers=1, **options).statistics for s in (holder(first, keep), holder(plain, by_hand)))
    assert (found.states, found.transitions, found.terminal_states) == (
        *(other.states, other.transitions),
        other.terminal_states,
    )
    if not options:
        truth = explore(holder(first, keep))
        assert (found.states, found.transitions) == (truth.states, truth.transitions)


def test_traces_hold_all_values(tmp_path: Path) -> None:
    class Keeper(Process):
        values: list[Any] = field(default_factory=list)

        @action(when=lambda self: len(self.values) < 3)
        def go(self) -> None:
            self.values = [make() for make in VALUES[len(self.values) :: 2]][:30]

    system = System([Keeper()], properties=[always(lambda s: len(s[Keeper][0].values) < 3, name="few")])
    trace = check(system, workers=1).trace
    assert trace is not None
    trace.save(tmp_path / "run.itf.json")
    assert load_trace(tmp_path / "run.itf.json") == trace
    assert len(list(replay(system, trace))) == 1
    for suffix in ("html", "svg", "txt"):
        trace.save(tmp_path / f"run.{suffix}")
    assert "Decimal(" in (tmp_path / "run.txt").read_text(encoding="utf-8")


# -- process ids inside ------------------------------------------------------------------------------------------------


class Hello(Message): ...


def meeting(kind: str, count: int = 3) -> System:
    class Guest(Process):
        known: Any = field(default_factory={"crew": Crew, "queue": deque, "names": OrderedDict, "marks": Counter}[kind])

        @init
        def greet(self) -> None:
            self.broadcast(Guest, Hello(), myself=False)

        @on(Hello)
        def meet(self, m: Hello) -> None:
            match kind:
                case "crew":
                    self.known = self.known.joined(m.sender)
                case "queue":
                    self.known.append(m.sender)
                case "names":
                    self.known[m.sender] = deque([self.id], 1)
                case "marks":
                    self.known[m.sender] += 1

    acquainted = always(lambda s: all(len(p.known) <= count for p in s[Guest]), name="acquainted")
    return System([Guest() for _ in range(count)], properties=[acquainted], symmetric=[Guest])


@pytest.mark.parametrize("native", ["auto", "off"])
@pytest.mark.parametrize("kind", ["queue", "names", "marks"])
def test_symmetry_renames_inside(kind: str, native: Any) -> None:
    system = meeting(kind)
    truth = explore(system)
    assert check(system, workers=1, native=native).statistics.states == truth.states
    found = check(system, workers=1, reduce="symmetry", native=native).statistics
    assert found.states == orbits(system, truth).states < truth.states


def test_an_order_that_a_class_keeps_is_no_symmetry() -> None:
    """A crew is sorted by process ids. So the processes are not interchangeable, and Plait says so."""
    explained(lambda: check(meeting("crew"), reduce="symmetry", workers=1), "meet", "Guest")


def test_rounds_rename_inside() -> None:
    a, b = Pid("P", 0), Pid("P", 1)
    value = [deque([a], 3), OrderedDict([(b, 1), (a, 2)]), Counter([a]), defaultdict(list, {a: [b]}), Pair(a, b)]  # type: ignore[arg-type]
    again = renamed(value, {a: b, b: a})
    assert again == [deque([b], 3), OrderedDict([(a, 1), (b, 2)]), Counter([b]), defaultdict(list, {b: [a]}), (b, a)]
    assert [type(v) for v in again] == [type(v) for v in value]
    assert again[0].maxlen == 3
    assert again[3].default_factory is list


# -- reading is writing, with a defaultdict ----------------------------------------------------------------------------


class Lazy(Process):
    table: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    x: int = 0
    turns: int = 0

    @action(when=lambda self: self.turns < 2)
    def go(self) -> None:
        self.turns += 1
        self.x = self.choose([0, 1])

    @action(when=lambda self: self.turns == 2)
    def look(self) -> None:
        self.turns += 1
        self.table[self.x]


def test_a_read_that_adds_a_key_is_no_read() -> None:
    class Asks(Lazy):
        @action(when=lambda self: self.table[3] > 0)
        def never(self) -> None: ...

    explained(lambda: check(System([Asks()])), "Asks.never", "Asks0")
    peeks = always(lambda s: s[Lazy][0].table[5] == 0, name="peeks")
    explained(lambda: check(System([Lazy()], properties=[peeks])), "property peeks changes", "Lazy0.table")


@pytest.mark.parametrize("reduce", ["none", "auto", "por"])
def test_what_a_read_depends_on_is_relevant(reduce: Any) -> None:
    """The key that is added depends on `x`, although no assignment says so."""
    ones = always(lambda s: 1 not in s[Lazy][0].table, name="ones")
    system = System([Lazy()], properties=[ones])
    assert explore(system).violated == {"ones"}
    assert check(system, reduce=reduce, workers=1).status == "violated"

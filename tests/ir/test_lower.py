"""What is lowered, what is refused, and the reasons."""

from __future__ import annotations

import dataclasses
import enum
import functools
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from plait import Message, Monitor, Pid, Process, System, action, always, field, on
from plait._native import Codec, Machine
from plait.ir import nodes
from plait.ir.lower import Lowered, lower

HERE = Path(__file__).name
LIMIT = 3
SEEN: list[int] = []
counter = 0


class Ping(Message):
    number: int = 0


class Odd(enum.IntEnum):
    ONE = 1


@dataclasses.dataclass(frozen=True)
class Loud:
    number: int

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1


@dataclasses.dataclass(frozen=True)
class Checked:
    number: int

    def __post_init__(self) -> None:
        assert self.number >= 0


class Entry(NamedTuple):
    term: int
    author: str = "me"

    def later(self, by: int = 1) -> Entry:
        return self._replace(term=self.term + by)


def count() -> None:
    global counter
    counter += 1


def traced(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(self: Any) -> Any:
        return function(self)

    return wrapper


def twice(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


@functools.lru_cache
def cached(number: int) -> int:
    return number + 1


def tries() -> int:
    try:
        return 1
    finally:
        pass


class Base(Process):
    value: int = 0
    log: list[int] = field(default_factory=list)
    STEP = 2

    def step(self) -> int:
        return self.STEP

    @staticmethod
    def plus(a: int, b: int = 1) -> int:
        return a + b

    @classmethod
    def scaled(cls, number: int) -> int:
        return number * cls.STEP

    @property
    def size(self) -> int:
        return len(self.log)


class Node(Base):
    STEP = 5

    def step(self) -> int:
        return super().step() + 1


def lowered(function: Any, *, base: type[Process] = Node, **more: Any) -> Lowered:
    """The program of a system with this handler."""
    cls = type("Subject", (base,), {"__module__": __name__, "handler": action(function)})
    return lower(System([cls()], **more), Codec(Pid).encode)


def reason(function: Any) -> str | None:
    found = {f.label: f.reason for f in lowered(function).functions}["Subject.handler"]
    return None if found is None else str(found)


def run(function: Any) -> list[Any]:
    """The fields of a process after a step, as the virtual machine executes it."""
    program = lowered(function).program
    codec = Codec(Pid)
    before = [codec.encode(0), codec.encode([])]
    outcomes, _ = Machine(nodes.encoded(program)).step(0, 0, before, [])
    return [codec.decode(now or then) for now, then in zip(outcomes[0][0], before, strict=True)]


# -- what is lowered -------------------------------------------------------------------------------------------------


def resolves(self: Any) -> None:
    self.value = self.step() + self.plus(1) * 100 + self.scaled(3) * 1000 + self.size + Node.plus(1, b=2) * 100000


def test_methods_of_the_process_are_resolved_for_its_class() -> None:
    assert run(resolves) == [6 + 200 + 15000 + 300000, []]


def local_functions(self: Any) -> None:
    def add(a: int, b: int = 4) -> int:
        total = a + b + self.value
        return total  # noqa: RET504

    double = lambda x: 2 * x  # noqa: E731
    self.log = [add(1), add(1, b=2), double(add(0)), *map(double, [1, 2])]


def test_nested_functions_share_the_frame() -> None:
    assert run(local_functions) == [0, [5, 3, 8, 2, 4]]


def shadowing(self: Any) -> None:
    x = 1
    self.log = [x for x in (5, 6)]  # noqa: C416
    self.log.append(x)
    self.log += [(lambda x: x * 10)(2), x]


def test_comprehensions_and_lambdas_have_their_own_variables() -> None:
    assert run(shadowing) == [0, [5, 6, 1, 20, 1]]


def a_decorated_handler(self: Any) -> None:
    self.value += 1


def test_wrappers_are_looked_through() -> None:
    assert run(traced(a_decorated_handler)) == [1, []]
    assert "**kwargs" in str(reason(twice(a_decorated_handler)))


def only_for_type_checkers(self: Any) -> None:
    if TYPE_CHECKING:
        print(self)  # noqa: T201
    self.value = LIMIT


def test_a_branch_that_is_never_taken_is_left_out() -> None:
    assert run(only_for_type_checkers) == [3, []]


def in_call_order(self: Any) -> None:
    numbers = [1, 2]
    entry = Entry(author=str(numbers.pop()), term=numbers.pop())
    self.value = entry.later().later(by=10).term
    self.log = [len(entry.author), int(entry.author == "2")]


def test_arguments_are_evaluated_in_the_order_of_the_call() -> None:
    assert run(in_call_order) == [12, [1, 1]]


def one_generator(self: Any) -> None:
    own = (n for n in range(5) if n > self.value)
    self.value = next((n for n in own if n % 2 == 0), -1)


def test_a_generator_that_the_next_statement_consumes() -> None:
    assert run(one_generator) == [2, []]


def test_the_class_table_has_classes_by_their_qualified_names() -> None:
    program = lowered(in_call_order).program
    entry = next(c for c in program.classes if c.name == f"{__name__}.Entry")
    assert (entry.kind, entry.fields, entry.ordered, entry.mutable) == ("tuple", ["term", "author"], True, False)
    assert set(entry.methods) == {"later", "later/0/by"}


def test_functions_are_lowered_once_for_each_class() -> None:
    class One(Node):
        @action
        def go(self) -> None:
            self.value = self.step()

    class Two(Node):
        STEP = 9

        @action
        def go(self) -> None:
            self.value = self.step()

    program = lower(System([One(), One(), Two()]), Codec(Pid).encode).program
    steps = [f for f in program.functions if f.name == "Node.step"]
    assert len(steps) == 2
    assert [p.handlers for p in program.processes] == [0, 0, 1]


# -- what is refused -------------------------------------------------------------------------------------------------


def with_try(self: Any) -> None:
    try:
        self.value = 1
    finally:
        self.value += 1


def calls_a_function_with_try(self: Any) -> None:
    self.value = tries()


def with_with(self: Any) -> None:
    with open("x") as file:  # noqa: PTH123
        self.value = len(file.read())


def prints(self: Any) -> None:
    print(self.value)  # noqa: T201


def with_random(self: Any) -> None:
    self.value = random.randint(0, 1)


def with_import(self: Any) -> None:
    import math

    self.value = math.floor(0.5)


def undeclared(self: Any) -> None:
    self.other = 1


def reassigned_global(self: Any) -> None:
    self.value = counter


def changed_global(self: Any) -> None:
    SEEN.append(1)
    self.value = len(SEEN)


def with_kept_generator(self: Any) -> None:
    numbers = (n for n in self.log)
    self.value = sum(numbers) + len(self.log)
    self.log = list(numbers)


def with_kept_iterator(self: Any) -> None:
    numbers = zip(self.log, self.log, strict=True)
    self.log = [a for a, _ in numbers]


def with_kept_lambda(self: Any) -> None:
    functions = [lambda: 1]
    self.value = functions[0]()


def with_recursive_function(self: Any) -> None:
    def fall(n: int) -> int:
        return n if n < 1 else fall(n - 1)

    self.value = fall(3)


def with_mutual_recursion(self: Any) -> None:
    def even(n: int) -> bool:
        return n == 0 or odd(n - 1)

    def odd(n: int) -> bool:
        return n != 0 and even(n - 1)

    self.value = int(even(4))


def with_custom_equality(self: Any) -> None:
    self.value = int(Loud(1) == Loud(2))


def with_post_init(self: Any) -> None:
    self.value = Checked(1).number


def with_mixed_enum(self: Any) -> None:
    self.value = Odd.ONE + 1


def with_unknown_method(self: Any) -> None:
    self.value = self.log.no_such_method()


def with_yield(self: Any) -> None:
    self.log = list(generated())


def generated() -> Any:
    yield 1


def with_a_cached_function(self: Any) -> None:
    self.value = cached(self.value)


REFUSED = [
    (with_try, "try statement"),
    (calls_a_function_with_try, "try statement"),
    (with_with, "with statement"),
    (prints, "print(…)"),
    (with_random, "random.randint(…)"),
    (with_import, "import statement"),
    (undeclared, "self.other, which is no field, is assigned"),
    (reassigned_global, "counter, which a function reassigns"),
    (changed_global, "SEEN, which a function changes"),
    (with_kept_generator, "generator that is kept"),
    (with_kept_iterator, "iterator that is kept (zip)"),
    (with_kept_lambda, "function that is kept"),
    (with_recursive_function, "recursive nested function"),
    (with_mutual_recursion, "recursive nested function"),
    (with_custom_equality, "Loud, which defines __eq__"),
    (with_post_init, "Checked, which defines __post_init__"),
    (with_mixed_enum, "Odd, an enum that is also another type"),
    (with_unknown_method, ".no_such_method(…)"),
    (with_yield, "generator function"),
    (with_a_cached_function, "cached(…), which has a cache"),
]


@pytest.mark.parametrize(("function", "construct"), REFUSED, ids=lambda p: getattr(p, "__name__", ""))
def test_a_refusal_names_the_construct_and_the_line(function: Any, construct: str) -> None:
    found = reason(function)
    assert found is not None
    text, _, place = found.rpartition(", ")
    assert text.startswith(construct)
    assert place.startswith((f"{HERE}:", "random.py:"))
    if function is calls_a_function_with_try:
        line = int(place.partition(":")[2])
        assert "try:" in Path(__file__).read_text(encoding="utf-8").splitlines()[line - 1]


def test_a_function_without_source_is_refused() -> None:
    names: dict[str, Any] = {}
    exec("def handler(self):\n    self.value = 1\n", names)
    assert "has no source" in str(reason(names["handler"]))


def test_a_guard_or_property_with_effects_is_refused() -> None:
    class Sender(Process):
        done: bool = False

        @on(Ping, where=lambda self, m: self.send(m.sender, m))
        def take(self, m: Ping) -> None:
            self.done = True

    found = lower(System([Sender()]), Codec(Pid).encode)
    reasons = {f.label: f.reason for f in found.functions}
    assert "effect" in str(reasons["guard of Sender.take"])
    assert reasons["Sender.take"] is None
    handler = nodes.Handler(step=1, guard=None, guarded=True, quorum=None, accept=None, several=False)
    assert found.program.handlers == [[handler]]


def test_a_refused_property_and_monitor_leave_their_places_empty() -> None:
    class Audit(Monitor):
        count: int = 0

        def observe(self, process: Pid, event: Any) -> None:
            print(event)  # noqa: T201

    def fine(s: Any) -> bool:
        return all(p.value < 9 for p in s[Node])

    def refused(s: Any) -> bool:
        return bool(hash(tuple(p.value for p in s[Node])) or True)

    system = System([Node()], monitors=[Audit()], properties=[always(refused), always(fine)])
    program = lower(system, Codec(Pid).encode).program
    assert program.properties[0] is None
    assert program.properties[1] is not None
    assert [function for _, function in program.monitors] == [None]

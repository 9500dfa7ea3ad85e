"""Two interchangeable processes, and two states that are equal up to their names.

A driver gives the numbers 1 and 2 to two actors, in either order. Each actor makes an object with a value that depends
on its number. This is the example of DBSS, Figure 3. In the end, either the first actor is (1, 11) and the second is
(2, 12), or the other way round. The actors are declared `symmetric`: exchanging them leads from one of the two states
to the other. A search with `--reduce symmetry` keeps one state of each such pair.

This is possible because a state says which value belongs to which process. A plain list of values, such as 1, 2, 11,
12, could also mean (1, 12) and (2, 11).
"""

import dataclasses

from plait import Message, Process, System, action, always, on


class Number(Message):
    number: int


@dataclasses.dataclass
class Foo:
    """An object of an actor."""

    foo: int


class FooActor(Process):
    number: int | None = None
    inner: Foo | None = None

    @on(Number)
    def begin(self, m: Number):
        self.number = m.number
        self.inner = Foo(m.number + 10)


class Driver(Process):
    forgetful: bool
    done: bool = False

    @action(when=lambda self: not self.done)
    def assign(self):
        self.done = True
        left = [1, 2]
        for actor in self.ids(FooActor):
            number = self.choose(left)
            self.send(actor, Number(number))
            if not self.forgetful:
                left.remove(number)


@always
def numbers_differ(s):
    """No two actors have the same number."""
    numbers = [actor.number for actor in s[FooActor] if actor.number is not None]
    return len(set(numbers)) == len(numbers)


@always
def objects_match(s):
    """The object of an actor belongs to the number of the actor."""
    return all(actor.inner.foo == actor.number + 10 for actor in s[FooActor] if actor.inner is not None)


def two_actors(forgetful: bool = False) -> System:
    """A driver and two actors. With `forgetful`, the driver may give a number twice."""
    return System(
        [Driver(forgetful=forgetful), FooActor(), FooActor()],
        properties=[numbers_differ, objects_match],
        symmetric=[FooActor],
    )

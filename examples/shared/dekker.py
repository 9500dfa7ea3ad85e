"""Dekker's algorithm: the first solution of mutual exclusion for two threads.

Both threads may want to enter. Then the turn decides: the other one takes its wish back and waits.

    plait check examples/shared/dekker.py                  mutual exclusion, and no deadlock
    plait check examples/shared/dekker.py -p turns=false   nobody takes the wish back: both wait for ever
"""

from plait import Process, Shared, System, action, always, deadlock_free, field


class Memory(Shared):
    """What the threads share."""

    wants: list[bool] = field(default_factory=lambda: [False, False])
    turn: int = 0


class Thread(Process):
    """Enters its critical section again and again. `line` is the next line of its program."""

    memory: Memory
    me: int
    turns: bool = True
    line: str = "idle"

    @action(when=lambda self: self.line == "idle")
    def want(self) -> None:
        self.memory.wants[self.me] = True
        self.line = "look"

    @action(when=lambda self: self.line == "look" and not self.memory.wants[1 - self.me])
    def enter(self) -> None:
        self.line = "critical"

    @action(
        when=lambda self: (
            self.line == "look" and self.turns and self.memory.wants[1 - self.me] and self.memory.turn != self.me
        )
    )
    def give_way(self) -> None:
        self.memory.wants[self.me] = False
        self.line = "wait"

    @action(when=lambda self: self.line == "wait" and self.memory.turn == self.me)
    def want_again(self) -> None:
        self.memory.wants[self.me] = True
        self.line = "look"

    @action(when=lambda self: self.line == "critical")
    def pass_the_turn(self) -> None:
        self.memory.turn = 1 - self.me
        self.line = "leave"

    @action(when=lambda self: self.line == "leave")
    def leave(self) -> None:
        self.memory.wants[self.me] = False
        self.line = "idle"


@always
def mutual_exclusion(s):  # type: ignore[no-untyped-def]
    """At most one thread is in its critical section."""
    return sum(thread.line == "critical" for thread in s[Thread]) <= 1


def dekker(turns: bool = True) -> System:
    """Two threads."""
    memory = Memory()
    return System(
        [Thread(memory=memory, me=me, turns=turns) for me in (0, 1)],
        properties=[mutual_exclusion, deadlock_free()],
    )

"""Peterson's algorithm: mutual exclusion of two threads with three shared variables.

A thread raises its flag, gives the turn to the other one, and waits until the other one's flag is down or the turn is
its own. The order of the first two lines matters.

    plait check examples/shared/peterson.py                 mutual exclusion, and no thread waits for ever
    plait check examples/shared/peterson.py -p hasty=true   the turn is given before the flag is raised: both get in
"""

from plait import Process, Shared, System, action, always, field, leads_to, weak


class Memory(Shared):
    """What the threads share."""

    flag: list[bool] = field(default_factory=lambda: [False, False])
    turn: int = 0


class Thread(Process):
    """Enters its critical section again and again. `line` is the next line of its program."""

    memory: Memory
    me: int
    hasty: bool = False
    line: str = "idle"

    @action(when=lambda self: self.line == "idle")
    def begin(self) -> None:
        if self.hasty:
            self.memory.turn = 1 - self.me
        else:
            self.memory.flag[self.me] = True
        self.line = "second"

    @action(when=lambda self: self.line == "second")
    def go_on(self) -> None:
        if self.hasty:
            self.memory.flag[self.me] = True
        else:
            self.memory.turn = 1 - self.me
        self.line = "wait"

    @action(
        when=lambda self: self.line == "wait" and (not self.memory.flag[1 - self.me] or self.memory.turn == self.me)
    )
    def enter(self) -> None:
        self.line = "critical"

    @action(when=lambda self: self.line == "critical")
    def leave(self) -> None:
        self.memory.flag[self.me] = False
        self.line = "idle"


@always
def mutual_exclusion(s):  # type: ignore[no-untyped-def]
    """At most one thread is in its critical section."""
    return sum(thread.line == "critical" for thread in s[Thread]) <= 1


def peterson(hasty: bool = False) -> System:
    """Two threads."""
    memory = Memory()
    return System(
        [Thread(memory=memory, me=me, hasty=hasty) for me in (0, 1)],
        properties=[
            mutual_exclusion,
            leads_to(
                lambda s: s[Thread][0].line == "wait",
                lambda s: s[Thread][0].line == "critical",
                name="whoever_waits_gets_in",
            ),
        ],
        fairness=[weak(Thread)],
    )

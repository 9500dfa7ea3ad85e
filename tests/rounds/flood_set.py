"""FloodSet (Lynch, "Distributed Algorithms", 1996, section 6.2): consensus by flooding, if no message is lost.

Each process sends the values that it knows to all, phase after phase. After the last phase it decides on the smallest
value that it knows, in an action that sends nothing. The processes agree if some phase is without losses.
"""

from __future__ import annotations

from typing import Any

from plait import Message, Process, System, action, always, init, on, reachable, tagged


@tagged(phase="phase", round="Flood")
class Flood(Message):
    phase: int
    values: frozenset[int]


class Peer(Process):
    """Floods what it knows."""

    phases: int
    known: frozenset[int]
    phase: int = 1
    decided: int | None = None

    @init
    def start(self) -> None:
        self.broadcast(Peer, Flood(1, self.known))

    @on(Flood, where=lambda self, m: self.decided is None and m.phase == self.phase)
    def learn(self, m: Flood) -> None:
        self.known |= m.values

    @action(when=lambda self: self.phase < self.phases)
    def flood(self) -> None:
        self.phase += 1
        self.broadcast(Peer, Flood(self.phase, self.known))

    @action(when=lambda self: self.phase == self.phases and self.decided is None)
    def decide(self) -> None:
        self.decided = min(self.known)


class Listener(Process):
    """Sends nothing: it decides on what it hears in the first phase."""

    known: frozenset[int] = frozenset()
    decided: int | None = None

    @on(Flood, where=lambda self, m: self.decided is None and m.phase == 1)
    def learn(self, m: Flood) -> None:
        self.known |= m.values

    @action(when=lambda self: self.decided is None)
    def decide(self) -> None:
        self.decided = min(self.known, default=99)


def flood_set(inputs: tuple[int, ...] = (0, 1, 2), phases: int = 1) -> System:
    """Peers with these inputs."""

    @always
    def agreement(s: Any) -> bool:
        return len({p.decided for p in s[Peer] if p.decided is not None}) <= 1

    @reachable
    def decision(s: Any) -> bool:
        return all(p.decided is not None for p in s[Peer])

    return System(
        [Peer(phases=phases, known=frozenset({x})) for x in inputs], properties=[agreement, decision], rounds=["Flood"]
    )


def overheard(inputs: tuple[int, ...] = (0, 1)) -> System:
    """Peers, each of which also tells a listener."""

    class Talker(Peer):
        @init
        def tell(self) -> None:
            self.broadcast(Listener, Flood(1, self.known))

    @always
    def agreement(s: Any) -> bool:
        return len({p.decided for p in (*s[Talker], *s[Listener]) if p.decided is not None}) <= 1

    peers = [Talker(phases=1, known=frozenset({x})) for x in inputs]
    return System([Listener(), *peers], properties=[agreement], rounds=["Flood"])

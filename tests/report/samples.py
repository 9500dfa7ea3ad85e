"""Handmade traces that together show everything a trace can hold, and a strategy for random ones.

`Run` is a small recorder: it keeps the states consistent (pending messages, statuses, fields), so that the samples are
runs a real system could make, and the expected facts can be read off the calls.
"""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

from plait.kernel.trace import Event, Lane, Mark, Sent, Snapshot, Trace
from plait.kernel.verdict import PropertyResult, Statistics, Verdict

HOSTILE = "</script ></script></style><!--<script><b>&\"'<img src=x onerror=alert(1)>"


class Run:
    """Records a run: `step`, `lose`, `duplicate`, `crash` and `recover` append events; `trace` gives the result."""

    def __init__(self, lanes: dict[str, dict[str, Any]], unborn: tuple[str, ...] = (), **snapshot: Any) -> None:
        self.lanes = [Lane(name, name.rstrip("0123456789")) for name in lanes]
        self.fields = copy.deepcopy(lanes)
        self.pending: dict[str, list[int]] = {}
        self.status = dict.fromkeys(unborn, "unborn")
        self.monitors: dict[str, Any] = snapshot.get("monitors", {})
        self.budgets: dict[str, int] = snapshot.get("budgets", {})
        self.messages: list[Sent] = []
        self.events: list[Event] = []
        self.initial = self.snapshot()

    def snapshot(self) -> Snapshot:
        return copy.deepcopy(
            Snapshot(
                fields=self.fields,
                pending={lane: ids for lane, ids in self.pending.items() if ids},
                monitors=self.monitors,
                status=self.status,
                budgets=self.budgets,
            )
        )

    def message(self, sender: str, receiver: str, type_: str, fields: dict[str, Any]) -> int:
        self.messages.append(Sent(len(self.messages) + 1, type_, fields, sender, receiver))
        self.pending.setdefault(receiver, []).append(len(self.messages))
        return len(self.messages)

    def from_start(self, sender: str, receiver: str, type_: str, **fields: Any) -> int:
        number = self.message(sender, receiver, type_, fields)
        self.initial = self.snapshot()
        return number

    def record(self, lane: str, kind: Any, label: str, **what: Any) -> None:
        self.events.append(Event(lane=lane, kind=kind, label=label, state=self.snapshot(), **what))

    def step(
        self,
        lane: str,
        label: str,
        takes: tuple[int, ...] = (),
        sends: tuple[tuple[str, str, dict[str, Any]], ...] = (),
        sets: dict[str, Any] | None = None,
        **what: Any,
    ) -> list[int]:
        """One step of a process; gives the ids of what it sent."""
        for number in takes:
            self.pending[lane].remove(number)
        sent = [self.message(lane, receiver, type_, fields) for receiver, type_, fields in sends]
        changed = {f: (self.fields[lane].get(f), v) for f, v in (sets or {}).items() if self.fields[lane].get(f) != v}
        self.fields[lane].update(sets or {})
        for born in what.get("spawned", ()):
            self.status.pop(born)
        self.record(lane, "step", label, consumed=list(takes), sent=sent, changed=changed, **what)
        return sent

    def lose(self, number: int) -> None:
        receiver = self.messages[number - 1].receiver
        self.pending[receiver].remove(number)
        self.budgets["losses"] = self.budgets.get("losses", 1) - 1
        self.record(receiver, "lose", "lose", consumed=[number])

    def duplicate(self, number: int) -> int:
        m = self.messages[number - 1]
        copied = self.message(m.sender, m.receiver, m.type, m.fields)
        self.record(m.receiver, "duplicate", "duplicate", consumed=[number])
        return copied

    def crash(self, lane: str, *, recovers: bool) -> None:
        self.status[lane] = "down" if recovers else "crashed"
        if not recovers:
            self.pending[lane] = []
        self.record(lane, "crash", "crash")

    def recover(self, lane: str, sets: dict[str, Any]) -> None:
        del self.status[lane]
        changed = {f: (self.fields[lane][f], v) for f, v in sets.items() if self.fields[lane][f] != v}
        self.fields[lane].update(sets)
        self.record(lane, "recover", "recover", changed=changed)

    def trace(self, **what: Any) -> Trace:
        defaults: dict[str, Any] = {"target": "sample.py:model", "parameters": {}, "property": "agreement"}
        return Trace(
            **{**defaults, **what},
            lanes=self.lanes,
            messages=self.messages,
            initial=self.initial,
            events=self.events,
        )


def paxos() -> Trace:
    """Two proposers, three acceptors, a learner; a lost message, a crash with recovery, quorums, no agreement."""
    acceptors = ("Acceptor0", "Acceptor1", "Acceptor2")
    fields: dict[str, dict[str, Any]] = {
        f"Proposer{i}": {"ballot": 0, "value": None, "phase": {"#enum": "Phase.IDLE"}} for i in (0, 1)
    }
    fields |= {a: {"promised": 0, "accepted": None} for a in acceptors}
    fields["Learner0"] = {"learned": {"#set": []}}
    run = Run(fields, monitors={"History": []}, budgets={"losses": 1, "crashes": 1})

    def broadcast(type_: str, **data: Any) -> tuple[tuple[str, str, dict[str, Any]], ...]:
        return tuple((a, type_, data) for a in acceptors)

    def round_(proposer: str, ballot: int, value: str, quorum: tuple[int, int], lost: bool) -> list[int]:
        reads = run.step(
            proposer,
            "propose",
            sends=broadcast("Read", ballot=ballot),
            sets={"ballot": ballot, "value": value, "phase": {"#enum": "Phase.READ"}},
            choices=[value],
        )
        promises = []
        for i in quorum:
            promises += run.step(
                acceptors[i],
                "on_read",
                (reads[i],),
                ((proposer, "Promise", {"ballot": ballot, "accepted": None}),),
                {"promised": ballot},
                read=["promised", "accepted"],
            )
        if lost:
            run.lose(reads[3 - sum(quorum)])
        writes = run.step(
            proposer,
            "on_promises",
            tuple(promises),
            broadcast("Write", ballot=ballot, value=value),
            {"phase": {"#enum": "Phase.WRITE"}},
        )
        accepted = []
        for i in quorum:
            accepted += run.step(
                acceptors[i],
                "on_write",
                (writes[i],),
                (("Learner0", "Accept", {"ballot": ballot, "value": value}),),
                {"accepted": {"#tup": [ballot, value]}},
            )
        return accepted

    first = round_("Proposer0", 1, "a", (0, 1), lost=True)
    run.step(
        "Learner0",
        "on_accepts",
        tuple(first),
        sets={"learned": {"#set": ["a"]}},
        announced=[{"#type": "Learned", "value": "a"}],
    )
    run.crash("Acceptor1", recovers=True)
    run.recover("Acceptor1", {"promised": 0, "accepted": None})
    second = round_("Proposer1", 2, "b", (1, 2), lost=False)
    run.monitors["History"] = [{"#type": "Learned", "value": "a"}, {"#type": "Learned", "value": "b"}]
    run.step(
        "Learner0",
        "on_accepts",
        tuple(second),
        sets={"learned": {"#set": ["a", "b"]}},
        announced=[{"#type": "Learned", "value": "b"}],
        note="the learner now knows two values",
    )
    return run.trace(
        target="plait.protocols.paxos:faulty",
        parameters={"proposers": 2, "acceptors": 3},
        explanation="agreement is violated: Learner0.learned = {'a', 'b'}",
    )


def faults() -> Trace:
    """A duplicate, a crash-stop that drops messages, a send to the dead, a spawn, a self-message, pending ones."""
    run = Run(
        {"Client0": {"done": False}, "Server0": {"log": []}, "Server1": {"log": []}, "Worker0": {"job": None}},
        unborn=("Worker0",),
    )
    hello = run.from_start("Client0", "Server0", "Hello")
    put, lost = run.step("Client0", "start", sends=(("Server0", "Put", {"key": "x"}), ("Server1", "Put", {"key": "x"})))
    again = run.duplicate(put)
    (tick,) = run.step("Server0", "on_put", (put,), (("Server0", "Tick", {}),), {"log": ["x"]})
    run.step("Server0", "on_put", (again,), sets={"log": ["x", "x"]})
    run.crash("Server1", recovers=False)
    run.step("Server0", "on_tick", (tick,), (("Worker0", "Job", {"n": 2**40}),), spawned=["Worker0"])
    (dead,) = run.step("Client0", "retry", sends=(("Server1", "Put", {"key": "y"}),))
    run.pending["Server1"] = []
    run.events[-1] = Event(
        lane="Client0",
        kind="step",
        label="retry",
        state=run.snapshot(),
        sent=[dead],
        read=["done"],
        note="nobody listens",
    )
    run.step("Server0", "on_hello", (hello,), (("Client0", "Welcome", {}),))
    assert (hello, lost) == (1, 3)
    return run.trace(property="no_duplicates", explanation="Server0.log holds 'x' twice")


def lasso() -> Trace:
    """A token that goes round for ever: the last two steps repeat."""
    run = Run({"Node0": {"has": True}, "Node1": {"has": False}})
    run.step("Node0", "prepare", sets={"ready": True})
    (go,) = run.step("Node0", "pass_on", (), (("Node1", "Token", {}),), {"has": False})
    (back,) = run.step("Node1", "pass_on", (go,), (("Node0", "Token", {}),))
    run.step("Node0", "on_token", (back,), sets={"has": True})
    return run.trace(property="progress", loop=1, explanation="Node1 never keeps the token")


def redelivery() -> Trace:
    """A network that is a set: one message is taken twice and still waits, and an equal one adds nothing."""
    run = Run({"A0": {}, "B0": {"seen": 0}})
    (m,) = run.step("A0", "send", (), (("B0", "Ping", {}),))
    for seen in (1, 2):
        run.step("B0", "on_ping", (m,), sets={"seen": seen})
        run.pending["B0"].append(m)
        run.events[-1] = Event(
            lane="B0",
            kind="step",
            label="on_ping",
            state=run.snapshot(),
            consumed=[m],
            changed={"seen": (seen - 1, seen)},
        )
    (again,) = run.step("A0", "send", (), (("B0", "Ping", {}),))
    # The network is a set, which holds the same message already.
    run.pending["B0"].remove(again)
    run.events[-1] = Event(lane="A0", kind="step", label="send", state=run.snapshot(), sent=[again])
    return run.trace(property="once")


def initial_only() -> Trace:
    """The initial state itself is the counterexample."""
    return Run({"Node0": {"x": 1}}).trace(property="x_is_zero", explanation="Node0.x = 1")


def long(lanes: int = 15, steps: int = 60) -> Trace:
    """Many processes, many steps, messages that stay in flight for long."""
    names = [f"Replica{i}" for i in range(lanes)]
    run = Run({name: {"term": 0, "votes": 0, "log": []} for name in names})
    for step in range(steps):
        name = names[(step * 7) % lanes]
        takes = tuple(run.pending.get(name, [])[: 1 + step % 4])
        others = tuple(names[(step * 7 + d) % lanes] for d in ((1, 2, 5) if step % 3 == 0 else (3,)))
        run.step(
            name,
            "on_vote" if takes else "timeout",
            takes,
            tuple((o, "Vote", {"term": step // 8 + 1, "candidate": {"#pid": name}}) for o in others),
            {"term": step // 8 + 1, "votes": step % 5, "log": [*run.fields[name]["log"], step]},
        )
    return run.trace(target="plait.protocols.raft:model", parameters={"replicas": lanes}, property="election_safety")


def hostile() -> Trace:
    """Every string a user can choose is an attack on HTML."""
    run = Run({HOSTILE: {HOSTILE: HOSTILE}}, monitors={HOSTILE: HOSTILE}, budgets={HOSTILE: 1})
    (m,) = run.step(
        HOSTILE, HOSTILE, (), ((HOSTILE, HOSTILE, {HOSTILE: HOSTILE}),), {HOSTILE: "\x00\x1b[2J"}, note=HOSTILE
    )
    run.step(HOSTILE, HOSTILE, (m,), announced=[HOSTILE], choices=[HOSTILE], read=[HOSTILE])
    return run.trace(target=HOSTILE, parameters={HOSTILE: HOSTILE}, property=HOSTILE, explanation=HOSTILE)


SAMPLES = {f.__name__: f for f in (paxos, faults, lasso, redelivery, initial_only, long, hostile)}

STATISTICS = Statistics(
    states=12_345,
    transitions=88_421,
    terminal_states=17,
    depth=31,
    seconds=0.25,
    python_calls=321,
    search="bfs",
    workers=4,
    collision_probability=4.1e-12,
    memory_bytes=3 * 2**20,
    table_bytes=197_520,
)


def verdict(trace: Trace | None = None, **what: Any) -> Verdict:
    """A verdict: violated when there is a trace, else one that holds."""
    if trace is not None:
        name = trace.property or "?"
        properties = [
            PropertyResult(name, "always", "violated", trace.explanation, trace),
            PropertyResult("some_value_is_chosen", "reachable", "holds", "an example was found"),
            PropertyResult("deadlock_free", "deadlock", "inconclusive", "the search stopped at the violation"),
        ]
        defaults: dict[str, Any] = {"status": "violated", "properties": properties, "property": name, "trace": trace}
    else:
        properties = [
            PropertyResult("agreement", "always", "holds"),
            PropertyResult("done", "final", "holds", "17 final states"),
        ]
        defaults = {"status": "holds", "properties": properties}
    return Verdict(**{"model": "plait.protocols.paxos:faulty", "statistics": STATISTICS, **defaults, **what})


names = st.text(max_size=6).filter(lambda s: not any(0xD800 <= ord(c) < 0xE000 for c in s))
scalars = (
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | names
)
data = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(names.filter(lambda s: not s.startswith("#")), inner, max_size=3)
        | st.builds(lambda v: {"#tup": v}, st.lists(inner, max_size=3))
        | st.builds(lambda v: {"#set": v}, st.lists(inner, max_size=3))
        | st.builds(lambda v: {"#map": v}, st.lists(st.tuples(inner, inner).map(list), max_size=2))
    ),
    max_leaves=6,
)
identifiers = names.filter(lambda s: not s.startswith("#"))
"""Names of fields and monitors: Python has no identifier that looks like a tag."""
records = st.dictionaries(identifiers, data, max_size=3)


@st.composite
def runs(draw: st.DrawFn, most: int = 14) -> Trace:
    """A run that a real system could make: what is taken was sent before, and every kind of event occurs."""
    lanes = [f"P{i}" for i in range(draw(st.integers(1, 6)))]
    spare = draw(st.booleans())
    run = Run({lane: {} for lane in [*lanes, *(["Spare0"] if spare else [])]}, unborn=("Spare0",) if spare else ())
    some_lane = st.sampled_from(lanes)
    for _ in range(draw(st.integers(0, 3))):
        run.from_start(draw(some_lane), draw(some_lane), "Start")
    for _ in range(draw(st.integers(0, most))):
        lane = draw(some_lane)
        waiting = run.pending.get(lane, [])
        kind = draw(st.sampled_from(["step"] * 8 + ["lose", "duplicate", "crash", "spawn"]))
        if lane in run.status:
            run.recover(lane, {})
        elif kind in ("lose", "duplicate") and waiting:
            getattr(run, kind)(draw(st.sampled_from(waiting)))
        elif kind == "crash":
            run.crash(lane, recovers=draw(st.booleans()))
        else:
            takes = tuple(draw(st.lists(st.sampled_from(waiting), max_size=4, unique=True))) if waiting else ()
            receivers = draw(st.lists(some_lane, max_size=3, unique=True))
            born = ["Spare0"] if kind == "spawn" and run.status.get("Spare0") == "unborn" else []
            run.step(lane, "on_it", takes, tuple((r, "Message", {"n": 1}) for r in receivers), spawned=born)
    steps = len(run.events)
    marks = sorted(draw(st.lists(st.integers(0, steps), max_size=3)))
    loop = draw(st.none() | st.integers(0, steps - 1)) if steps else None
    return run.trace(loop=loop, marks=[Mark(before, f"phase {n}, round Estimate") for n, before in enumerate(marks)])


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Any trace whose references lead somewhere: consistent in no other way, which the formats must not mind."""
    lanes = draw(st.lists(st.builds(Lane, names, names), max_size=4, unique_by=lambda lane: lane.name))
    some_lane = st.sampled_from([lane.name for lane in lanes]) if lanes else names
    ids = draw(st.lists(st.integers(0, 99), max_size=4, unique=True))
    messages = [Sent(i, draw(names), draw(records), draw(names | some_lane), draw(names | some_lane)) for i in ids]
    some_ids = st.lists(st.sampled_from(ids), max_size=3) if ids else st.just([])
    snapshots = st.builds(
        Snapshot,
        fields=st.dictionaries(some_lane, records, max_size=4),
        pending=st.dictionaries(some_lane, some_ids, max_size=3),
        monitors=records,
        status=st.dictionaries(some_lane, st.sampled_from(["crashed", "down", "unborn"]), max_size=2),
        budgets=st.dictionaries(names, st.integers(0, 9), max_size=2),
    )
    events = draw(
        st.lists(
            st.builds(
                Event,
                lane=some_lane,
                kind=st.sampled_from(["step", "lose", "duplicate", "crash", "recover"]),
                label=names,
                state=snapshots,
                consumed=some_ids,
                sent=some_ids,
                announced=st.lists(data, max_size=2),
                choices=st.lists(data, max_size=2),
                spawned=st.lists(some_lane, max_size=2),
                read=st.lists(names, max_size=2),
                changed=st.dictionaries(names, st.tuples(data, data), max_size=2),
                note=st.none() | names,
            ),
            max_size=4,
        )
    )
    loop = draw(st.none() | st.integers(0, len(events) - 1)) if events else None
    return Trace(
        target=draw(names),
        parameters=draw(records),
        property=draw(st.none() | names),
        lanes=lanes,
        messages=messages,
        initial=draw(snapshots),
        events=events,
        loop=loop,
        explanation=draw(st.none() | names),
    )

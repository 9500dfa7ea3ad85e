"""Properties see processes as they are: methods, computed attributes, constants; and properties of each process or pair."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from plait import (
    Message,
    ModelError,
    PlaitError,
    Process,
    Property,
    System,
    Trace,
    action,
    always,
    aux,
    check,
    eventually,
    final,
    on,
    weak,
)
from plait.check.explain.replay import replay
from plait.check.options import Options
from plait.cli.main import main
from plait.kernel.errors import TraceError
from plait.model.system import with_properties
from plait.protocols.uniform_voting import Voter, uniform_voting
from plait.report.itf import load_trace
from plait.rounds.check import check_rounds


class Claim(Message):
    term: int


class Base(Process):
    term: int = 0
    MOST = 2

    def level(self) -> int:
        return self.term


class Node(Base):
    leader: bool = False
    heard: list[int] = aux(default_factory=list)
    noise: int = aux(0)

    @property
    def ahead(self) -> bool:
        return self.level() >= self.MOST

    @staticmethod
    def next(term: int) -> int:
        return term + 1

    def level(self) -> int:
        return super().level() if self.leader else 0

    def may_follow(self, other: Node) -> bool:
        return not self.leader or self.term >= other.term

    def records(self) -> bool:
        self.heard.append(self.term)
        return True

    def promotes(self) -> bool:
        self.leader = True
        return True

    def forgets(self) -> bool:
        del self.leader
        return True

    def tells(self) -> bool:
        self.broadcast(Node, Claim(1))
        return True

    @action(when=lambda self: not self.leader)
    def claim(self) -> None:
        self.leader = True
        self.term = self.next(self.term)
        self.broadcast(Node, Claim(self.term), myself=False)

    @on(Claim)
    def hear(self, m: Claim) -> None:
        self.noise = m.term
        self.term = max(self.term, m.term)


def nodes(*properties: Property, count: int = 3, **given: Any) -> System:
    return System([Node() for _ in range(count)], properties=properties, **given)


def outcome(system: System, **options: Any) -> Any:
    verdict = check(system, keep_going=True, workers=1, **options)
    return verdict.statistics.states, [(p.name, p.status, p.trace and len(p.trace)) for p in verdict.properties]


@always(pairs=Node)
def one_leader(a: Node, b: Node) -> bool:
    return not (a.leader and b.leader and a.term == b.term)


@always(pairs=Node)
def ordered(a: Node, b: Node) -> bool:
    """Not the same for (a, b) and (b, a)."""
    return a.may_follow(b) or b.next(a.term) > b.term


@always(each=Node)
def behind(p: Node) -> bool:
    assert p.term <= p.MOST
    return not p.ahead


TWINS = {
    one_leader: lambda s: (
        not any(a.leader and b.leader and a.term == b.term for a, b in itertools.combinations(s[Node], 2))
    ),
    ordered: lambda s: all(
        not a.leader or a.term >= b.term or a.term + 1 > b.term for a in s[Node] for b in s[Node] if a is not b
    ),
    behind: lambda s: all(p.term <= 2 and not (p.leader and p.term >= 2) for p in s[Node]),
}


@pytest.mark.parametrize("prop", TWINS, ids=lambda p: p.name)
@pytest.mark.parametrize("native", ["auto", "off"])
@pytest.mark.parametrize("reduce", ["none", "por", "symmetry", "por,symmetry"])
def test_properties_of_processes_say_what_loops_say(prop: Property, native: str, reduce: str) -> None:
    symmetric = [Node] if "symmetry" in reduce else []
    twin = always(TWINS[prop], name=prop.name)
    options: Any = {"native": native, "reduce": reduce}
    assert outcome(nodes(prop, symmetric=symmetric), **options) == outcome(nodes(twin, symmetric=symmetric), **options)


@pytest.mark.parametrize("search", ["bfs", "dfs", "stateless"])
def test_they_are_divided_by_process_and_run_natively(search: str) -> None:
    verdict = check(nodes(ordered, behind, count=2), native="only", search=search, workers=1, keep_going=True)
    assert {p.name: p.status for p in verdict.properties} == {"ordered": "violated", "behind": "violated"}
    assert not [text for text in verdict.warnings if "to Python" in text]


def test_a_violation_names_the_processes(tmp_path: Path) -> None:
    system = nodes(one_leader, final(lambda p: not p.ahead, each=Node, name="calm"))
    verdict = check(system, keep_going=True, workers=1)
    first, second = verdict.properties
    assert isinstance(first.trace, Trace)
    assert isinstance(second.trace, Trace)
    (pair,) = first.trace.violators
    assert len(set(pair)) == 2
    assert set(pair) <= {"Node0", "Node1", "Node2"}
    said = f"one_leader is false for {' and '.join(pair)} in the last state"
    assert said in str(first.trace)
    assert f"with a = {pair[0]}, b = {pair[1]}" in str(first.trace)
    saved = tmp_path / "run.itf.json"
    first.trace.save(saved)
    assert load_trace(saved) == first.trace
    assert json.loads(saved.read_text())["#meta"]["plait"]["violators"] == [pair]
    first.trace.save(tmp_path / "run.html")
    assert said in (tmp_path / "run.html").read_text()
    assert len(list(replay(system, first.trace))) == len(first.trace)
    # Every process that violates it is named, and nobody else.
    last = second.trace.events[-1].state.fields
    expected = [[n] for n, fields in last.items() if fields["leader"] and fields["term"] >= 2]
    assert second.trace.violators == expected


def test_show_says_what_a_property_is_about(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "shown.py"
    file.write_text(
        "from plait import Process, System, always\n"
        "class Node(Process):\n    term: int = 0\n"
        "@always(each=Node)\ndef small(p):\n    'Small numbers.'\n    return p.term < 3\n"
        "alike = always(lambda a, b: a.term == b.term, pairs=Node, name='alike')\n"
        "def nodes() -> System:\n    return System([Node(), Node()], properties=[small, alike])\n"
    )
    assert main(["show", str(file)]) == 0
    out = capsys.readouterr().out
    assert "small  always     of each Node: Small numbers." in out
    assert "alike  always     of pairs of Node\n" in out


def test_replay_notices_other_processes() -> None:
    trace = check(nodes(one_leader), workers=1).trace
    assert trace is not None

    @always(pairs=Node, name="one_leader")
    def other(a: Node, b: Node) -> bool:
        return a.leader or b.leader or a.term == b.term == 0

    with pytest.raises(TraceError, match="no longer decides"):
        list(replay(nodes(other), trace))


@pytest.mark.parametrize("native", ["auto", "off"])
@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("records", r"property p changes the state it looks at: Node0\.heard"),
        ("promotes", r"property p: the property changes the state it looks at: Node0\.leader"),
        ("forgets", r"property p: the property changes the state it looks at: Node0\.leader"),
        ("tells", r"property p: the property calls Node0\.broadcast\(\)"),
    ],
)
def test_a_write_is_refused_by_name(method: str, message: str, native: Any) -> None:
    prop = always(lambda s: all(getattr(p, method)() for p in s[Node]), name="p")
    with pytest.raises(PlaitError, match=message):
        check(nodes(prop), native=native, workers=1)
    call = {"records": lambda p: p.records(), "promotes": lambda p: p.promotes(), "tells": lambda p: p.tells()}
    if method in call:
        with pytest.raises(PlaitError, match=message):
            check(nodes(always(call[method], each=Node, name="p")), native=native, workers=1)


def test_special_methods_mean_what_the_class_says() -> None:
    class Bag(Process):
        size: int = 0

        def __len__(self) -> int:
            return self.size

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Bag) and other.size == self.size

        def __lt__(self, other: Bag) -> bool:
            return self.size < other.size

        @action(when=lambda self: self.size < 2)
        def grow(self) -> None:
            self.size += 1

    properties = [
        always(lambda s: bool(s[Bag][0]) == (s[Bag][0].size > 0), name="truth"),
        always(lambda a, b: (a == b) == (len(a) == len(b)), pairs=Bag, name="equal"),
        always(lambda s: min(s[Bag]).size == min(p.size for p in s[Bag]), name="least"),
    ]
    for native in ("auto", "off"):
        verdict = check(System([Bag(), Bag()], properties=properties), native=native, workers=1)  # type: ignore[arg-type]
        assert verdict.status == "holds"
        assert verdict.statistics.states == 9


def test_fields_that_methods_read_are_relevant() -> None:
    class Quiet(Process):
        x: int = 0
        y: int = 0
        trail: tuple[int, ...] = ()

        def risky(self) -> bool:
            return self.y > 1

        @property
        def total(self) -> int:
            return self.x + self.y

        @action(when=lambda self: self.x < 2)
        def go(self) -> None:
            self.x += 1
            self.y = self.x
            self.trail = (*self.trail, self.x)

    for prop in (always(lambda p: not p.risky(), each=Quiet), always(lambda s: s[Quiet][0].total < 4)):
        found = check(System([Quiet(), Quiet()], properties=[prop]), reduce="decomposition", workers=1)
        assert found.status == "violated"


def test_formulas_see_methods() -> None:
    leads = eventually(lambda s: all(p.level() > 0 for p in s[Node]), fairness=[weak(Node)], name="leads")
    for native in ("auto", "off"):
        assert check(nodes(leads, count=2), native=native, workers=1).status == "holds"  # type: ignore[arg-type]


def test_coverage_shows_their_conditions() -> None:
    prop = always(lambda a, b: a.term < 9 or b.term < 9, pairs=Node, name="p")
    found = check(nodes(prop, count=2), coverage=True, workers=1).coverage
    assert found is not None
    assert any(u.property == "p" and "a.term < 9" in u.text for u in found.untested)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: always(lambda a: True, each=Node, pairs=Node), "each= and pairs= cannot be combined"),
        (lambda: always(lambda a: True, each=3), r"@always\(each=3\): expected a Process class"),
        (lambda: always(lambda a: True, pairs=Node), "does not take two processes"),
        (lambda: final(lambda a, b: True, each=Node), "does not take one process"),
        (lambda: System([Base()], properties=[behind]), "property behind: each=Node, but the system has no Node"),
        (lambda: check(nodes(always(lambda p: p.term, each=Node, name="p"))), "property p: it returned 0"),
        (lambda: type("Bad", (Process,), {"status": property(lambda self: 3)}), "Bad.status: this name is reserved"),
    ],
)
def test_mistakes_are_named(make: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        make()


def test_by_rounds_methods_and_pairs_are_the_same() -> None:
    """The sequential program has processes of its own; properties see those of the protocol."""
    system = uniform_voting(inputs=(0, 1), least=1)

    @always(pairs=Voter)
    def agreed(a: Voter, b: Voter) -> bool:
        return a.enough("never") or not (a.decisions and b.decisions) or a.decisions == b.decisions

    late = always(lambda p: p.crashed or not p.enough("Vote") or p.id.index < 9, each=Voter, name="late")
    system = with_properties(system, [agreed, late])
    whole, by_rounds = (
        check(system, workers=1, keep_going=True),
        check_rounds(system, Options(workers=1, keep_going=True)),
    )
    assert [p.status for p in whole.properties] == [p.status for p in by_rounds.properties] == ["violated", "holds"]
    found = by_rounds.properties[0].trace
    assert found is not None
    assert len(found.violators[0]) == 2
    assert f"agreed is false for {' and '.join(found.violators[0])}" in str(found)
    assert len(list(replay(system, found))) == len(found)

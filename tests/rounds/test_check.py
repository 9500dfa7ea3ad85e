"""`plait check --rounds`: what is claimed, that violations are runs of the protocol, and what is refused."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import sys
from pathlib import Path
from typing import Any

import pytest

from plait import (
    Message,
    ModelError,
    Monitor,
    Pid,
    Process,
    System,
    UsageError,
    action,
    always,
    check,
    crash_recovery,
    crash_stop,
    duplicating,
    eventually,
    fifo,
    final,
    init,
    on,
    reachable,
    tagged,
    unordered,
)
from plait.check.explain.replay import replay
from plait.cli.main import main
from plait.protocols.ben_or import ben_or
from plait.protocols.commit_rounds import commit_rounds
from plait.protocols.distal_paxos import distal_paxos
from plait.protocols.raft_membership import raft_membership
from plait.protocols.uniform_voting import uniform_voting
from plait.protocols.view_change import view_change
from plait.report.html import report
from plait.report.itf import load_trace, save_trace
from plait.rounds.assumptions import Custom, assumption
from plait.rounds.calendar import Calendar
from plait.rounds.check import check_rounds
from plait.rounds.conditions.decision import conditions
from plait.rounds.emit.plait import program_text
from plait.rounds.program import turn as turns
from plait.rounds.program.protocol import Protocol
from plait.rounds.sequential import sequentialize
from plait.rounds.text.structure import structure_text
from tests.rounds.languages import difference, graph_of
from tests.rounds.protocols import Node, Rule, Spec, system

FIELDS = list(Node.__plait_fields__)
RICH = Spec((Rule(reply=2, later=True, to_all=False), Rule(factor=2), Rule()), phases=2, starts=(0, 1))


# -- verdicts --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "phases", "assume", "violated"),
    [
        (ben_or(inputs=(0, 0), f=0, faulty="impatient", phases=3), 3, "none", "agreement"),
        (commit_rounds(participants=2, faulty="hasty"), 1, "reliable", "validity"),
        (commit_rounds(participants=2, faulty="doubt"), 1, "none", "consistency"),
        (view_change(views=2, faulty="quorum"), 2, "none", "completeness"),
    ],
    ids=lambda value: value.name if isinstance(value, System) else None,
)
def test_a_violation_is_one_of_the_protocol(
    protocol: System, phases: int, assume: str, violated: str, tmp_path: Path
) -> None:
    verdict = check_rounds(protocol, phases=phases, assume=assume, properties=[violated])
    assert (verdict.status, verdict.property) == ("violated", violated)
    assert check(protocol, properties=[violated]).property == violated  # the asynchronous search finds it too
    trace = verdict.trace
    assert trace is not None
    assert len(list(replay(protocol, trace))) == len(trace)
    assert [m.before for m in trace.marks] == sorted(m.before for m in trace.marks)
    assert trace.marks[0].label.startswith("phase 1, round ")
    taken = {i for event in trace.events for i in event.consumed}
    assert not taken & {i for mark in trace.marks for i in mark.lost}
    save_trace(trace, tmp_path / "trace.json")
    assert load_trace(tmp_path / "trace.json") == trace
    assert trace.marks[-1].label in str(trace)
    assert trace.marks[-1].label in report(verdict)


@pytest.mark.slow
def test_holds_says_what_it_is_about() -> None:
    verdict = check_rounds(distal_paxos(replicas=2, ballots=2), phases=2)
    assert verdict.status == "holds"
    assert verdict.bound is None
    (reduction,) = verdict.statistics.reductions
    assert "no message of a later phase is made; it is round-based" in reduction.reason
    short = check_rounds(distal_paxos(replicas=2, ballots=2), phases=1)
    assert "later phase" not in short.statistics.reductions[0].reason
    safe = check_rounds(distal_paxos(replicas=2, ballots=2), phases=1, properties=["agreement"])
    assert (safe.status, safe.bound) == ("holds", "of 1 phase, 2 processes, any message may be lost")
    assert short.status == "inconclusive"  # that progress is not reachable in one phase says nothing
    assert {p.name: p.status for p in short.properties}["progress"] == "inconclusive"


@pytest.mark.slow
def test_the_assumption_matters() -> None:
    """UniformVoting is safe with a kernel, and not without."""
    protocol = uniform_voting(inputs=(0, 1), least=1, phases=2)
    assert check_rounds(protocol, phases=2, assume="none", properties=["agreement"]).status == "violated"
    verdict = check_rounds(protocol, phases=2, assume="kernel", properties=["agreement"])
    assert verdict.status == "holds"
    assert verdict.bound is not None
    assert "assumption kernel, for properties whose violation persists" in verdict.bound


@pytest.mark.slow
def test_processes_that_are_created() -> None:
    """The protocol and its program reach the same combinations of fields, whoever joins."""
    protocol = raft_membership(servers=2, joiners=1, terms=1, candidates=(0,))
    fields = ["log", "term", "stage", "led", "committed"]
    asynchronous, sequential = graph_of(protocol, fields), graph_of(sequentialize(protocol, phases=1), fields)
    assert asynchronous.reachable == sequential.reachable
    assert all(difference(asynchronous, sequential, i) is None for i in range(3))


def test_failed_assertions_are_found() -> None:
    @tagged(round="Go")
    class Go(Message):
        pass

    class Sender(Process):
        sent: bool = False

        @action(when=lambda self: not self.sent)
        def go(self) -> None:
            self.sent = True
            self.broadcast(Fragile, Go())

    class Fragile(Process):
        @on(Go)
        def fall(self, m: Go) -> None:
            raise AssertionError("fallen")

    verdict = check_rounds(System([Sender(), Fragile()], rounds=["Go"]), phases=1)
    assert (verdict.status, verdict.property) == ("violated", "assertions")
    assert verdict.trace is not None
    assert "fallen" in (verdict.trace.explanation or "")


# -- mutants: the comparison notices -----------------------------------------------------------------------------------


def differs() -> bool:
    protocol = system(RICH)
    try:
        sequential = graph_of(sequentialize(protocol, phases=2), FIELDS, 5_000)
    except ModelError:
        return True
    asynchronous = graph_of(protocol, FIELDS, 5_000)
    return asynchronous.reachable != sequential.reachable or any(
        difference(asynchronous, sequential, i) is not None for i in range(2)
    )


@pytest.mark.slow
def test_without_a_mutation_nothing_differs() -> None:
    assert not differs()


def _no_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plait.rounds.sequential.assumption", lambda name, faults=None: assumption("reliable"))


def _no_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = turns.Turn._ghost
    monkeypatch.setattr(turns.Turn, "_ghost", lambda self: dataclasses.replace(plain(self), letters=()))


def _wrong_order(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Calendar.place
    monkeypatch.setattr(Calendar, "place", lambda self, m: plain(self, m) + {"A": 1, "B": -1}.get(type(m).__name__, 0))


def _no_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Protocol, "actions", lambda self, process: iter(()))


def _first_only(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Protocol.receipts
    monkeypatch.setattr(Protocol, "receipts", lambda self, p, heard: itertools_first(plain(self, p, heard)))


def itertools_first(found: Any) -> Any:
    return iter(list(found)[:1])


def _skip_too_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "earliest", lambda one, other: max(one, other))


def _stale(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is made for a later round arrives now."""
    plain = turns.Turn.settle

    def settle(self: Any, handler: Any, catcher: Any) -> None:
        plain(self, handler, catcher)
        self.letters = tuple(
            x._replace(place=x.place + 3) if x.place + 3 <= self.program.end else x for x in self.letters
        )

    monkeypatch.setattr(turns.Turn, "settle", settle)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mutate", [_no_loss, _no_letters, _wrong_order, _no_actions, _first_only, _skip_too_far, _stale]
)
def test_a_mutant_of_the_program_is_noticed(mutate: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(monkeypatch)
    assert differs()


# -- what is refused ---------------------------------------------------------------------------------------------------


@tagged(phase="phase", round="A")
class A(Message):
    phase: int


class Quiet(Process):
    @on(A)
    def a(self, m: A) -> None: ...


class History(Monitor):
    count: int = 0

    def observe(self, sender: Pid, event: Any) -> None:
        self.count += 1


@final
def ended(s: Any) -> bool:
    return True


@eventually
def some_time(s: Any) -> bool:
    return True


@always
def empty(s: Any) -> bool:
    return not s.messages


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"network": fifo()}, "rounds need an unordered network, not fifo"),
        ({"network": duplicating()}, "rounds need an unordered network, not duplicating"),
        ({"network": unordered(capacity=2)}, "rounds need a network without a capacity"),
        ({"initially": lambda s: True}, "rounds need one initial state, but @init methods choose"),
        ({"within": lambda s: True}, "rounds change the order of steps, and so which states are outside"),
        ({"faults": [crash_recovery(Quiet)]}, "rounds do not support crash-recovery of Quiet, at most 1"),
        ({"monitors": [History()]}, "the monitor History observes the order of steps"),
        ({"properties": [ended]}, "the property ended is about terminal states"),
        ({"properties": [some_time]}, "the property some_time is about whole runs"),
        ({"properties": [empty]}, "cannot read messages"),
    ],
)
def test_what_rounds_do_not_preserve_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=words) as caught:
        check_rounds(System([Quiet()], rounds=["A"], **options), phases=1)
    assert caught.value.hint


def test_a_system_without_rounds() -> None:
    with pytest.raises(UsageError, match="declares no rounds"):
        check_rounds(System([Quiet()]), phases=1)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("perhaps", "there is no network assumption 'perhaps'"),
        ("nowhere_at_all:two", "No module named"),
        ("math:nothing", "has no attribute"),
        ("math:pi", "is not a function"),
    ],
)
def test_an_unknown_assumption(name: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        assumption(name)


def test_a_predicate_that_cannot_be() -> None:
    with pytest.raises(UsageError, match="assume='never': the predicate is always false"):
        check(sequentialize(System([Quiet()], rounds=["A"]), phases=1, assume=Custom("never", lambda hears: False)))
    with pytest.raises(UsageError, match="assume='three' returned 3"):
        check(sequentialize(System([Quiet()], rounds=["A"]), phases=1, assume=Custom("three", lambda hears: 3)))
    with pytest.raises(UsageError, match=r"assume='odd' raised KeyError: 'x' \(.*test_check.py:\d+\)"):
        check(sequentialize(System([Quiet()], rounds=["A"]), phases=1, assume=Custom("odd", lambda hears: hears["x"])))


def test_crashes_are_silence() -> None:
    @reachable
    def somebody_crashed(s: Any) -> bool:
        return any(p.crashed for p in s[Quiet])

    crashing = System([Quiet(), Quiet()], rounds=["A"], faults=[crash_stop(budget=1)], properties=[somebody_crashed])
    verdict = check_rounds(crashing, phases=1)
    assert verdict.properties[0].status == "holds"


# -- programs, structures and commands -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_emitted_program_is_the_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "sequential.py"
    arguments = ["distal_paxos", "-p", "replicas=2", "--phases", "2"]
    assert main(["rounds", "emit", *arguments, "-o", str(file)]) == 0
    text = file.read_text()
    rounds = [text.index(f"# -- round {name}: UPDATE") for name in ("Prepare", "Ack", "Propose", "Promise")]
    assert rounds == sorted(rounds)
    assert text.index("# -- round Prepare: SEND") < rounds[0]
    from plait.model.loading.loader import load

    emitted, direct = check(load(str(file))), check(sequentialize(distal_paxos(replicas=2), phases=2))
    assert emitted.statistics.states == direct.statistics.states
    assert main(["check", str(file), "-q"]) == 0
    assert "HOLDS 3 properties" in capsys.readouterr().out


def test_a_program_of_an_unnamed_system() -> None:
    with pytest.raises(ModelError, match="was not loaded from a target"):
        program_text(system(RICH), phases=1, assume="none")


def test_the_structure_is_python() -> None:
    text = structure_text(distal_paxos())
    for part in ("prepare_send", "ack_update", "promise_update"):
        assert f"def {part}(self" in text
    compile(text, "structure", "exec")
    assert "self.f_acknowledge = (m,)" in text
    assert "times=majority(Process)" in text
    # After a Promise was taken nothing of the phase is left, after an Ack was sent the Prepare is stale.
    assert "continue  # with the next phase" in text


@pytest.mark.slow
@pytest.mark.parametrize("model", [ben_or, distal_paxos, raft_membership, view_change, commit_rounds])
def test_the_parts_of_a_round_have_all_that_they_use(model: Any) -> None:
    """What a SEND part needs of the transition that it was cut from is kept for it."""
    system = model()
    known = set(vars(sys.modules[system.classes[0].__module__])) | set(dir(builtins))
    for part in ast.walk(ast.parse(structure_text(system))):
        if isinstance(part, ast.FunctionDef):
            names = [n for n in ast.walk(part) if isinstance(n, ast.Name)]
            bound = {n.id for n in names if isinstance(n.ctx, ast.Store)}
            bound |= {n.arg for n in ast.walk(part) if isinstance(n, ast.arg)}
            assert {n.id for n in names} <= bound | known, part.name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["check", "paxos", "--rounds"], "declares no rounds"),
        (["check", "ben_or", "--assume", "n-f"], "--assume needs --rounds"),
        (["check", "ben_or", "--phases", "2"], "--phases needs --rounds"),
        (["check", "ben_or", "--rounds", "--reduce", "por"], "--rounds cannot be combined with --reduce por"),
        (["check", "ben_or", "--rounds", "--assume", "some"], "there is no network assumption 'some'"),
        (["check", "ben_or", "--rounds", "--assume", ""], "there is no network assumption ''"),
        (["check", "ben_or", "--rounds", "--assume", "n-3"], "--assume n-3: of 3 processes, all messages may be lost"),
        (["rounds", "tags", "paxos"], "declares no rounds"),
        (["rounds", "show", "paxos"], "declares no rounds"),
        (["rounds", "emit", "paxos"], "declares no rounds"),
        (["rounds", "emit", "ben_or", "-o", "/nowhere/program.py"], "there is no folder /nowhere"),
    ],
)
def test_wrong_commands(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert words in said
    assert "hint: " in said
    assert "Traceback" not in said


@pytest.mark.slow
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["check", "commit_rounds", "-p", "faulty=doubt", "--rounds", "--phases", "1", "-q"]) == 1
    capsys.readouterr()
    assert main(["replay", ".plait/commit_rounds-consistency-faulty=doubt.itf.json", "-q"]) == 0
    assert "reproduced: property consistency is violated" in capsys.readouterr().out
    assert main(["rounds", "tags", "commit_rounds", "-p", "participants=2", "-q"]) == 0
    assert main(["rounds", "show", "commit_rounds"]) == 0


# -- what is not covered is not claimed ------------------------------------------------------------------------------


@tagged(phase="k", round="Only")
class Item(Message):
    """Of a phase."""

    k: int


class Giver(Process):
    """Sends one item."""

    k: int
    given: bool = False

    @action(when=lambda self: not self.given)
    def give(self) -> None:
        self.given = True
        self.send(Getter.pid(0), Item(self.k))


class Getter(Process):
    """Takes an old item after it has waited for a while: that is not round-based."""

    waited: int = 0
    got: tuple[int, ...] = ()

    @on(Item, where=lambda self, m: m.k == 2 or self.waited == 5)
    def take(self, m: Item) -> None:
        self.got += (m.k,)

    @action(when=lambda self: self.got == (2,) and self.waited < 5)
    def wait(self) -> None:
        self.waited += 1


@always
def in_order(s: Any) -> bool:
    return bool(s[Getter][0].got != (2, 1))


@pytest.mark.slow
def test_an_undecided_condition_makes_a_verdict_inconclusive(monkeypatch: pytest.MonkeyPatch) -> None:
    protocol = System([Giver(k=1), Giver(k=2), Getter()], properties=[in_order], rounds=["Only"])
    assert check(protocol).status == "violated"
    with pytest.raises(ModelError, match="not round-based"):
        check_rounds(protocol, phases=2)
    with pytest.raises(ModelError, match="not round-based"):  # the audit suspects it, and a walk comes along
        check_rounds(protocol, phases=2, watch=1)
    monkeypatch.setattr("plait.rounds.conditions.decision._breaking_runs", lambda verdict: {})
    unsure = check_rounds(protocol, phases=2, watch=1)
    assert (unsure.status, unsure.bound) == ("inconclusive", "an undecided condition")
    assert [p.status for p in unsure.properties] == ["inconclusive"]
    assert unsure.message is not None
    assert "condition 3" in unsure.message


class Young(Process):
    """Sends of a phase before that of its parent."""

    sent: bool = False

    @action(when=lambda self: not self.sent)
    def go(self) -> None:
        self.sent = True
        self.send(Old.pid(0), Item(2))


class Old(Process):
    """The second one jumps to phase 4, and creates a process in the same step."""

    got: int = 0
    started: bool = False

    @action(when=lambda self: not self.started and self.id == Old.pid(1))
    def start(self) -> None:
        self.started = True
        self.send(Old.pid(0), Item(4))
        self.spawn(Young)

    @on(Item, where=lambda self, m: m.k > self.got)
    def take(self, m: Item) -> None:
        self.got = m.k


def test_a_process_that_is_created_by_an_action_that_sends_is_refused() -> None:
    @always
    def never_two(s: Any) -> bool:
        return all(p.got != 2 for p in s[Old])

    protocol = System([Old(), Old()], spare={Young: 1}, properties=[never_two], rounds=["Only"])
    assert check(protocol).status == "violated"
    with pytest.raises(ModelError, match="creates a process in an action that also sends"):
        check_rounds(protocol, phases=5)


class Hasty(Process):
    """Sends a round that it received in before, but only after many other steps."""

    steps: int = 0
    got: int = 0

    @init
    def start(self) -> None:
        self.send(self.id, Item(1))

    @on(Item, where=lambda self, m: m.k > self.got)
    def take(self, m: Item) -> None:
        self.got = m.k
        self.send(Hasty.pid(1 - self.id.index), Item(m.k))


def test_a_breach_that_the_program_meets_comes_with_a_run() -> None:
    protocol = System([Hasty(), Hasty()], rounds=["Only"])
    verdict = conditions(protocol, max_states=1)
    assert (verdict.status, verdict.property) == ("violated", "condition 5")
    assert verdict.trace is not None
    assert "Hasty.take" in (verdict.message or "")
    assert verdict.trace.events[-1].label == "take"


# -- runs that people can read -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_steps_that_are_not_needed_are_left_out() -> None:
    system = commit_rounds(faulty="hasty")
    raw, tidy = (check_rounds(system, raw=raw, native="off").trace for raw in (True, False))
    assert raw is not None
    assert tidy is not None
    assert raw.tidied is None
    assert tidy.tidied is not None
    assert tidy.tidied.startswith(f"left out {len(raw) - len(tidy)} of {len(raw)} steps that are not needed")
    assert len(list(replay(system, tidy))) == len(tidy)
    assert [mark.before for mark in tidy.marks] == sorted(mark.before for mark in tidy.marks)


@pytest.mark.slow
def test_under_an_assumption_all_steps_stay() -> None:
    """What is left out would be messages that are not taken, which the assumption may not allow."""
    system = commit_rounds(faulty="doubt")
    free, assumed = (check_rounds(system, assume=assume).trace for assume in ("none", "n-1"))
    assert free is not None
    assert assumed is not None
    assert assumed.tidied is None
    assert len(free) < len(assumed)

"""The text of verdicts and traces: what a reader in a terminal must find in it."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given, settings

from plait.kernel.trace import Trace
from plait.kernel.verdict import PropertyResult, Reduction
from plait.report.html import report
from plait.report.text import trace_text, verdict_text
from tests.report import samples

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def step_of(text: str, number: int) -> str:
    """The lines of one step of the list."""
    found = re.search(rf"^ +{number}\. .*?(?=^ +{number + 1}\. |^Final state|^  └─)", text, re.M | re.S)
    assert found, text
    return found[0]


def test_header_names_the_property_and_counts_the_steps() -> None:
    trace = samples.paxos()
    first, second, *_ = trace_text(trace, width=100).splitlines()
    assert "agreement" in first
    assert f"{len(trace.events)} steps" in first
    assert "plait.protocols.paxos:faulty (proposers=2, acceptors=3)" in second


def test_a_step_says_who_did_what() -> None:
    text = trace_text(samples.paxos(), width=110)
    propose = step_of(text, 1)
    assert "Proposer0  propose" in propose
    assert "chooses   'a'" in propose
    assert "→ Acceptor0, Acceptor1, Acceptor2: Read(ballot=1)" in propose
    assert "ballot: 0 → 1" in propose
    read = step_of(text, 2)
    assert "takes     #1 Read(ballot=1) from Proposer0" in read
    assert "promised: 0 → 1" in read
    quorum = step_of(text, 5)
    assert "#4 Promise(ballot=1, accepted=None) from Acceptor0" in quorum
    assert "#5 Promise(ballot=1, accepted=None) from Acceptor1" in quorum
    assert "announces Learned(value='b')" in step_of(text, 17)


def test_faults_are_marked() -> None:
    text = trace_text(samples.paxos(), width=110)
    assert "✕ LOST  Acceptor2" in step_of(text, 4)
    assert "✕ CRASH  Acceptor1" in step_of(text, 9)
    assert "○ RECOVERY  Acceptor1" in step_of(text, 10)
    text = trace_text(samples.faults(), width=110)
    assert "+ DUPLICATED  Server0" in step_of(text, 2)
    assert "copies    #2 Put(key='x') from Client0" in step_of(text, 2)
    assert "adds      → Server0: Put(key='x')  (#4)" in step_of(text, 2)
    assert "drops     #3 Put(key='x') from Client0" in step_of(text, 5)
    assert "spawns    Worker0" in step_of(text, 6)
    assert "drops     #7: Server1 is not running" in step_of(text, 7)

    text = trace_text(samples.redelivery(), width=110)
    assert "merges    #2: the equal message #1 is pending already" in step_of(text, 4)


def test_final_state_and_explanation_come_last() -> None:
    text = trace_text(samples.faults(), width=110)
    final = text[text.index("Final state") :]
    assert "Server1  [crashed] log=[]" in final
    assert "Server0  log=['x', 'x']" in final
    assert "waiting: #8 Welcome() from Server0" in final
    assert text.endswith("Server0.log holds 'x' twice")


def test_lasso_is_marked() -> None:
    text = trace_text(samples.lasso(), width=80)
    assert text.index("  1. Node0") < text.index("┌─ the loop starts here") < text.index("  2. Node0")
    assert "└─ back to step 2: steps 2–4 repeat" in text


def test_initial_state_alone() -> None:
    text = trace_text(samples.initial_only(), width=80)
    assert "0 steps" in text
    assert "The run has no steps: it ends in the initial state." in text
    assert "Node0  x=1" in text


def drawing(trace: Trace, width: int) -> list[str]:
    lines = trace_text(trace, width=width).splitlines()
    start = lines.index("", 1) + 1
    return lines[start : lines.index("", start)]


def test_drawing_has_a_column_per_lane_and_a_row_per_step() -> None:
    trace = samples.paxos()
    head, *rows = drawing(trace, 110)
    columns = [head.index(lane.name) for lane in trace.lanes]
    assert len(rows) == len(trace.events)
    place = {lane.name: column for lane, column in zip(trace.lanes, columns, strict=True)}
    marks = {"step": "●", "lose": "×", "crash": "X", "recover": "○"}
    messages = {m.id: m for m in trace.messages}
    for row, event in zip(rows, trace.events, strict=True):
        assert row[place[event.lane]] == marks[event.kind]
        for number in event.sent:
            at = place[messages[number].receiver]
            assert row[at] in "▶◀"
            assert row[at + 1 :].startswith(str(number))


@settings(max_examples=60, deadline=None)
@given(samples.runs())
def test_heads_of_arrows_are_at_receivers_only(trace: Trace) -> None:
    """A line that crosses the lane of another process does not look like a message to it."""
    trace = msgspec.structs.replace(trace, marks=[], loop=None)
    if not trace.events:
        return
    head, *rows = drawing(trace, 140)
    place = {lane.name: head.index(lane.name) for lane in trace.lanes}
    messages = {m.id: m for m in trace.messages}
    for row, event in zip(rows, trace.events, strict=True):
        row = row.split("on_it")[0]
        sent = event.sent if event.kind == "step" else []
        receivers = {messages[i].receiver for i in sent} - {event.lane}
        assert {name for name, x in place.items() if row[x : x + 1] in ("▶", "◀")} == receivers
        assert row[place[event.lane]] in "●×+X○"
        assert sum(row.count(mark) for mark in "●▶◀") <= len(receivers) + 1
        others = [x for name, x in place.items() if name != event.lane and name not in receivers]
        assert all(row[x : x + 1] in ("│", "┊", "┼", "─", " ", "") for x in others)


def long_run(steps: int = 250) -> Trace:
    run = samples.Run({"Node0": {"n": 0}, "Node1": {"n": 0}})
    for i in range(steps):
        run.step(f"Node{i % 2}", f"turn{i + 1}", sets={"n": i + 1})
    return run.trace(property="short", explanation="n is too large")


def test_a_long_run_is_abridged() -> None:
    text = verdict_text(samples.verdict(long_run()), width=100, abridged=True)
    lines = text.splitlines()
    assert len(lines) < 100
    assert lines[0].startswith("VIOLATED short")
    assert lines[-1] == "VIOLATED short  (250 steps)  in plait.protocols.paxos:faulty"
    shown = [int(n) for n in re.findall(r"^ *(\d+)\. Node", text, re.M)]
    assert shown == [1, 2, 3, *range(239, 251)]
    assert "steps 4 to 238 are not shown (the option all shows every step)" in text
    assert "235 steps not shown" in text, "in the drawing"
    assert text.index("250. Node1") < text.index("Final state") < text.rindex("n is too large")
    labels = re.findall(r"turn(\d+)", text)
    assert labels == [str(i) for i in shown] * 2, "in the drawing, and in the list"


def test_everything_is_shown_on_request_and_if_the_run_is_short() -> None:
    whole = verdict_text(samples.verdict(long_run()), width=100)
    assert "not shown" not in whole
    assert len(re.findall(r"^ *\d+\. Node", whole, re.M)) == 250
    assert whole.splitlines()[-1].startswith("VIOLATED short  (250 steps)")
    short = samples.verdict(long_run(30))
    assert verdict_text(short, abridged=True) == verdict_text(short)
    assert verdict_text(short).endswith("n is too large")


def test_a_long_lasso_says_where_its_loop_is() -> None:
    lasso = msgspec.structs.replace(long_run(), loop=99)
    text = verdict_text(samples.verdict(lasso), width=100, abridged=True)
    assert "back to step 100: steps 100–250 repeat" in text
    assert text.endswith("(250 steps; the last 151 repeat for ever)  in plait.protocols.paxos:faulty")


def test_an_example_is_not_red() -> None:
    example = PropertyResult("agreement", "reachable", "holds", None, samples.paxos())
    verdict = samples.verdict(status="holds", properties=[example], trace=samples.paxos())
    assert "\x1b[1;31m" not in verdict_text(verdict, color=True).split("Final state")[1]
    assert "\x1b[1;31m" in verdict_text(samples.verdict(samples.paxos()), color=True).split("Final state")[1]


def test_drawing_shortens_names_and_then_gives_way() -> None:
    assert drawing(samples.long(), 130)[0].split() == [f"R{i}" for i in range(15)]
    assert "●" not in trace_text(samples.long(), width=80)


@pytest.mark.parametrize("name", samples.SAMPLES)
@pytest.mark.parametrize("width", [30, 60, 80, 120])
def test_no_line_is_wider_than_asked(name: str, width: int) -> None:
    trace = samples.SAMPLES[name]()
    for text in (trace_text(trace, width=width), verdict_text(samples.verdict(trace), width=width)):
        assert max(map(len, text.splitlines())) <= width


@pytest.mark.parametrize("name", samples.SAMPLES)
def test_colour_changes_nothing_but_colour(name: str) -> None:
    verdict = samples.verdict(samples.SAMPLES[name]())
    colored = verdict_text(verdict, width=100, color=True)
    assert "\x1b[" in colored
    assert ANSI.sub("", colored) == verdict_text(verdict, width=100)


def test_names_from_a_file_cannot_steer_the_terminal() -> None:
    trace = msgspec.structs.replace(samples.lasso(), explanation="\x1b[2Jgone", property="a\rb")
    assert "\x1b" not in trace_text(trace)
    assert "\r" not in trace_text(trace)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(samples.traces())
def test_any_trace_can_be_told(trace: Trace) -> None:
    text = trace_text(trace, width=80)
    assert all(c.isprintable() or c == "\n" for c in text)


def test_holds_says_that_everything_was_searched() -> None:
    first, second, *_ = verdict_text(samples.verdict(), width=200).splitlines()
    assert first.startswith("HOLDS")
    assert "All 12,345 reachable states were searched" in second
    assert "4.1e-12" in second


def test_holds_under_reductions_does_not_claim_all_reachable_states() -> None:
    statistics = msgspec.structs.replace(
        samples.STATISTICS, reductions=[Reduction(n, True, "") for n in ("stubborn sets", "symmetry")]
    )
    text = verdict_text(samples.verdict(statistics=statistics), width=200)
    assert "All 12,345 states of the reduced state space (stubborn sets, symmetry) were searched" in text
    assert "reachable states" not in text


def test_inconclusive_names_the_bound_and_claims_nothing() -> None:
    verdict = samples.verdict(
        status="inconclusive",
        bound="--max-states 1000",
        properties=[PropertyResult("agreement", "always", "inconclusive", "no violation so far")],
    )
    first, second, *_ = verdict_text(verdict, width=200).splitlines()
    assert first.startswith("INCONCLUSIVE stopped: --max-states 1000")
    assert "no violation found so far" in second
    assert "All" not in second


def test_violated_names_the_property_and_shows_the_trace() -> None:
    text = verdict_text(samples.verdict(samples.paxos(), warnings=["look here"]), width=120)
    assert text.startswith("VIOLATED agreement")
    assert re.search(r"agreement +always +VIOLATED +agreement is violated", text)
    assert re.search(r"deadlock_free +deadlock +INCONCLUSIVE", text)
    assert "warning: look here" in text
    assert "Counterexample to agreement: 17 steps" in text


def test_statistics_are_derived_correctly() -> None:
    text = verdict_text(samples.verdict(), width=120)
    assert "49,380" in text  # 12,345 states in a quarter of a second
    assert "321 (0.36% of transitions)" in text  # 321 of 88,421
    assert "3.0 MiB (255 B per state)" in text  # 3 · 2²⁰ / 12,345
    assert "192.9 KiB (16.0 B per state)" in text
    assert "questions" not in text, "all were asked to Python"
    assert "local states" not in text


def test_statistics_tell_who_answered() -> None:
    verdict = samples.verdict()
    native = msgspec.structs.replace(
        verdict.statistics, native_answers=11_143, native_compared=250, local_states=1_500, local_bytes=90_000
    )
    verdict = msgspec.structs.replace(verdict, statistics=native)
    text = verdict_text(verdict, width=120)
    # 321 calls of Python, 250 of them to compare: 71 of 71 + 11,143.
    assert "11,214 (0.63% to Python)" in text
    assert "1,500 (60 B each)" in text
    page = report(verdict)
    assert "<dt>questions</dt><dd>11,214 (0.63% to Python)</dd>" in page
    assert "<dt>local states</dt><dd>1,500 (60 B each)</dd>" in page


def test_an_example_that_does_not_exist_is_no_violation_that_was_found() -> None:
    failed = samples.verdict(
        status="violated", property="won", bound=None, properties=[PropertyResult("won", "reachable", "violated")]
    )
    text = verdict_text(failed, width=120)
    assert "A violation was found" not in text
    assert "All 12,345 reachable states were searched" in text
    both = msgspec.structs.replace(
        failed, properties=[*failed.properties, PropertyResult("safe", "always", "violated")]
    )
    assert "A violation was found after 12,345 states" in verdict_text(both, width=120)


def test_more_calls_than_transitions_are_no_share() -> None:
    verdict = samples.verdict()
    few = msgspec.structs.replace(verdict.statistics, transitions=200)
    text = verdict_text(msgspec.structs.replace(verdict, statistics=few), width=120)
    assert "321 (1.6 per transition)" in text
    assert "% of transitions" not in text

"""Traces of `plait bmc`: places, values, hidden variables, explanations, replay, and how reports show them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from plait.bmc.execution.explanation import SENTENCES, statement
from plait.bmc.execution.hazards import races, waiting
from plait.bmc.execution.interpreter import Interpreter, State, Step
from plait.bmc.execution.tracing import replay, trace
from plait.bmc.load import load, parse_program
from plait.bmc.program import definition
from plait.bmc.program.definition import DEADLOCK, RACES, Program
from plait.kernel.errors import TraceError
from plait.kernel.trace import Place, Trace
from plait.kernel.values import Data, text
from plait.report.html import trace_page
from plait.report.itf import load_trace, save_trace
from plait.report.space_time.layout import Box, Layout
from plait.report.space_time.svg import space_time
from plait.report.space_time.text import draw
from plait.report.text import trace_text
from plait.report.wording import access_lines
from tests.oracle.program_states import Enumeration
from tests.support.threaded_programs import counter, embrace, guess, looping_section, property_of, shortest, traced

CASES = [
    (counter, "assertions"),
    (counter, RACES),
    (looping_section, "small"),
    (embrace, DEADLOCK),
    (guess, "assertions"),
]
Make = Callable[[], Program]
MESSAGES = r"message|inbox|sends?\b|sent\b|taken|deliver|lost|pending|handler|mailbox"


def taken(program: Program, moves: list[int]) -> tuple[Interpreter, State, list[Step]]:
    """The run in which these processes take a step, one after the other."""
    interpreter = Interpreter(program)
    state = start = next(iter(interpreter.initial_states()))
    steps = []
    for process in moves:
        step = interpreter.step(state, process)
        assert step is not None
        steps.append(step)
        state = step.state
    return interpreter, start, steps


@pytest.mark.parametrize(("make", "name"), CASES)
def test_values_are_those_of_the_states(make: Make, name: str) -> None:
    """What an event read is in the state before it, what it wrote is in the state after it, and it is complete."""
    interpreter, start, steps = shortest(make(), name)
    found = trace(interpreter, "t", {}, property_of(interpreter.program, name), start, steps)
    before, values = found.initial, start
    for event, step in zip(found.events, steps, strict=True):
        after = event.state
        shared = [before.fields["shared"], after.fields["shared"]]
        for field, value in (event.values or {}).items():
            assert value == _cell(shared[0], field.removeprefix("shared."))
        for field, (old, new) in event.changed.items():
            if field.startswith("shared."):
                assert (old, new) == tuple(_cell(lane, field.removeprefix("shared.")) for lane in shared)
        changed = {n for n in shared[0] if shared[0][n] != shared[1][n]}
        assert changed <= {f.removeprefix("shared.").partition("[")[0] for f in event.changed}
        # The same from the interpreter's own read and write sets.
        cells = [c for c in step.reads if not isinstance(c, int) and c[0].process is None and not c[0].temporary]
        assert len(event.values or {}) == len(cells)
        for variable, k in cells:
            shown = text((event.values or {})[f"shared.{variable.name}" + (f"[{k}]" if variable.size else "")])
            if not variable.lock:
                assert shown == str(values.values[interpreter.offsets[variable] + k])
        before, values = after, step.state


def _cell(fields: dict[str, Data], name: str) -> Data:
    array, bracket, index = name.partition("[")
    if not bracket:
        return fields[name]
    cells = fields[array]
    assert isinstance(cells, list)
    return cells[int(index[:-1])]


def test_a_lost_update_in_words() -> None:
    """The values of the classical lost update: both threads read 0, both write 1."""
    said = trace_text(traced(counter(), "assertions"), width=100)
    rows = re.findall(r"^ +\d+\. (\w+)  (\S+:\d+)  (.*)\n +(reads|writes) +(.*)$", said, re.MULTILINE)
    threads = [row[3:] for row in rows if row[0] in ("t1", "t2")]
    assert {row[1:3] for row in rows if row[0] != "main"} == {("counter.c:5", "x = x + 1;")}
    assert sorted(threads[:2]) == [("reads", "x = 0"), ("reads", "x = 0")]
    assert threads[2:] == [("writes", "x: 0 → 1"), ("writes", "x: 1 → 1")]
    assert rows[-1] == ("main", "counter.c:11", "assert(x == 2);", "reads", "x = 1")


def test_a_terminal_shows_values_on_the_lane() -> None:
    found = traced(counter(), "assertions")
    rows = draw(found, 100)
    marks = [re.search(r"[◇◆] (.*?)  ", row) for row in rows[1:9]]
    lines = ["".join(access_lines(found, event, "shared")) for event in found.events]
    assert [mark[1] if mark else "" for mark in marks] == lines
    assert all(len(row) <= 48 for row in draw(found, 48)), "narrow terminals drop what does not fit"
    assert draw(found, 36), "without room for values, marks stay"


@pytest.mark.parametrize(("make", "name"), CASES)
def test_a_drawing_shows_values_on_the_lane(make: Make, name: str) -> None:
    found = traced(make(), name)
    root = ElementTree.fromstring(space_time(found))
    space = "{http://www.w3.org/2000/svg}"
    for step, event in enumerate(found.events, 1):
        shown = [t.text for t in root.findall(f".//{space}g[@data-step='{step}']/{space}text[@class='value']")]
        assert shown == access_lines(found, event, "shared")
    layout = Layout(found)
    boxes = [label.box for label in layout.labels]
    boxes += [label.box for step, lane in layout.values if (label := layout.value_label(step, lane)) is not None]
    for number, box in enumerate(boxes):
        assert box[2] <= layout.width
        assert not any(_overlap(box, other) for other in boxes[number + 1 :])


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def test_many_values_fit_in_a_row() -> None:
    names = "abcdefg"
    writes = " ".join(f"{n} = {i + 1};" for i, n in enumerate(names))
    program = parse_program(
        f"int {', '.join(f'{n} = 0' for n in names)}; process p {{ atomic {{ {writes} }} }}"
        f"process q {{ assume({' + '.join(names)} > 99); }} always small: a + g < 8;"
    )
    found = followed(program, "small", [0])
    assert len(access_lines(found, found.events[0], "shared")) == 7
    shown = Layout(found).values[1, "shared"]
    assert shown == ("a: 0 → 1", "b: 0 → 2", "… 5 more")


def followed(program: Program, name: str, moves: list[int]) -> Trace:
    """The trace of a run for a property."""
    interpreter, start, steps = taken(program, moves)
    return trace(interpreter, program.name, {}, property_of(program, name), start, steps)


def test_places_have_the_file_of_the_program(tmp_path: Path) -> None:
    file = tmp_path / "two.plait"
    file.write_text("int x = 0;\nprocess p {\n  x = 1;\n}\nalways zero: x == 0;\n")
    program = load(str(file))
    found = followed(program, "zero", [0])
    assert found.events[0].place == Place(str(file), 3)
    assert "1. p  two.plait:3  x = 1;" in trace_text(found)


def test_intermediate_values_and_flags_are_hidden() -> None:
    program = guess()
    assert {v.name for v in program.variables if v.temporary} >= {"t1 started", "t1 finished"}
    found = traced(program, "assertions")
    fields = {
        name for state in (found.initial, *(e.state for e in found.events)) for f in state.fields.values() for name in f
    }
    assert fields == {"cells", "i", "i (2)"}
    for event in found.events:
        named = [*event.read, *event.changed, *(event.values or {})]
        assert not [name for name in named if re.search(r"started|finished|waiting|\bt\b", name)]


def test_a_thread_appears_when_it_is_started() -> None:
    found = traced(counter(), "assertions")
    assert found.initial.status == {"t1": "unborn", "t2": "unborn"}
    first = found.events[0]
    assert (first.lane, first.spawned, first.state.status) == ("main", ["t1", "t2"], {})
    assert all(not event.spawned for event in found.events[1:])


def test_the_owner_of_a_lock_is_a_thread() -> None:
    found = traced(embrace(), DEADLOCK)
    assert access_lines(found, found.events[2], "shared") == ["a: free → t1"]
    assert "shared  a=t1, b=t2" in trace_text(found)


# -- explanations ------------------------------------------------------------------------------------------------------


def test_a_deadlock_says_what_each_thread_waits_for() -> None:
    found = traced(embrace(), DEADLOCK)
    assert found.explanation == "deadlock: threads wait forever."
    assert [(wait.lane, wait.reason) for wait in found.waiting] == [
        ("main", "at bank.py:10: pthread_join(t1, 0);"),
        ("t1", "at bank.py:5: with b:  (b = t2)"),
        ("t2", "at bank.py:5: with a:  (a = t1)"),
    ]
    assert "t1    waits: at bank.py:5: with b:" in trace_text(found)
    assert "at bank.py:5: with b:" in trace_page(found)


def test_a_race_names_both_accesses() -> None:
    found = traced(counter(), RACES)
    assert (found.explanation or "").splitlines()[1:] == [
        "t1 writes x at counter.c:5: x = x + 1;",
        "t2 reads x at counter.c:5: x = x + 1;",
    ]


def test_a_failed_check_names_its_statement() -> None:
    found = traced(counter(), "assertions")
    assert found.explanation == "assertions is violated: an assertion fails.\nmain at counter.c:11: assert(x == 2);"
    program = parse_program("int a[2] = 0; process p { int i = 2; a[i] = 1; }", name="f.plait")
    found = followed(program, "bounds", [0])
    assert (found.explanation or "").splitlines() == [
        "bounds is violated: an index is out of range.",
        "p at f.plait:1: a[i] = 1;: the index 2 is out of range: a has 2 cells",
    ]


def test_every_check_has_a_sentence() -> None:
    names = "ASSERTIONS BOUNDS DIVISION OVERFLOW LOCKS MEMORY LEAKS DEADLOCK RACES LIMITS"
    assert set(SENTENCES) == {getattr(definition, name) for name in names.split()}


def test_the_text_of_a_property() -> None:
    program = parse_program(
        "int x = 0; process p { x = 1; } always zero: x == 0; final done: x == 2; reachable one: x == 1;"
    )
    assert [statement(program, p) for p in program.properties] == [
        "zero is violated: x == 0 is false.",
        "done is violated: all processes have ended, and x == 2 is false.",
        "one is reached: x == 1 is true.",
    ]


def test_an_explanation_says_what_was_left_out() -> None:
    program = parse_program("int x = 0, y = 0; process p { x = 1; } process q { y = 1; } always zero: x == 0;")
    found = followed(program, "zero", [1, 0])
    assert [event.lane for event in found.events] == ["p"]
    assert (found.explanation or "").endswith("\n1 step that cannot influence this is left out.")
    assert "left out" not in (followed(program, "zero", [0]).explanation or "")
    assert found.why is not None
    assert [(r.field, r.value, r.step) for r in found.why.reads] == [("x", 1, 0)]


def test_runs_with_atomic_sections_are_whole() -> None:
    """A step of the other thread cannot influence the property, but sections exclude other threads."""
    program = looping_section()
    assert any(step.exclusive for code in program.processes for step in code.instructions)
    moves = [1] + [0] * len(shortest(program, "small")[2])
    found = followed(program, "small", moves)
    assert [event.lane for event in found.events] == [program.processes[p].name for p in moves]
    assert list(replay(program, found)) == found.events


# -- replay ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("make", "name"), CASES)
def test_saved_traces_replay(make: Make, name: str, tmp_path: Path) -> None:
    found = traced(make(), name)
    save_trace(found, tmp_path / "t.itf.json")
    saved = load_trace(tmp_path / "t.itf.json")
    assert saved == found
    assert list(replay(make(), saved)) == found.events


def test_a_replay_on_a_corrected_program_fails() -> None:
    for name in ("assertions", RACES):
        with pytest.raises(TraceError):
            list(replay(counter(atomic=True), traced(counter(), name)))


def test_a_replay_needs_the_initial_state_of_the_program() -> None:
    text_ = "int x = 0; process p { x = x + 1; } always small: x < 1;"
    found = followed(parse_program(text_), "small", [0])
    with pytest.raises(TraceError, match="is not an initial state"):
        list(replay(parse_program(text_.replace("x = 0", "x = 1")), found))


def test_traces_without_places_stay_as_they_were(tmp_path: Path) -> None:
    """The new parts of an event are in the files of programs only."""
    from plait.check.api import check
    from plait.protocols.paxos import paxos

    verdict = check(paxos(faulty="acceptor"))
    assert verdict.trace is not None
    save_trace(verdict.trace, tmp_path / "t.itf.json")
    said = (tmp_path / "t.itf.json").read_text()
    assert '"place"' not in said
    assert '"values"' not in said


# -- definitions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [counter, embrace, guess, looping_section])
def test_hazards_agree_with_the_expressions(make: Make) -> None:
    """Deadlock and data race of a state: by executing steps, and as the conditions that solvers get."""
    program = make()
    conditions = [property_of(program, name).bad for name in (DEADLOCK, RACES)]
    enumeration = Enumeration(program)
    interpreter = enumeration.interpreter
    for layer in enumeration.layers():
        for state in layer.states:
            deadlock, race = (bool(interpreter.evaluate(e, state)) for e in conditions)
            assert bool(waiting(interpreter, state)) == deadlock
            assert any(True for _ in races(interpreter, state)) == race


# -- reports -----------------------------------------------------------------------------------------------------------


def _visible(trace_: Trace) -> str:
    """The text of the page, without its script, its styles and its data."""
    page = re.sub(r"<(script|style)\b.*?</\1>", "", trace_page(trace_), flags=re.DOTALL)
    return re.sub(r"<[^>]*>", "\n", page)


@pytest.mark.parametrize(("make", "name"), CASES)
def test_reports_do_not_speak_of_messages(make: Make, name: str) -> None:
    found = traced(make(), name)
    for said in (_visible(found), trace_text(found, width=120)):
        assert not re.findall(MESSAGES, said, re.IGNORECASE)


def test_pages_have_places_and_values() -> None:
    said = _visible(traced(counter(), "assertions"))
    assert re.search(r"counter\.c:5\s+x = x \+ 1;\s+reads\s+x = 0", said)
    assert re.search(r"counter\.c:5\s+x = x \+ 1;\s+writes\s+x: 0 → 1", said)

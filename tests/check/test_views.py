"""Views: pictures of the states that are shown. They cannot change a verdict, whatever they do."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from plait import (
    Message,
    ModelError,
    Pid,
    Process,
    Shared,
    System,
    action,
    always,
    check,
    eventually,
    field,
    final,
    on,
    reachable,
    refines,
    view,
)
from plait.check.explain.execute import retraced
from plait.check.explain.pictures import pictures
from plait.check.explain.replay import replay
from plait.check.runner import Runner
from plait.check.walk.run import Runs, run_of
from plait.kernel.trace import Picture, Trace
from plait.model.loading.loader import load
from plait.model.properties import Drawing
from plait.report.itf import load_trace, save_trace
from plait.rounds.check import check_rounds

HERE = Path(__file__).name


class Note(Message):
    text: str


class Counter(Process):
    other: Pid | None = None
    count: int = 0
    seen: list[int] = field(default_factory=list)
    spare: int = 0

    @action(when=lambda self: self.count < 3)
    def tick(self) -> None:
        self.count += 1
        self.spare = 3 - self.count
        if self.other is not None:
            self.send(self.other, Note("<&>"))

    @on(Note)
    def receive(self, m: Note) -> None:
        self.seen.append(self.count)


@always
def small(s: Any) -> bool:
    return all(c.count < 3 for c in s[Counter])


@reachable
def two(s: Any) -> bool:
    return any(c.count == 2 for c in s[Counter])


def svg(text: object) -> str:
    return f'<svg viewBox="0 0 90 30"><text y="20">{text}</text></svg>'


@view
def counts(s: Any) -> str:
    return svg(" ".join(f"{c.id}={c.count}" for c in s[Counter]))


def system(*views: Drawing, **more: Any) -> System:
    options: dict[str, Any] = {"properties": [small, two], **more}
    return System([Counter(other=Counter.pid(1)), Counter()], views=views, **options)


def texts(trace: Trace, name: str = "counts") -> list[str]:
    """The text of the picture of each state."""
    found = []
    for state in (trace.initial, *(event.state for event in trace.events)):
        picture = (state.views or {})[name]
        assert picture.error is None
        found.append("".join(re.findall(r"<text[^>]*>([^<]*)</text>", picture.svg or "")))
    return found


def expected(trace: Trace) -> list[str]:
    """The same, from the fields of the states."""
    every = [trace.initial, *(event.state for event in trace.events)]
    return [" ".join(f"{lane.name}={state.fields[lane.name]['count']}" for lane in trace.lanes) for state in every]


def found(verdict: Any, name: str = "small") -> Trace:
    trace: Trace | None = next(p.trace for p in verdict.properties if p.name == name)
    assert trace is not None
    return trace


# -- what is drawn ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{}, {"search": "dfs"}, {"reduce": "por"}, {"raw": True}, {"native": "off"}, {"workers": 2}]
)
def test_each_state_of_a_run_has_its_picture(options: dict[str, Any]) -> None:
    verdict = check(system(counts), keep_going=True, **options)
    for name in ("small", "two"):
        trace = found(verdict, name)
        assert len(trace) >= 2
        assert texts(trace) == expected(trace)


def test_a_view_reads_fields_that_a_reduction_leaves_out() -> None:
    @view
    def everything(s: Any) -> str:
        return svg([(c.count, c.spare, len(c.seen), len(c.inbox), c.status) for c in s[Counter]])

    verdict = check(system(everything), reduce="decomposition")
    assert verdict.statistics.reductions[0].applied
    drawn = texts(found(verdict), "everything")
    assert drawn[0].startswith("[(0, 0, 0, 0, &#x27;up&#x27;)")
    assert any("(3, 0, " in text for text in drawn)


def test_runs_of_other_kinds() -> None:
    @eventually
    def four(s: Any) -> bool:
        return any(c.count == 4 for c in s[Counter])

    @final
    def nothing_seen(s: Any) -> bool:
        return not any(c.seen for c in s[Counter])

    class Abstract(Process):
        total: int = 0

        @action(when=lambda self: self.total < 4)
        def up(self) -> None:
            self.total += 1

    refined = refines(System([Abstract()]), lambda s: Abstract(total=sum(c.count for c in s[Counter])), name="less")
    for prop in (four, nothing_seen, refined):
        trace = check(system(counts, properties=[prop])).trace
        assert trace is not None, prop
        assert texts(trace) == expected(trace)


def test_a_step_that_fails() -> None:
    class Failing(Counter):
        @action(when=lambda self: self.count == 1)
        def fail(self) -> None:
            raise ValueError

    trace = check(System([Failing()], properties=[small], views=[counts])).trace
    assert trace is not None
    assert trace.property == "no_exceptions"
    assert texts(trace)[-2:] == ["Failing0=1", "Failing0=1"]


def test_runs_of_rounds_are_runs_of_the_model() -> None:
    verdict = check_rounds(load("commit_rounds", {"faulty": "hasty"}, parse=False))
    plain = verdict.trace
    assert plain is not None
    model = load("commit_rounds", {"faulty": "hasty"}, parse=False)

    @view
    def number(s: Any) -> str:
        return svg(len(s.processes))

    model.views = [number]
    trace = check_rounds(model).trace
    assert trace is not None
    assert set(texts(trace, "number")) == {str(len(model.pids))}
    assert bare(trace) == plain


def bare(trace: Trace) -> Trace:
    """The trace without pictures."""
    replace = msgspec.structs.replace

    def state(one: Any) -> Any:
        return replace(one, views=msgspec.UNSET)

    events = [replace(event, state=state(event.state)) for event in trace.events]
    return replace(trace, initial=state(trace.initial), events=events)


def test_shared_state() -> None:
    class Store(Shared):
        value: int = 0

    class Writer(Process):
        store: Store

        @action(when=lambda self: self.store.value < 2)
        def write(self) -> None:
            self.store.value += 1

    @view
    def value(s: Any) -> str:
        return svg(s[Store].value)

    store = Store()
    trace = check(
        System(
            [Writer(store=store), Writer(store=store)], properties=[always(lambda s: s[Store].value < 2)], views=[value]
        )
    ).trace
    assert trace is not None
    assert texts(trace, "value") == ["0", "1", "2"]


def test_a_run_on_another_model_is_drawn_there() -> None:
    trace = found(check(system(counts)))
    again = retraced(system(counts), trace)
    assert texts(again) == expected(again)
    assert "views" not in msgspec.to_builtins(retraced(system(), trace).initial)


# -- what a view cannot do --------------------------------------------------------------------------------------------


def changing(s: Any) -> str:
    for c in s[Counter]:
        c.seen.append(99)
    return svg("x")


def assigning(s: Any) -> str:
    s[Counter][0].count = 7
    return svg("x")


def sending(s: Any) -> str:
    s[Counter][0].send(s[Counter][0].id, Note("x"))
    return svg("x")


def raising(s: Any) -> str:
    return svg({}["key"])


def quitting(s: Any) -> str:
    raise SystemExit(3)


def nothing(s: Any) -> None:
    pass


def broken(s: Any) -> str:
    return "<svg viewBox='0 0 9 9'><text>a < b</text></svg>"


def scripted(s: Any) -> str:
    return "<svg viewBox='0 0 9 9'><script>alert(1)</script></svg>"


@pytest.mark.parametrize("draw", [changing, assigning, sending, raising, quitting, nothing, broken, scripted])
def test_a_view_has_no_influence(draw: Callable[[Any], str]) -> None:
    plain, drawn = check(system(), keep_going=True), check(system(view(draw)), keep_going=True)
    assert drawn.status == plain.status
    assert drawn.statistics.states == plain.statistics.states
    assert drawn.statistics.transitions == plain.statistics.transitions
    for name in ("small", "two"):
        assert bare(found(drawn, name)) == found(plain, name)
    assert str(drawn).partition("states")[0] == str(plain).partition("states")[0]


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (raising, r"raising raised KeyError: 'key' \(.*{file}:\d+\)"),
        (quitting, r"quitting raised SystemExit: 3 \(.*{file}:\d+\)"),
        (assigning, r"assigning raised the property changes the state it looks at: Counter0.count \(.*{file}:\d+\)"),
        (nothing, r"nothing returned None: expected SVG as text, '<svg …>…</svg>' \(.*{file}:\d+\)"),
        (broken, r"broken returned SVG that cannot be shown: line 1, column 33: not well-formed .* \(.*{file}:\d+\)"),
    ],
)
def test_errors_are_in_the_place_of_the_picture(draw: Callable[[Any], str], said: str) -> None:
    trace = found(check(system(view(draw), counts)))
    picture = (trace.initial.views or {})[draw.__name__]
    assert picture.svg is None
    assert re.fullmatch(said.replace("{file}", re.escape(HERE)), picture.error or ""), picture.error
    assert texts(trace) == expected(trace), "other views are drawn"


def test_the_line_of_an_error_is_the_line_that_raised() -> None:
    trace = found(check(system(view(raising))))
    error = (trace.initial.views or {})["raising"].error or ""
    source = Path(__file__).read_text(encoding="utf-8").splitlines()
    line = int(re.findall(r":(\d+)\)$", error)[0])
    assert source[line - 1].strip() == 'return svg({}["key"])'


def test_what_was_removed_is_noted() -> None:
    trace = found(check(system(view(scripted))))
    picture = (trace.initial.views or {})["scripted"]
    assert picture.svg == '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9" width="9" height="9"></svg>'
    assert picture.note == "removed: <script>"


def test_a_view_that_does_not_end() -> None:
    @view
    def endless(s: Any) -> str:
        while s[Counter][0].count == 1:
            pass
        return svg("x")

    model = system(counts, endless)
    trace = found(check(system()))
    runner = Runner(model)
    runs = Runs(runner)
    path = runs.at(run_of(runs, trace))[0].path()
    begun = time.monotonic()
    drawn = pictures(runner, [stop.state for stop in path], seconds=0.3)
    assert time.monotonic() - begun < 60
    assert len(drawn) == len(path)
    assert drawn[0]["endless"].error is None
    late = "not drawn: the pictures of this run took longer than 0.3 s"
    assert drawn[-1] == {"counts": Picture(error=late), "endless": Picture(error=late)}


# -- traces -----------------------------------------------------------------------------------------------------------


def test_a_model_without_views_has_no_trace_of_them() -> None:
    verdict = check(system(), keep_going=True)
    assert '"views"' not in json.dumps(verdict.to_json())


def test_pictures_survive_files(tmp_path: Path) -> None:
    trace = found(check(system(counts, view(broken))))
    assert msgspec.json.decode(msgspec.json.encode(trace), type=Trace) == trace
    save_trace(trace, tmp_path / "run.itf.json")
    assert load_trace(tmp_path / "run.itf.json") == trace
    states = json.loads((tmp_path / "run.itf.json").read_text())["states"]
    assert all(state.keys() == states[0].keys() for state in states), "an ITF viewer sees no other variable"


def test_a_file_has_a_picture_once_while_it_stays_the_same(tmp_path: Path) -> None:
    trace = found(check(system(view(lambda s: svg("always the same"), name="still"))))
    save_trace(trace, tmp_path / "run.itf.json")
    assert (tmp_path / "run.itf.json").read_text().count("always the same") == 1
    assert load_trace(tmp_path / "run.itf.json") == trace


def test_a_trace_with_pictures_replays_on_a_model_without_them() -> None:
    trace = found(check(system(counts)))
    assert len(list(replay(system(), trace))) == len(trace)
    assert len(list(replay(system(view(raising)), bare(trace)))) == len(trace)


def test_the_explorer_finds_the_keys_of_a_trace_with_pictures() -> None:
    trace = found(check(system(counts)))
    runs = Runs(Runner(system(counts)))
    stop, gone = runs.at(run_of(runs, trace))
    assert gone is None
    assert runs.trace(stop).events == bare(trace).events
    assert runs.trace(stop, drawn=True).events == trace.events


# -- declarations -----------------------------------------------------------------------------------------------------


def test_a_view_can_be_called_in_tests() -> None:
    @view(name="another name")
    def drawn(s: Any) -> str:
        return svg(s)

    assert drawn.name == "another name"
    assert drawn(5) == svg(5)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: system(svg),
            r"System: <function svg.*> in views is not a Drawing\nhint: decorate the function with @view",
        ),  # type: ignore[arg-type]
        (lambda: system(small), r"in views is not a Drawing"),  # type: ignore[arg-type]
        (lambda: System([Counter()], views=3), r"System: views=3 is not a list"),  # type: ignore[arg-type]
        (lambda: System([Counter()], properties=[counts]), r"in properties is not a Property"),  # type: ignore[list-item]
        (
            lambda: system(counts, counts),
            r"two view definitions are called 'counts'\nhint: give one another name: name=",
        ),
        (lambda: view(small), r"view\(small\): small is a property \(always\) already"),
        (lambda: view(counts), r"view\(counts\): counts is a view already"),
        (lambda: view(5), r"view\(5\): expected a function of the view\nhint: write @view def ring\(s\)"),  # type: ignore[call-overload]
        (lambda: view(lambda: ""), r"@view <lambda>: <lambda> does not take the view"),  # type: ignore[arg-type, misc]
    ],
)
def test_mistakes_are_refused(make: Callable[[], object], said: str) -> None:
    with pytest.raises(ModelError) as error:
        make()
    assert re.search(said, str(error.value)), str(error.value)


@pytest.mark.parametrize("target", ["chang_roberts", "raft", "examples/election.py"])
def test_the_views_of_the_package_draw_every_state(target: str) -> None:
    """No error, nothing removed, in the states of the first steps."""
    model = load(target, {}, parse=False)
    runner = Runner(model)
    states, edge = [], [state for state, _ in runner.initial]
    for _ in range(4):
        states += edge
        edge = [t.state for state in edge[:20] for t in runner.engine.successors(state) if t.failure is None]
    for drawn in pictures(runner, states, seconds=60):
        assert [(p.error, p.note) for p in drawn.values()] == [(None, None)]

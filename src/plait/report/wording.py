"""The sentences of reports. They are in one place, so that the text and the HTML of a verdict say the same."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import PurePath

import msgspec

from plait.kernel.trace import Event, Lane, Sent, Trace
from plait.kernel.values import Data, text
from plait.kernel.verdict import VACUOUS, FormulaStatistics, PropertyResult, Status, Verdict
from plait.report.space_time.flow import Journey, journeys

FAULTS = {"lose": "✕ LOST", "duplicate": "+ DUPLICATED", "crash": "✕ CRASH", "recover": "○ RECOVERY"}
"""The kinds of events that the environment causes, and how they are marked."""

STATUS_WORDS = {"crashed": "crashed", "down": "down", "unborn": "not started"}


def visible(raw: str) -> str:
    r"""Show control characters as escapes, so that a name from a file cannot control the terminal.

    >>> visible("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in raw)


def visible_lines(raw: str) -> str:
    """The same for a text of several lines. Line breaks are kept."""
    return "\n".join(map(visible, raw.splitlines()))


def plural(count: int, noun: str) -> str:
    """A count with its noun.

    >>> plural(1, "step"), plural(1200, "step"), plural(2, "property")
    ('1 step', '1,200 steps', '2 properties')
    """
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun[:-1]}ies" if noun.endswith("y") else f"{count:,} {noun}s"


def record_text(fields: dict[str, Data]) -> str:
    """Fields as keyword arguments in Python."""
    return ", ".join(f"{visible(name)}={visible(text(value))}" for name, value in fields.items())


def message_text(message: Sent) -> str:
    """A message as the Python call that makes it."""
    return f"{visible(message.type)}({record_text(message.fields)})"


def model_text(trace: Trace) -> str:
    """The model and its parameters, as in `paxos.py:model (proposers=2)`."""
    target = visible(trace.target)
    return f"{target} ({record_text(trace.parameters)})" if trace.parameters else target


def _named(messages: dict[int, Sent], ids: list[int]) -> list[tuple[int, Sent | None]]:
    return [(i, messages.get(i)) for i in ids]


def _taken(messages: dict[int, Sent], ids: list[int]) -> list[str]:
    """One line per message, with its sender: `#3 Read(ballot=1) from Proposer0`."""
    return [
        f"#{i} {message_text(m)} from {visible(m.sender)}" if m else f"#{i}, a message that the trace does not describe"
        for i, m in _named(messages, ids)
    ]


def sent_groups(messages: dict[int, Sent], ids: list[int]) -> list[tuple[list[str], str, list[int]]]:
    """Messages grouped by content: receivers, content, ids. So a broadcast is one line."""
    groups: dict[str, tuple[list[str], list[int]]] = {}
    for i, m in _named(messages, ids):
        content = message_text(m) if m else "a message that the trace does not describe"
        receivers, numbers = groups.setdefault(content, ([], []))
        receivers.append(visible(m.receiver) if m else "?")
        numbers.append(i)
    return [(receivers, content, numbers) for content, (receivers, numbers) in groups.items()]


def step_details(trace: Trace) -> list[list[tuple[str, str]]]:
    """For each event, its effects as rows (verb, text): takes, chooses, sends, announces, spawns, reads, changes."""
    messages = {m.id: m for m in trace.messages}
    notable: dict[int, list[Journey]] = {}
    for journey in journeys(trace):
        made = journey.copy_of is not None or journey.merged is not None
        for step in {journey.born if made else journey.dropped, journey.dropped}:
            if step is not None:
                notable.setdefault(step, []).append(journey)
    result = []
    for step, event in enumerate(trace.events, start=1):
        rows = _details(messages, event, trace.lanes)
        for journey in notable.get(step, []):
            rows += _ending(messages, event, step, journey)
        if event.abstract:
            rows.append(("abstract", visible(event.abstract)))
        if event.note:
            rows += [("note", visible(line)) for line in event.note.splitlines()]
        result.append(rows)
    return result


def _ending(messages: dict[int, Sent], event: Event, step: int, journey: Journey) -> list[tuple[str, str]]:
    """What happened to a message in this step as a side effect: it was copied, merged or dropped."""
    number, to = journey.message.id, visible(journey.message.receiver)
    if journey.copy_of is not None and journey.born == step and number not in event.sent:
        return [("adds", f"→ {to}: {message_text(journey.message)}  (#{number})")]
    if journey.merged is not None and journey.born == step:
        return [("merges", f"#{number}: the equal message #{journey.merged} is pending already")]
    if journey.dropped != step or number in event.consumed:
        return []
    if number in event.sent:
        down = journey.message.receiver in event.state.status
        return [("drops", f"#{number}: {to} is not running" if down else f"#{number}: the channel to {to} is full")]
    return [("drops", line) for line in _taken(messages, [number])]


def _details(messages: dict[int, Sent], event: Event, lanes: Sequence[Lane]) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    take = {"lose": "loses", "crash": "drops", "duplicate": "copies"}.get(event.kind, "takes")
    send = "adds" if event.kind == "duplicate" else "sends"
    rows += [(take, line) for line in _taken(messages, event.consumed)]
    rows += [("chooses", visible(text(choice))) for choice in event.choices]
    for receivers, content, ids in sent_groups(messages, event.sent):
        numbers = ", ".join(f"#{i}" for i in ids)
        rows.append((send, f"→ {', '.join(receivers)}: {content}  ({numbers})"))
    rows += [("announces", visible(text(announced))) for announced in event.announced]
    if event.spawned:
        rows.append(("spawns", ", ".join(map(visible, event.spawned))))
    if reads := _reads(event, lanes):
        rows.append(("reads", ", ".join(reads)))
    for field, (before, after) in event.changed.items():
        bare = _bare(field, lanes)
        verb = "changes" if bare == field else "writes"
        rows.append((verb, f"{visible(bare)}: {_shown(before)} → {_shown(after)}"))
    return rows


def _shown(value: Data) -> str:
    return visible(text(value))


def _reads(event: Event, lanes: Sequence[Lane]) -> list[str]:
    """What an event reads of shared objects: with values if they are known, and then without what it also writes."""
    if event.values is not msgspec.UNSET:
        read = {k: v for k, v in event.values.items() if k not in event.changed}
        return [f"{visible(_bare(k, lanes))} = {_shown(v)}" for k, v in read.items()]
    objects = [f"{lane.name}." for lane in lanes if lane.shared]
    return [visible(name) for name in event.read if any(map(name.startswith, objects))]


def _bare(field: str, lanes: Sequence[Lane]) -> str:
    """A field of an event, without the name of the lane if it is the shared memory: there is only one."""
    memory = next((lane.name for lane in lanes if lane.shared and lane.role == "memory"), None)
    return field if memory is None else field.removeprefix(f"{memory}.")


def access_lines(trace: Trace, event: Event, lane: str) -> list[str]:
    """What an event reads and writes on the lane of a shared object, with values: `x = 1`, or `x: 1 → 2` if it writes.

    Empty if the values are not known.
    """
    if event.values is msgspec.UNSET:
        return []
    changed = {k: pair for k, pair in event.changed.items() if k.startswith(f"{lane}.")}
    read = {k: v for k, v in event.values.items() if k.startswith(f"{lane}.") and k not in changed}
    lines = [f"{visible(_bare(k, trace.lanes))} = {_shown(v)}" for k, v in read.items()]
    return lines + [f"{visible(_bare(k, trace.lanes))}: {_shown(a)} → {_shown(b)}" for k, (a, b) in changed.items()]


def place_text(event: Event) -> str:
    """The place of the statement of an event, without the folder of its file: `counter.c:14`. Empty if it has none."""
    if not event.place:
        return ""
    return visible(f"{PurePath(event.place.file).name or event.place.file}:{event.place.line}")


def start_text(trace: Trace) -> str | None:
    """Which of several initial states a run begins with: what the `@init` methods chose."""
    if not trace.chosen:
        return None
    made = [f"{visible(lane)} chose {', '.join(visible(text(c)) for c in some)}" for lane, some in trace.chosen.items()]
    return f"initially {'; '.join(made)}"


def trace_heading(trace: Trace, verdict: Verdict | None = None) -> str:
    """The title of a trace: what it shows, and its length. The verdict decides: counterexample or example."""
    name = visible(trace.property) if trace.property is not None else None
    if name is None:
        what = "Run"
    elif verdict is None:
        what = f"Trace for {name}"
    else:
        what = f"Counterexample to {name}" if outcome(trace, verdict) == "violated" else f"Example for {name}"
    return f"{what}: {length_text(trace)}"


def length_text(trace: Trace) -> str:
    """The number of steps, and which of them repeat."""
    loop = "" if trace.loop is None else f"; {_repeated(len(trace) - trace.loop)} for ever"
    return f"{plural(len(trace), 'step')}{loop}"


def outcome(trace: Trace, verdict: Verdict) -> Status:
    """The status of the property that a trace is about: a violation, or an example that was found."""
    return next((p.status for p in verdict.properties if p.name == trace.property), verdict.status)


def _repeated(count: int) -> str:
    return "the last one repeats" if count == 1 else f"the last {count:,} repeat"


def mark_texts(trace: Trace) -> dict[int, list[list[str]]]:
    """The text of marks, by the number of events before the mark: a label, then a line for each lost message."""
    messages = {m.id: m for m in trace.messages}
    found: dict[int, list[list[str]]] = {}
    for mark in trace.marks:
        lines = [visible(mark.label)]
        for receivers, content, ids in sent_groups(messages, mark.lost):
            lines.append(f"→ {', '.join(receivers)}: {content}  ({', '.join(f'#{i}' for i in ids)})")
        found.setdefault(mark.before, []).append(lines)
    return found


def event_label(event: Event) -> str:
    """The label of an event; empty if it only repeats the mark of the fault."""
    label = visible(event.label)
    return "" if event.kind in FAULTS and label == event.kind else label


def why_rows(trace: Trace) -> list[tuple[str, str, str]]:
    """Why the property has its value: rows of a part, its value, and the step that wrote it."""
    if trace.why is None:
        return []
    rows = [(visible(c.text), visible(c.value), "") for c in trace.why.clauses]
    for read in trace.why.reads:
        what = visible(read.lane if read.field is None else _bare(f"{read.lane}.{read.field}", trace.lanes))
        rows.append(
            (what, visible(text(read.value)), "initial value" if read.step is None else f"step {read.step + 1}")
        )
    return rows


def traceback_rows(trace: Trace) -> list[tuple[str, str]]:
    """The traceback of the exception that ends a run: rows of a place, and the line of code there."""
    frames = trace.exception.frames if trace.exception is not None else []
    places = [f"{f.file}:{f.line}" + (f":{f.column}" if f.column is not None else "") for f in frames]
    return [
        (visible(f"{place} in {frame.function}"), visible(frame.code))
        for place, frame in zip(places, frames, strict=True)
    ]


def waiting_title(trace: Trace) -> str:
    """What `waiting_rows` are about."""
    return "Who waits for what" if trace.abstract is None else f"The steps of {visible(trace.abstract)}"


def waiting_rows(trace: Trace) -> list[tuple[str, str]]:
    """Who waits for what in the last state: rows of a process and its handler, and the reason."""
    return [
        (visible(wait.lane if wait.handler is None else f"{wait.lane}.{wait.handler}"), visible(wait.reason))
        for wait in trace.waiting
    ]


def idle_steps(trace: Trace) -> list[int]:
    """The indices of events that are not involved in the violation. Empty if this is not known."""
    if trace.why is None or not trace.why.steps:
        return []
    return [i for i in range(len(trace.events)) if i not in trace.why.steps]


def numbers_text(numbers: Sequence[int]) -> str:
    """Numbers in ascending order. If there are many, neighbours are put together.

    >>> numbers_text([1, 3, 4, 5]), numbers_text([1, *range(3, 20), 40, 41])
    ('1, 3, 4, 5', '1, 3–19, 40, 41')
    """
    if len(numbers) <= _FEW:
        return ", ".join(map(str, numbers))
    parts = []
    for _, group in itertools.groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        first, *rest = (number for _, number in group)
        parts += [f"{first}–{rest[-1]}"] if len(rest) > 1 else [str(number) for number in (first, *rest)]
    return ", ".join(parts)


_FEW = 12

LOOP_STARTS = "the loop starts here"


def loop_text(trace: Trace) -> str | None:
    """The step to which a lasso goes back."""
    return None if trace.loop is None else f"back to step {trace.loop + 1}: steps {trace.loop + 1}–{len(trace)} repeat"


def headline(verdict: Verdict) -> tuple[str, str]:
    """The verdict as one word in capitals, and its subject."""
    if verdict.status == "holds":
        count = len(verdict.properties)
        subject = visible(verdict.properties[0].name) if count == 1 else plural(count, "property")
        return "HOLDS", subject if count else "no property was given"
    if verdict.status == "violated":
        return "VIOLATED", visible(verdict.property or "a property")
    return "INCONCLUSIVE", stopped(verdict.bound) if verdict.bound else "the search is not complete"


def stopped(bound: str) -> str:
    """Why a search ended before it was complete.

    >>> stopped("max-states"), stopped("depth 9"), stopped("interrupted")
    ('stopped: max-states limit reached', 'stopped at depth 9', 'interrupted')
    """
    said = {"interrupted": "interrupted", "walks": "random walks do not visit all states"}
    if bound in VACUOUS:
        return f"nothing was checked: {VACUOUS[bound]}"
    if bound.split()[0] == "within":
        return f"not decided {visible(bound)}" if " " in bound else "not decided within the bound"
    if bound in ("max-states", "max-depth", "timeout", "memory"):
        return f"stopped: {bound} limit reached"
    return said.get(bound) or f"stopped{' at' if bound.startswith('depth') else ':'} {visible(bound)}"


def claim(verdict: Verdict) -> str:
    """Exactly what was shown: the states that were searched, or the limit that ended the search."""
    s = verdict.statistics
    if s.formula is not None:
        return _bounded_claim(verdict, s.formula)
    if s.graph_states in (0, s.states):
        return _searched_claim(verdict)
    return f"{_searched_claim(verdict)} The graph of runs has {plural(s.graph_states, 'state')}."


def _searched_claim(verdict: Verdict) -> str:
    """What a search of states has shown."""
    s = verdict.statistics
    walks = f" in {plural(s.walks, 'random walk')}" if s.walks else ""
    states = plural(s.states, "state")
    if verdict.status == "violated" and _lacks_example(verdict):
        if verdict.limit:
            return f"No example was found within the bound {visible(verdict.limit)}: {states} searched{walks}."
    elif verdict.status == "violated":
        said = f"A violation was found after {states}{walks}."
        if verdict.limit:
            said += f" The search was not complete ({stopped(verdict.limit)}): other properties may be undecided."
        return said
    if verdict.bound in VACUOUS:
        return f"Nothing was checked: {VACUOUS[verdict.bound]}. {_complete_claim(verdict)}"
    if s.cut_states and verdict.limit is None:
        return _complete_claim(verdict)
    if verdict.status == "inconclusive":
        bad = any(p.status == "violated" for p in verdict.properties)
        if verdict.bound == "walks":
            limit = f"{states} visited{walks}"
        else:
            limit = f"{stopped(verdict.bound) if verdict.bound else 'stopped: limit reached'} after {states}{walks}"
        found = "see the properties below" if bad else "no violation found so far"
        rest = "All states were met, but not all runs were compared" if s.all_states else "More states may exist"
        return f"Inconclusive: {limit}; {found}. {rest}."
    if verdict.bound:
        within = f"Holds only within the bound {visible(verdict.bound)}"
        return f"{within}: {states} searched{walks}. Nothing is known beyond the bound."
    return _complete_claim(verdict)


def _complete_claim(verdict: Verdict) -> str:
    """What was searched, if no limit was reached."""
    s = verdict.statistics
    states = plural(s.states, "state")
    if s.cut_states:
        return _within_claim(verdict)
    if s.search == "stateless":
        runs = (
            f"All runs, up to the order of independent steps ({applied}),"
            if (applied := reductions(verdict))
            else "All runs"
        )
        return f"{runs} were searched, with {plural(s.states, 'visit')} to states (each visit of a state counts)."
    if applied := reductions(verdict):
        said = f"All {states} of the reduced state space ({applied}) were searched"
    else:
        said = (
            f"All {s.states:,} reachable states were searched"
            if s.states != 1
            else "The only reachable state was searched"
        )
    if s.collision_probability > 0:
        said += f", up to hash collisions (probability of a missed state: {s.collision_probability:.1e})"
    return said + "."


def _within_claim(verdict: Verdict) -> str:
    """What was searched within the bound of the System."""
    s = verdict.statistics
    name = visible((verdict.bound or "").removeprefix("within").strip())
    bound = f"the bound {name}" if name else "the bound"
    applied = f" of the reduced state space ({applied})" if (applied := reductions(verdict)) else ""
    what = plural(s.states, "visit to a state") if s.search == "stateless" else plural(s.states, "state")
    said = f"Only states within {bound} were expanded: {what}{applied}"
    if s.collision_probability > 0:
        said += f", up to hash collisions (probability of a missed state: {s.collision_probability:.1e})"
    outside = plural(s.cut_states, "state")
    return f"{said}. {outside} outside of it {'were' if s.cut_states > 1 else 'was'} checked. Nothing is known beyond."


def _lacks_example(verdict: Verdict) -> bool:
    """Whether only properties of the kind `reachable` fail. No run shows this: all states were searched in vain."""
    return {p.kind for p in verdict.properties if p.status == "violated"} == {"reachable"}


def _bounded_claim(verdict: Verdict, formula: FormulaStatistics) -> str:
    """What bounded model checking has shown."""
    steps = f"of at most {plural(verdict.statistics.depth, 'step')}"
    what = f"Runs {steps} were considered"
    if verdict.statistics.states:
        what += f" ({plural(verdict.statistics.states, 'state')})"
    elif formula.projection:
        what += ", by their projections on the variables that a property reads"
    if verdict.status == "holds":
        return f"{what}. Longer runs do not exist, or were shown to make no difference."
    if verdict.status == "violated":
        return f"{'No example' if _lacks_example(verdict) else 'A violation'} was found. {what}."
    return f"Inconclusive: {stopped(verdict.bound) if verdict.bound else 'stopped: limit reached'}. {what}."


def _formula_rows(verdict: Verdict, formula: FormulaStatistics) -> list[tuple[str, str]]:
    s = verdict.statistics
    rows = [
        ("depth", f"{s.depth:,}"),
        ("encoding", visible(formula.encoding)),
        ("projections", "on" if formula.projection else "off"),
        ("integers", visible(formula.integers)),
        ("time", _seconds(s.seconds)),
    ]
    if formula.queries:
        rows += [
            ("solver", visible(formula.solver)),
            ("queries", f"{formula.queries:,}"),
            ("assertions", f"{formula.assertions:,}"),
            ("building", _seconds(formula.build_seconds)),
            ("solving", _seconds(formula.solve_seconds)),
        ]
    if s.states:
        rows += [("states", f"{s.states:,}"), ("transitions", f"{s.transitions:,}")]
    return rows


def property_note(verdict: Verdict, result: PropertyResult) -> str:
    """The note of a property. It gets the length of its trace, if the report shows another trace."""
    parts = [visible(result.note)] if result.note else []
    if result.trace is not None and result.trace != verdict.trace:
        steps = plural(len(result.trace), "step")
        if not any(steps in part for part in parts):
            parts.append(f"trace of {steps}")
    return "; ".join(parts)


def bytes_text(count: float) -> str:
    """A size with a unit.

    >>> bytes_text(512), bytes_text(3 * 2**20)
    ('512 B', '3.0 MiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def _seconds(seconds: float) -> str:
    return f"{seconds:.3f} s" if seconds < 10 else f"{seconds:,.1f} s"


_MANY = 10_000
"""With fewer states than this, memory per state is not shown: it would measure empty tables."""


def reductions(verdict: Verdict) -> str:
    """The reductions that were applied."""
    return ", ".join(visible(r.name) for r in verdict.statistics.reductions if r.applied)


def reduction_rows(verdict: Verdict) -> list[tuple[str, str]]:
    """For each reduction that was requested or considered: its name, and why it was applied or not."""
    rows = []
    for r in verdict.statistics.reductions:
        rows.append((visible(r.name), visible(r.reason) if r.applied else f"not applied: {visible(r.reason)}"))
    return rows


def _percent(share: float) -> str:
    """A share in percent.

    >>> _percent(0.00042), _percent(0.028), _percent(0.5), _percent(1)
    ('0.042%', '2.8%', '50%', '100%')
    """
    return f"{100 * share:.2g}%" if share < 0.1 else f"{100 * share:,.0f}%"


def statistics_rows(verdict: Verdict) -> list[tuple[str, str]]:
    """The statistics as rows (label, value)."""
    s = verdict.statistics
    if s.formula is not None:
        return _formula_rows(verdict, s.formula)
    calls = f"{s.python_calls:,}"
    if s.transitions:
        share = s.python_calls / s.transitions
        calls += f" ({f'{_percent(share)} of transitions' if share <= 1 else f'{share:,.1f} per transition'})"
    rows = [
        ("states", f"{s.states:,}"),
        *([("states outside", f"{s.cut_states:,}")] if s.cut_states else []),
        ("transitions", f"{s.transitions:,}"),
        ("terminal states", f"{s.terminal_states:,}"),
        ("depth", f"{s.depth:,}"),
        ("time", _seconds(s.seconds)),
        ("states/s", f"{s.states_per_second:,.0f}" if s.seconds > 0 else "–"),
        ("python calls", calls),
        ("search", visible(s.search)),
        ("workers", f"{s.workers:,}"),
        ("reductions", reductions(verdict) or "none"),
    ]
    if s.native_answers:
        rows.insert(
            rows.index(("python calls", calls)),
            ("questions", f"{s.questions:,} ({_percent(1 - s.native_share)} to Python)"),
        )
    if s.graph_states not in (0, s.states):
        rows.append(("graph of runs", plural(s.graph_states, "state")))
    if s.walks:
        rows.append(("random walks", f"{s.walks:,}"))
    if s.stack_operations or s.stack_operations_saved:
        saved = f" ({s.stack_operations_saved:,} saved)" if s.stack_operations_saved else ""
        rows.append(("stack operations", f"{s.stack_operations:,}{saved}"))
    if s.memory_bytes:
        each = f" ({s.memory_bytes / s.states:,.0f} B per state)" if s.states >= _MANY else ""
        rows.append(("memory", bytes_text(s.memory_bytes) + each))
    if s.table_bytes:
        each = f" ({s.table_bytes / s.states:,.1f} B per state)" if s.states >= _MANY else ""
        rows.append(("visited set", bytes_text(s.table_bytes) + each))
    if s.local_states:
        rows.append(("local states", f"{s.local_states:,} ({s.bytes_per_local_state:,.0f} B each)"))
    rows.append(("collision probability", f"{s.collision_probability:.1e}" if s.collision_probability else "0"))
    return rows

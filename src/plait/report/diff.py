"""Two traces side by side, as text. `diff_html.py` uses the same sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from plait.kernel.alignment import Alignment, Difference, Row
from plait.kernel.trace import Trace
from plait.kernel.values import text
from plait.report.text import Line, finish
from plait.report.wording import FAULTS, event_label, model_text, plural, step_details, visible

NAMES = ("A", "B")


class Entry(NamedTuple):
    """A row as text."""

    row: Row
    numbers: tuple[str, str]
    title: str
    details: list[tuple[str, str, str]]
    """In which run (A, B, or empty for both), the verb, and the text."""


def headline(first: Trace, second: Trace, found: Alignment) -> str:
    """The result of the comparison, in one sentence."""
    if found.same:
        return f"The same: {plural(len(first), 'step')} in both, with the same effects."
    if found.same_steps:
        if None in found.loops and found.loops != (None, None):
            return f"The same steps, but only {NAMES[found.loops[0] is None]} repeats them."
        if found.loops[0] != found.loops[1]:
            return "The same steps, but the loops start at different steps."
        if found.unfair:
            return "The same steps, but the loop is not fair in B."
        return "The same steps, but the initial states differ."
    if all(row.relation in ("same", "moved") for row in found.rows):
        return f"The same steps, but in another order from step {found.common + 1} on."
    if found.common == min(len(first), len(second)):
        ended, other = NAMES if found.common == len(first) else NAMES[::-1]
        said = f"The same up to step {found.common}, where {ended} ends and {other} continues."
        return said if found.common else f"{ended} has no steps; {other} has steps."
    same = f"The same up to step {found.common}; they" if found.common else "They"
    return f"{same} differ from step {found.common + 1} on."


def introduced(file: str, trace: Trace) -> str:
    """The file, the model and the length of one of the two traces."""
    repeats = "" if trace.loop is None else f", repeating from step {trace.loop + 1} on"
    return f"{visible(file)}: {model_text(trace)}, {plural(len(trace), 'step')}{repeats}"


def fairness(found: Alignment) -> list[str]:
    """The assumption that the loop of B breaks."""
    return [f"the loop of B is not fair: {visible(found.unfair)}"] if found.unfair else []


def beginnings(found: Alignment, renamed: Mapping[str, str]) -> list[str]:
    """How the lanes of the two runs differ."""
    same = ", ".join(f"{visible(ours)} (in B: {visible(theirs)})" for theirs, ours in renamed.items())
    return ([f"matched by position: {same}"] if same else []) + [
        f"only {name} has {', '.join(map(visible, only))}" for name, only in zip(NAMES, found.only, strict=True) if only
    ]


def parting(first: Trace, second: Trace, found: Alignment) -> list[tuple[str, str]]:
    """What each run does at the first difference. Empty if all steps are the same."""
    if found.same_steps:
        return []
    said = []
    for name, trace in zip(NAMES, (first, second), strict=True):
        if found.common < len(trace.events):
            event = trace.events[found.common]
            fault = f"{FAULTS[event.kind]} " if event.kind in FAULTS else ""
            said.append((name, f"{fault}{visible(event.lane)} {event_label(event)}".rstrip()))
        else:
            said.append((name, "ends"))
    if said[0][1] == said[1][1]:
        return [("Both", f"{said[0][1]}, with other effects")]
    return said


def counts(found: Alignment) -> str:
    """How many steps are the same, and how many differ.

    >>> counts(Alignment(1, [], [Row("same", 0, 0), Row("one", 1, None)], [], (None, None), ([], [])))
    '1 step is the same; 1 only in A'
    """
    number = {kind: sum(row.relation == kind for row in found.rows) for kind in ("same", "changed", "moved")}
    same = number["same"] + number["moved"] // 2
    parts = [f"{plural(same, 'step')} {'is' if same == 1 else 'are'} the same"]
    if number["moved"]:
        parts[0] += f", {number['moved'] // 2} of them at another time"
    verb = "has" if number["changed"] == 1 else "have"
    parts += [f"{number['changed']} {verb} other effects"] if number["changed"] else []
    for name, side in zip(NAMES, ("first", "second"), strict=True):
        alone = sum(row.relation == "one" and getattr(row, side) is not None for row in found.rows)
        parts += [f"{alone} only in {name}"] if alone else []
    return "; ".join(parts)


def entries(first: Trace, second: Trace, found: Alignment) -> list[Entry]:
    """All rows as text."""
    details = [step_details(first), step_details(second)]
    result = []
    for row in found.rows:
        sides = [(first, row.first), (second, row.second)]
        event = next(trace.events[i] for trace, i in sides if i is not None)
        rows = [[] if i is None else [(k, _unnumbered(w)) for k, w in details[n][i]] for n, (_, i) in enumerate(sides)]
        shown = [("", *line) for line in rows[0] if line in rows[1]]
        shown += [(name, *line) for n, name in enumerate(NAMES) for line in rows[n] if line not in rows[1 - n]]
        fault = f"{FAULTS[event.kind]}  " if event.kind in FAULTS else ""
        title = f"{fault}{visible(event.lane)}  {event_label(event)}".rstrip()
        numbers = tuple("" if i is None else str(i + 1) for _, i in sides)
        result.append(Entry(row, (numbers[0], numbers[1]), title, shown))
    return result


def _unnumbered(said: str) -> str:
    """The text without numbers of messages (`#3 Ping() from A`, `→ B: Ping()  (#3, #4)`): they differ between runs."""
    if said.startswith("#"):
        return said.partition(" ")[2]
    head, bracket, _ = said.rpartition("  (#")
    return head if bracket else said


def difference_rows(found: list[Difference]) -> list[tuple[str, str, str]]:
    """The fields that differ: the name, and both values with the steps that wrote them."""

    def value(data: object, step: int | None) -> str:
        return f"{visible(text(data))}{'' if step is None else f' (step {step + 1})'}"

    return [
        (visible(f"{d.lane}.{d.field}" if not d.field.startswith("(") else f"{d.lane} {d.field}"),
         value(d.first, d.first_step), value(d.second, d.second_step))
        for d in found
    ]  # fmt: skip


def diff_text(
    first: Trace,
    second: Trace,
    found: Alignment,
    names: tuple[str, str],
    renamed: Mapping[str, str],
    *,
    width: int | None = None,
    color: bool = False,
) -> str:
    """The comparison for a terminal."""
    lines: list[Line] = [[(headline(first, second, found), "bold green" if found.same else "bold red")]]
    for name, file, trace in zip(NAMES, names, (first, second), strict=True):
        lines.append([(f"  {name}  ", "bold"), (introduced(file, trace), "")])
    if not found.same:
        lines += [[(f"  {said}", "")] for said in (counts(found), *fairness(found), *beginnings(found, renamed))]
        for name, said in parting(first, second, found):
            verb = "" if said == "ends" else "continue with " if name == "Both" else "continues with "
            lines.append([(f"  {name} {verb}", "bold"), (said, "")])
        lines += [*_rows(first, second, found)]
        lines += [*_values("In the initial states", found.start), *_values("In the last states", found.end)]
        if not found.end:
            lines += [[], [("The last states are the same.", "")]]
        lines += [[], [("  = the same   ≠ the same handler, other effects   ↕ the same step at another time", "dim")]]
    return finish(lines, width, color)


def _rows(first: Trace, second: Trace, found: Alignment) -> Iterator[Line]:
    wide = len(str(max(len(first), len(second))))
    yield []
    yield [(f"  {'A':>{wide}}   {'B':>{wide}}", "bold")]
    skipped = max(0, found.common - 1)
    if skipped:
        yield [(f"  {'…':>{wide}}   {'…':>{wide}}   {plural(skipped, 'step')} the same", "dim")]
    signs = {"same": ("=", "dim"), "changed": ("≠", "yellow"), "moved": ("↕", "magenta"), "one": (" ", "bold red")}
    for entry in entries(first, second, found)[skipped:]:
        (a, b), (sign, style) = entry.numbers, signs[entry.row.relation]
        yield [(f"  {a:>{wide}} {sign} {b:>{wide}}   ", "dim"), (entry.title, style)]
        if entry.row.relation in ("changed", "one"):
            for whose, kind, said in entry.details:
                yield [(f"  {'':>{wide}}   {'':>{wide}}     {whose:1} {kind:<9} ", "dim"), (said, "")]


def _values(title: str, found: list[Difference]) -> Iterator[Line]:
    if found:
        yield []
        yield [(title, "bold")]
    for what, a, b in difference_rows(found):
        yield [(f"  {what}", "")]
        yield [("    A  ", "dim"), (a, "")]
        yield [("    B  ", "dim"), (b, "")]

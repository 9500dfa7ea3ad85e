"""Coverage as text: which parts of a model a search exercised. Each section has a summary, and a line for each gap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from plait.kernel.coverage import Branch, Coverage, Exit, FieldCoverage, MessageCoverage
from plait.report.wording import plural, visible


class Section(NamedTuple):
    """The coverage of one kind of part: handlers, guards, bodies, messages, fields or properties."""

    name: str
    summary: str
    gaps: list[tuple[str, str]]
    """Parts that were not exercised, each with the reason."""


def sections(coverage: Coverage) -> list[Section]:
    """All sections, in the order in which they are shown."""
    handlers = [(f"{h.role}.{h.name}", f"never ran: {h.reason or 'no step'}") for h in coverage.handlers if not h.steps]
    steps = plural(sum(h.steps for h in coverage.handlers), "different step")
    found = [
        Section("handlers", f"{_of(coverage.handlers, handlers)} ran, in {steps}", handlers),
        _branches("guards", [b for b in coverage.branches if b.part != "body"]),
        _branches("bodies", [b for b in coverage.branches if b.part == "body"]),
    ]
    messages = [(m.type, said) for m in coverage.messages if (said := _message(m))]
    found.append(
        Section(
            "messages", f"{_of(coverage.messages, messages)} types sent, and taken by all receiving roles", messages
        )
    )
    fields = [(f"{f.role}.{f.name}", said) for f in coverage.fields if (said := _field(f))]
    found.append(Section("fields", f"{_of(coverage.fields, fields)} read, with an observable effect", fields))
    untested = [
        (u.property, f"{'holds vacuously' if u.vacuous else 'in part'}: {u.text} {u.reason}") for u in coverage.untested
    ]
    names = {u.property for u in coverage.untested}
    summary = f"{plural(len(names), 'property')} not tested, or only in part" if names else "all tested"
    found.append(Section("properties", summary, untested))
    if coverage.exits:
        exits = [(_exit(e), f"led out of the bound, to {plural(e.states, 'state')}") for e in coverage.exits]
        outside = plural(sum(e.states for e in coverage.exits), "state")
        found.append(Section("bound", f"{outside} outside, which were not expanded", exits))
    return [Section(s.name, s.summary, [(visible(what), visible(how)) for what, how in s.gaps]) for s in found]


def _exit(one: Exit) -> str:
    if one.role is None:
        return "initial states"
    return f"{one.role}.{one.handler}" if one.handler else f"a fault of {one.role}"


def _of(all_: Sequence[object], gaps: Sequence[object]) -> str:
    return f"{len(all_) - len(gaps):,} of {len(all_):,}"


def _branches(name: str, branches: list[Branch]) -> Section:
    gaps = []
    for b in branches:
        if b.missing is not None and not b.implied:
            line = f" (line {b.line})" if b.line else ""
            gaps.append((f"{b.role}.{b.handler}", f"{b.missing}: {b.text}{line}"))
    taken = sum(b.true + b.false for b in branches)
    return Section(name, f"{taken:,} of {2 * len(branches):,} branches taken", gaps)


def _message(message: MessageCoverage) -> str | None:
    if not message.sent_to:
        return "never sent"
    left = [role for role in message.sent_to if role not in message.taken_by]
    return f"sent to {', '.join(left)}, but never taken there" if left else None


def _field(field: FieldCoverage) -> str | None:
    if not field.read_by:
        return "never read"
    return None if field.matters else f"read by {', '.join(field.read_by)}, but without an observable effect"

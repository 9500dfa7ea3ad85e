"""A classification of transactions as text: the class of each, why some are not local, and what would change that."""

from __future__ import annotations

import itertools
import textwrap
from decimal import Decimal

from plait.kernel.classification import Blocker, Classification, Operation
from plait.report.markup import shorten
from plait.report.wording import plural, visible

_MOST = 4
"""The number of blockers that are shown for a transaction."""
_ATTRIBUTES = 5
_BOLD, _OFF = "\x1b[1m", "\x1b[0m"


def summary(found: Classification) -> str:
    """The number of transactions in each class.

    >>> summary(Classification("shop.py", [], [], 0, 0, 3, "server", True, 1, 1, 0, 0.0))
    '0 local, 0 global, 0 local/global'
    """
    return ", ".join(f"{found.count(c)} {c}" for c in ("local", "global", "local/global"))


def effort(found: Classification) -> str:
    """How complete the search for a partitioning was."""
    if not found.exhaustive:
        return (
            f"This is the cheapest way to partition the keys that was found; not all {_many(found.arrays)} were tried."
        )
    if found.arrays == 1:
        return "This is the only way to partition the keys."
    return f"This is the cheapest of {_many(found.arrays)} ways to partition the keys."


def _many(number: int) -> str:
    """A number that can be read.

    >>> _many(266_865), _many(4**100)
    ('266,865', '1.6e+60')
    """
    return f"{number:,}" if number < 10**12 else f"{Decimal(number):.1e}"


def cost(found: Classification) -> str:
    """The cost of the partitioning."""
    weight = sum(o.weight for o in found.operations)
    return f"Weight of operations that need coordination: {found.cost:.4g} of {weight:g}, with {found.servers} servers."


def routed(operation: Operation) -> str:
    """How its operations are routed."""
    made = ", ".join(f"new {g}" for g in operation.generated)
    keys = " and ".join(operation.keys)
    return f"{keys} ({made})" if keys and made else keys or made or "anywhere"


def blocker_lines(operation: Operation, blocker: Blocker) -> list[str]:
    """Why a transaction is not local: the other transaction, columns and rows, and what would remove the conflict."""
    who = "another operation of this transaction" if blocker.other == operation.name else visible(blocker.other)
    names = [a if a != "*" else "(whether the row exists)" for a in blocker.attributes]
    shown = ", ".join(names[:_ATTRIBUTES]) + (
        f", … {len(names) - _ATTRIBUTES} more" if len(names) > _ATTRIBUTES else ""
    )
    return [
        f"{who} {blocker.kind} {blocker.table}: {visible(shown)}",
        f"  where {visible(shorten(blocker.theirs, 160))}  ({visible(blocker.other_place)})",
        f"  this transaction writes where {visible(shorten(blocker.mine, 160))}  ({visible(blocker.place)})",
        f"  to change that: {visible(blocker.change)}",
    ]


def classification_text(found: Classification, *, width: int = 120, color: bool = False) -> str:
    """The table of transactions, then a paragraph for each transaction that is not local."""
    bold, off = (_BOLD, _OFF) if color else ("", "")
    read_only = sum(o.read_only for o in found.operations)
    lines = [
        f"{bold}{summary(found)}{off}  in {visible(found.application)}",
        f"  {plural(len(found.operations), 'transaction')}, {read_only} read-only. {cost(found)}",
        f"  {effort(found)}",
        "",
    ]
    rows = [("transaction", "class", "routed by", "why")]
    rows += [(visible(o.name), o.classed, visible(routed(o)), visible(o.reason)) for o in found.operations]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    widths[2] = min(widths[2], 34)
    for row in rows:
        head = "  ".join(shorten(cell, w).ljust(w) for cell, w in zip(row[:3], widths, strict=True))
        room = width - len(head) - 4
        lines.append(f"  {head}  {shorten(row[3], room) if room > 20 else ''}".rstrip())
    for operation in found.operations:
        if operation.classed != "local" or operation.refused:
            lines += ["", *_paragraph(operation, width, bold, off)]
    lines += [f"warning: {visible(w)}" for w in found.warnings]
    return "\n".join(lines)


def refusals(operation: Operation) -> list[tuple[str, str]]:
    """The reasons why its SQL is not known, each with what to change."""
    pairs = itertools.zip_longest(operation.refused, operation.remedies, fillvalue="write constant SQL")
    return [(visible(reason), f"to change that: {visible(change)}") for reason, change in pairs]


def _paragraph(operation: Operation, width: int, bold: str, off: str) -> list[str]:
    lines = [f"{bold}{visible(operation.name)}{off} is {operation.classed}  ({visible(operation.place)})"]
    if operation.refused:
        lines.append("  its SQL is not known, so it may read and write everything:")
        for reason, change in refusals(operation):
            for line in (f"  - {reason}", f"      {change}"):
                lines += textwrap.wrap(line, width, subsequent_indent="        ", break_on_hyphens=False)
        return lines
    for blocker in operation.blockers[:_MOST]:
        for i, line in enumerate(blocker_lines(operation, blocker)):
            mark = "- " if i == 0 else "  "
            lines += textwrap.wrap(f"  {mark}{line}", width, subsequent_indent="        ", break_on_hyphens=False)
    if len(operation.blockers) > _MOST:
        lines.append(f"  … and {len(operation.blockers) - _MOST} more: the HTML report and the JSON output list all")
    return lines

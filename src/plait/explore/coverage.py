"""Coverage on the source: which lines of handlers a search reached, and which conditions never had a value.

A search with coverage counts the steps of each handler and the values of each condition (`plait.check.cover`). A line counts
as reached if its handler ran, and if no condition around it or before it kept it from being reached.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Sequence

import msgspec

from plait.check.api import check
from plait.check.options import Options
from plait.check.walk.lines import Lines, lines_of
from plait.explore.walk import local_file
from plait.kernel.coverage import Branch, Coverage
from plait.model.system import System
from plait.report.coverage import sections


class Missed(msgspec.Struct, frozen=True):
    """A condition that never had one of its values, or a handler that never ran."""

    line: int
    text: str


class CoveredSource(msgspec.Struct, frozen=True):
    """The source of a handler. `hits` are the different steps of the handler, 0 for lines that none of them reached."""

    handler: str
    file: str
    first: int
    lines: list[str]
    hits: dict[int, int]
    missed: list[Missed]


class Covered(msgspec.Struct, frozen=True):
    """The coverage of a model."""

    over: str
    files: list[CoveredSource]
    summary: list[tuple[str, str]]


def covered(system: System, options: Options) -> Covered:
    """Check a model, and say what of it was exercised."""
    verdict = check(system, options, coverage=True, keep_going=True)
    found = verdict.coverage
    assert found is not None
    return Covered(
        over=found.over,
        files=list(_files(system, found)),
        summary=[(section.name, section.summary) for section in sections(found)],
    )


def _files(system: System, found: Coverage) -> Iterator[CoveredSource]:
    steps = {(handler.role, handler.name): handler for handler in found.handlers}
    for cls, handler in system.handlers():
        source = lines_of(handler.function, f"{cls.__name__}.{handler.name}")
        known = steps.get((cls.__name__, handler.name))
        if source is None or known is None:
            continue
        branches = [b for b in found.branches if (b.role, b.handler) == (cls.__name__, handler.name)]
        missed = [
            Missed(branch.line, f"{branch.missing}: {branch.text}")
            for branch in branches
            if branch.missing is not None and branch.line is not None and not branch.implied
        ]
        if not known.steps:
            missed.insert(0, Missed(source.first, f"never ran: {known.reason or 'no step'}"))
        hits = _hits(source, known.steps, branches)
        yield CoveredSource(source.handler, local_file(source.file), source.first, source.lines, hits, missed)


def _hits(source: Lines, steps: int, branches: Sequence[Branch]) -> dict[int, int]:
    """For each line of a handler, the steps of the handler if one reached the line, else 0."""
    try:
        tree = ast.parse(textwrap.dedent("\n".join(source.lines)))
    except SyntaxError:
        return {}
    ast.increment_lineno(tree, source.first - 1)
    body = next((node.body for node in tree.body if isinstance(node, ast.FunctionDef)), [])
    values = {(branch.line, branch.text): branch for branch in branches if branch.part == "body"}
    found: dict[int, int] = {}

    def visit(block: Sequence[ast.stmt], reached: bool) -> None:
        for statement in block:
            compound = hasattr(statement, "body")
            last = statement.end_lineno or statement.lineno
            header = statement.body[0].lineno - 1 if compound else last  # type: ignore[attr-defined]
            for line in range(statement.lineno, max(header, statement.lineno) + 1):
                found[line] = steps if reached else 0
            yes = no = reached
            if isinstance(statement, ast.If | ast.While):
                branch = values.get((statement.test.lineno, ast.unparse(statement.test)))
                yes, no = (reached and branch.true, reached and branch.false) if branch else (reached, reached)
            for name, inside in (("body", yes), ("orelse", no), ("finalbody", reached)):
                inner = getattr(statement, name, None)
                if isinstance(inner, list):
                    visit(inner, inside)
            for part in (*getattr(statement, "cases", ()), *getattr(statement, "handlers", ())):
                visit(part.body, reached)
            if isinstance(statement, ast.If):
                # Nothing follows a branch that leaves: the rest is reached only by the other one.
                through = [(yes, statement.body), (no, statement.orelse)]
                reached = any(inside and not _ends(block) for inside, block in through)

    visit(body, steps > 0)
    return found


def _ends(block: Sequence[ast.stmt]) -> bool:
    """Whether a block always leaves its surroundings."""
    return bool(block) and isinstance(block[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)

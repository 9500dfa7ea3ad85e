"""The sequential program of a protocol as a Python file (Sequentialization, section 5): its own code, round by round.

The text of the module stays as its author wrote it. Only the handlers of each process are sorted by round, SEND before
UPDATE, and a function `sequential` at the end makes the program.
"""

from __future__ import annotations

import ast
import enum
import inspect
import re
import sys
import types

from plait.kernel.errors import ModelError
from plait.model.process import Process
from plait.model.system import System
from plait.model.tag import tag_of
from plait.rounds.assumptions import assumption
from plait.rounds.calendar import Calendar
from plait.rounds.text.upon import sends

_HEAD = '''"""The sequential program of {name}: {phases} phases, network assumption {assume}.

Made by `plait rounds emit` from {origin}. `plait check` checks it. The handlers below are sorted by round. `sequentialize`
runs them in this order (Sequentialization, Algorithm 1), one process after the other:

    for phase in range(1, {phases} + 1):
        for round in {rounds}:
            for process in processes:
                SEND: actions of this round, or none of them; messages of earlier steps for this round are sent
            for process in processes:
                mbox = messages of this round to this process{lost}
                UPDATE: handlers of this round, on messages in mbox; the others are lost
    for process in processes:
        SEND: actions that leave the last phase, or none of them; nobody receives their messages

A property that holds here also holds for the protocol, for this number of phases, if the protocol is round-based. `plait
check {origin} --rounds` decides this, too, and shows violations as runs of the protocol.
"""
'''


def program_text(system: System, *, phases: int, assume: str) -> str:
    """The text of the file."""
    Calendar(system)
    assumption(assume)
    modules = {cls.__module__ for cls in system.classes}
    if len(modules) != 1:
        raise ModelError(
            f"{system.name}: its processes are defined in {' and '.join(sorted(modules))}",
            hint="define them in one module: the program is one file",
        )
    module = sys.modules[modules.pop()]
    source, tree = _source(module)
    if system.target is None:
        raise ModelError(f"{system.name} was not loaded from a target", hint="give a file or a zoo name")
    function = system.target.rpartition(":")[2].replace("-", "_")
    if not hasattr(module, function):
        raise ModelError(
            f"{system.name}: the processes are defined in {module.__name__}, and the model elsewhere",
            hint="define both in one module: the program is one file",
        )
    edits = _edits(system, source, tree, function)
    lines = source.split("\n")
    for first, last, replacement in sorted(edits, reverse=True):
        lines[first:last] = replacement
    head = _HEAD.format(
        name=system.name,
        phases=phases,
        assume=assume,
        origin=system.target,
        rounds=", ".join(system.rounds),
        lost="" if assume == "none" else f", as many as {assume} requires",
    )
    call = f"_{function}"
    if callable(getattr(module, function)):
        call = f"{function}({', '.join(f'{k}={_literal(v)}' for k, v in system.parameters.items())})"
    tail = f'''

def sequential() -> System:
    """The program, as a System."""
    return sequentialize({call}, phases={phases}, assume={assume!r})
'''
    body = "\n".join(lines).rstrip("\n") + "\n"
    return _spaced(head + _imported(body) + tail)


def _literal(value: object) -> str:
    """A parameter as Python writes it."""
    return f"{type(value).__name__}.{value.name}" if isinstance(value, enum.Enum) else repr(value)


def _source(module: types.ModuleType) -> tuple[str, ast.Module]:
    try:
        source = getattr(module, "__plait_source__", None) or inspect.getsource(module)
    except (OSError, TypeError):
        raise ModelError(
            f"the source of {module.__name__} cannot be found",
            hint="give a Python file, or import the Distal text first",
        ) from None
    return source, ast.parse(source)


def _edits(system: System, source: str, tree: ast.Module, function: str) -> list[tuple[int, int, list[str]]]:
    """Replacements of lines: the docstring, the order of handlers, and the models of the protocol itself.

    A model is a function annotated to return a System, or a System with a public name. The program must be the only model.
    """
    lines = source.split("\n")
    classes = {
        base.__name__: base
        for cls in system.classes
        for base in cls.__mro__
        if base.__module__ == cls.__module__ and issubclass(base, Process)
    }
    edits: list[tuple[int, int, list[str]]] = []
    first = tree.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        edits.append((first.lineno - 1, first.end_lineno or first.lineno, []))
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name in classes:
            edits += regrouped(system, classes[node.name], node, lines)
        if isinstance(node, ast.Assign | ast.AnnAssign) and function in _targets(node):
            line = node.lineno - 1
            edits.append((line, line + 1, [re.sub(rf"\b{function}\b", f"_{function}", lines[line], count=1)]))
        returns = node.returns if isinstance(node, ast.FunctionDef) else None
        if returns is not None and (node.name == function or ast.unparse(returns) == "System"):  # type: ignore[attr-defined]
            line = returns.lineno - 1
            text = lines[line]
            start = text.rindex("->", 0, returns.col_offset)
            edits.append((line, line + 1, [text[:start].rstrip() + text[returns.end_col_offset :]]))
    return edits


def _targets(node: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def regrouped(
    system: System, cls: type[Process], node: ast.ClassDef, lines: list[str]
) -> list[tuple[int, int, list[str]]]:
    """The handlers of a class, sorted by round, at the place of the last of them."""
    handlers = {h.name: h for h in cls.__plait_handlers__ if h.kind in ("action", "message")}
    texts: dict[str, list[str]] = {}
    edits: list[tuple[int, int, list[str]]] = []
    made: dict[str, list[int]] = {}
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and part.name in handlers:
            first = min((d.lineno for d in part.decorator_list), default=part.lineno) - 1
            last = part.end_lineno or part.lineno
            texts[part.name] = lines[first:last]
            made[part.name] = list(sends(part, cls, system))
            edits.append((first, last, []))
    rest = [part for part in node.body if not isinstance(part, ast.FunctionDef)]
    used = {n.id for part in rest for n in ast.walk(part) if isinstance(n, ast.Name)}
    if not texts or used & texts.keys():  # code that uses a handler must come after it
        return []
    indent = " " * (len(next(iter(texts.values()))[0]) - len(next(iter(texts.values()))[0].lstrip()))
    groups: dict[str, list[str]] = {}
    for name, text in texts.items():
        message = handlers[name].message
        tag = tag_of(message) if message is not None else None
        if tag is not None:
            title = f"round {tag.round}: UPDATE"
        elif made[name]:
            title = f"round {system.rounds[min(made[name])]}: SEND"
        else:
            title = "steps that send nothing"
        groups.setdefault(title, []).extend(["", *text])
    order = [f"round {r}: {part}" for r in system.rounds for part in ("SEND", "UPDATE")] + ["steps that send nothing"]
    body: list[str] = []
    for title in order:
        if title in groups:
            body += ["", f"{indent}# -- {title} {'-' * max(0, 100 - len(title))}", *groups[title]]
    first, last, _ = edits[-1]
    edits[-1] = (first, last, body[1:])
    return edits


def _spaced(text: str) -> str:
    """At most two blank lines in a row, and one in a class; strings stay unchanged."""
    strings = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Constant | ast.JoinedStr)]
    inside = {line for n in strings for line in range(n.lineno, n.end_lineno or n.lineno)}
    kept: list[str] = []
    blank: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() and number not in inside:
            blank.append("")
            continue
        kept += [*blank[: 1 if line.startswith(" ") else 2], line]
        blank = []
    return "\n".join([*kept, *blank[:1]])


def _imported(body: str) -> str:
    """The module with the import for its last function, after the other imports."""
    tree = ast.parse(body)
    imports = [n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
    lines = body.split("\n")
    at = imports[-1].end_lineno or 0 if imports else 0
    lines[at:at] = ["from plait.rounds.sequential import sequentialize"]
    return "\n".join(lines)

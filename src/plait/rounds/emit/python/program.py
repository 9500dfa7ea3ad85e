"""The text of a sequential program in plain Python."""

from __future__ import annotations

import ast
import re
import textwrap
from importlib.resources import files

from plait.kernel.errors import ModelError
from plait.model.process import Process
from plait.model.properties import Property
from plait.rounds.assumptions import Assumption, Custom, Deliver, Kernel
from plait.rounds.emit.description import Description
from plait.rounds.emit.plait import regrouped
from plait.rounds.emit.python.definitions import Definitions

_HEAD = '''"""{title}

Made by `plait rounds emit {origin} --to python`. It needs Python 3.10 or newer, and nothing else.

    python FILE         runs the program with all choices, and evaluates the properties in each state
    python FILE 1000    makes 1,000 runs with random choices

In each phase, and in each round of the phase ({rounds}):

    SEND    one process after another runs actions whose messages belong to this round, or none of them
    UPDATE  one process after another hears {heard}, and runs handlers on them;
            messages that are not heard in their round are lost

A property that holds here holds for the protocol, for this number of phases, if the protocol is round-based:
`plait rounds tags {origin}` decides this. Each violation is a violation of the protocol.
"""

from __future__ import annotations

{imports}


'''
_PROVIDED = [
    *("Message", "Process", "Pid", "View", "tagged", "on", "action", "init"),
    *("majority", "everyone", "some", "durable", "aux"),
]
"""The names of Plait that `language.txt` defines."""
_CONSTANTS = ["ROUNDS", "PHASES", "LAST", "PIDS", "CLASS", "CLASSES", "FIELDS", "PROPERTIES", "CRASHES"]
"""The names that describe the system."""
_IMPORTS = [
    "import contextlib",
    "import copy",
    "import dataclasses",
    "import itertools",
    "import random",
    "import sys",
    "from collections import OrderedDict, deque",
    "from collections.abc import Callable, Iterable, Iterator",
    "from dataclasses import dataclass, replace",
    "from typing import Any, ClassVar",
]


def python_text(described: Description) -> str:
    """The text of the file."""
    system = described.system
    found = Definitions(
        _PROVIDED, lambda cls, node, lines: regrouped(system, cls, node, lines) if issubclass(cls, Process) else []
    )
    for cls in described.classes:
        found.add_class(cls)
    for _, handler in system.handlers():
        for message in handler.messages:
            found.add_class(message)
    properties = [_property(found, prop) for prop in system.properties]
    assumed = described.assumed
    predicate = found.add_function(str(assumed), assumed.predicate) if isinstance(assumed, Custom) else ""
    processes = [_process(found, process) for process in system.processes]
    instance = _instance(described, found, processes, properties)
    conditions = {
        *found.used,
        "free" if assumed.free else "assumed",
        *(["crash"] if system.faults else []),
        *(["spawn"] if described.grows else []),
        *(["late"] if described.grows and assumed.free else []),
        *(["kernel"] if isinstance(assumed, Kernel) else []),
        *(["custom"] if isinstance(assumed, Custom) else []),
    }
    language, algorithm = (_selected(_read(name), conditions) for name in ("language.txt", "algorithm.txt"))
    algorithm = _filled(
        algorithm, _values(described, conditions, f"({predicate})" if "lambda" in predicate else predicate)
    )
    for name in sorted(found.names & {*_top(language), *_top(algorithm), *_CONSTANTS}):
        language, algorithm = _renamed(language, name), _renamed(algorithm, name)
        instance = _renamed(instance, name) if name in _CONSTANTS else instance
    own = "\n\n\n".join(_trimmed(text) for text in found.texts)
    title = "# -- the protocol "
    text = _HEAD.format(
        title=described.title,
        origin=described.origin,
        rounds=", ".join(described.rounds),
        heard="some of the messages of this round"
        if assumed.free
        else f"messages of this round, as {assumed} requires",
        imports=_sorted([*_IMPORTS, *found.imports]),
    )
    text += f"{language}\n\n{title.ljust(119, '-')}\n\n\n{own}\n\n\n{instance}\n\n\n{algorithm}"
    try:
        ast.parse(text)
    except SyntaxError as error:  # a bug of the emitter, or a source that cannot be cut into definitions
        raise ModelError(
            f"{system.name}: the text of the program is no Python (line {error.lineno})", hint="use --to plait"
        ) from None
    return text


def _process(found: Definitions, process: Process) -> tuple[str, str, str]:
    fields = {name: found.literal(process.__dict__[name], f"{process.id}.{name}") for name in process.__plait_fields__}
    given = "".join(f"{name!r}: {text}, " for name, text in fields.items()).removesuffix(", ")
    return repr(process.id), type(process).__name__, f"{{{given}}}"


def _property(found: Definitions, prop: Property) -> str:
    quantified = prop.quantified
    expression = found.add_function(prop.name, prop.function)
    if quantified is not None:
        role = found.literal(quantified.role, prop.name)
        called = f"({expression})" if expression.startswith("lambda") else expression
        arguments, source = (
            ("p", f"s[{role}]") if quantified.count == 1 else ("a, b", f"itertools.permutations(s[{role}], 2)")
        )
        expression = f"lambda s: all({called}({arguments}) for {arguments} in {source})"
    return f"    {prop.name!r}: ({prop.kind!r}, {expression}),"


def _instance(
    described: Description, found: Definitions, processes: list[tuple[str, str, str]], properties: list[str]
) -> str:
    system = described.system
    slots = zip(system.pids, system.classes, strict=True)
    pids = ", ".join(f"Pid({pid.role!r}, {pid.index})" for pid in system.pids)
    lines = [
        f"ROUNDS = [{', '.join(map(repr, described.rounds))}]",
        f"PHASES = {described.phases}",
        "LAST = PHASES * len(ROUNDS)",
        '"""The place of the last round."""',
        f"PIDS = [{pids}]",
        f"CLASS: list[Any] = [{', '.join(cls.__name__ for _, cls in slots)}]",
        f"CLASSES = CLASS[:{len(processes)}]",
        '"""The classes of the processes that exist from the beginning."""' if described.grows else "",
        "FIELDS: list[dict[str, Any]] = [",
        *(f"    {fields},  # {pid}" for pid, _, fields in processes),
        "]",
        "PROPERTIES: dict[str, tuple[str, Callable[[Any], Any]]] = {",
        *properties,
        "}",
    ]
    if system.faults:
        faults = [
            f"({budget}, [{', '.join(f'Pid({p.role!r}, {p.index})' for p in pids)}])"
            for budget, pids in described.faults()
        ]
        lines.append(f"CRASHES = [{', '.join(faults)}]")
        lines.append('"""For each fault the number of crashes, and the processes that it may crash."""')
    return "\n".join(line for line in lines if line)


def _values(described: Description, conditions: set[str], predicate: str) -> dict[str, str]:
    """What replaces the words in double braces."""
    crashes = ", *crashes(s, i)" if "crash" in conditions else ""
    rest = [
        *(["tuple(self.first)"] if "spawn" in conditions else []),
        *(["tuple(self.budgets)"] if "crash" in conditions else []),
        *(["self.kernel"] if "kernel" in conditions else []),
        *(["tuple(self.hears.items())"] if "custom" in conditions else []),
    ]
    return {
        "crashes": crashes,
        "rest": "".join(f", {part}" for part in rest),
        "newborn": "s.first[i] == place" if "spawn" in conditions else "False",
        "alive": "not s.process[i].crashed" if "crash" in conditions else "True",
        "forget": "kernel = 0" if "kernel" in conditions else "hears = {}",
        "predicate": predicate,
        "heard_of": textwrap.indent(_heard_of(described.assumed), "    "),
    }


def _heard_of(assumed: Assumption) -> str:
    """The body of `heard_of`: which sets of senders a process may hear."""
    if isinstance(assumed, Deliver):
        minority = all(assumed.missing(n) == (n - 1) // 2 for n in range(1, 20))
        missing = "(n - 1) // 2" if minority else str(assumed.missing(1))  # otherwise the same number for each n
        return (
            "n = len([p for p in s.process if p is not None])\n"
            f"least = min(len(senders), n - {missing})\n"
            "return choose([heard for heard in subsets(senders) if len(heard) >= least])"
        )
    if isinstance(assumed, Kernel):
        mutual = "if i == s.kernel:\n    return tuple(senders)\n" if assumed.mutual else ""
        return (
            f"{mutual}must = {{s.kernel}} & set(senders)\n"
            "return choose([heard for heard in subsets(senders) if must <= set(heard)])"
        )
    if isinstance(assumed, Custom):
        return "return tuple(sender for sender in senders if sender in s.hears[i])"
    return "return choose(subsets(senders))"


def _read(name: str) -> str:
    return files("plait.rounds.emit.python").joinpath(name).read_text(encoding="utf-8")


def _selected(text: str, conditions: set[str]) -> str:
    """The lines whose condition holds: `#: if a, b` (one of them), `#: else`, `#: end`."""
    kept: list[str] = []
    open_: list[bool] = []
    for line in text.split("\n"):
        if line.startswith("#: if "):
            open_.append(bool(conditions & set(line[6:].split(", "))))
        elif line == "#: else":
            open_[-1] = not open_[-1]
        elif line == "#: end":
            open_.pop()
        elif all(open_):
            kept.append(line)
    return "\n".join(kept)


def _filled(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{{{name}}}}}", value)
    return text


def _top(text: str) -> set[str]:
    """The names that a text defines at its top."""
    found = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


def _renamed(text: str, name: str) -> str:
    """The text with another name for a name that the protocol uses."""
    return re.sub(rf"(?<![\w.]){name}(?!\w)", f"{name}_", text)


def _sorted(imports: list[str]) -> str:
    """The imports in order, one line for each module."""
    plain, names = set(), {}  # type: set[str], dict[str, set[str]]
    for line in imports:
        module, _, imported = line.removeprefix("from ").partition(" import ")
        if line.startswith("from "):
            names.setdefault(module, set()).update(imported.split(", "))
        else:
            plain.add(line)
    lines = [f"from {module} import {', '.join(sorted(found))}" for module, found in sorted(names.items())]
    return "\n".join([*sorted(plain), *lines])


def _trimmed(text: str) -> str:
    """Without blank lines at its ends, and at most one blank line in a row."""
    return re.sub(r"\n\s*\n(\s*\n)+", "\n\n", text.strip("\n"))

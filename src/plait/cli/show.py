"""`plait show`: lists the parts of a model. It does not search."""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any, get_args

from plait.cli.options import Flag, Parameters, Target, split
from plait.cli.output import emit, emit_json
from plait.ir.reason import Reason
from plait.kernel.errors import ModelError
from plait.kernel.values import text, to_data
from plait.model.clock import Clock
from plait.model.loading.loader import ModelFunction, find, load
from plait.model.process import Handler, Process
from plait.model.quorum import AtLeast, Quorum
from plait.model.shared import Shared
from plait.model.system import System
from plait.report.wording import plural


def show(
    target: Target,
    /,
    *,
    parameters: Parameters = (),
    decomposition: Flag = False,
    native: Flag = False,
    json: Flag = False,
) -> int:
    """List the parameters, processes, handlers and properties of a model.

    To see which functions need Python, and why: plait show raft --native

    Parameters
    ----------
    target
        A name of the zoo, a Python file (models/token.py or models/token.py:ring), or package.module:function.
    parameters
        Set a parameter of the model, as in -p acceptors=3. Give -p once per parameter.
    decomposition
        Show for every field whether it is relevant to the properties or auxiliary, and why.
    native
        Show for every function whether it runs as native code or in Python, and which line is the reason.
    json
        Print exactly one JSON object on stdout.
    """
    found = find(target)
    given = split(parameters)
    facts: dict[str, Any] = {"target": target, "parameters": []}
    missing = []
    if isinstance(found, ModelFunction):
        facts |= {"name": found.name, "doc": found.doc, "parameters": _parameters(found)}
        missing = [n for n, p in found.parameters.items() if p.required and n not in given]
    if not missing:
        system = load(target, given)
        facts |= _system(system)
        if decomposition:
            facts["decomposition"] = _decomposition(system)
        if native:
            facts["native"] = _native(system)
    if json:
        emit_json(facts)
    else:
        parts = [_decomposition_lines(facts)] if "decomposition" in facts else []
        parts += [_native_lines(facts)] if "native" in facts else []
        emit("\n\n".join("\n".join(lines) for lines in parts or [_lines(facts)]))
        if missing:
            emit(f"\nTo see the other parts, give {' '.join(f'-p {name}=…' for name in missing)}")
    return 0


def _parameters(model: ModelFunction) -> list[dict[str, Any]]:
    return [
        {"name": p.name, "type": p.type, "required": p.required, "default": None if p.required else to_data(p.default)}
        for p in model.parameters.values()
    ]


def _system(system: System) -> dict[str, Any]:
    return {
        "name": system.name,
        "values": {n: to_data(v) for n, v in system.parameters.items()},
        "network": str(system.network),
        "faults": [str(f) for f in system.faults],
        "symmetric": [role.__name__ for role in system.symmetric],
        "rotations": [role.__name__ for role in system.rotations],
        "initially": system.initially and system.initially.name,
        "within": system.within and system.within.name,
        "drift": system.drift,
        "processes": [_class(system, cls) for cls in dict.fromkeys(system.classes)],
        "shared": [_shared(shared) for shared in system.shared],
        "monitors": [{"name": type(m).__name__, "doc": _doc(type(m))} for m in system.monitors],
        "properties": [
            {"name": p.name, "kind": p.kind, "of": None if p.quantified is None else str(p.quantified), "doc": p.doc}
            for p in system.properties
        ],
    }


def _shared(shared: Shared) -> dict[str, Any]:
    return {
        "name": repr(shared),
        "doc": _doc(type(shared)),
        "fields": [
            {"name": f.name, "type": _type(f.type), "initial": to_data(shared.__dict__[f.name])}
            for f in dataclasses.fields(shared)  # type: ignore[arg-type]
        ],
    }


def _class(system: System, cls: type[Process]) -> dict[str, Any]:
    running = len(system.processes)
    ids = [repr(pid) for pid, c in zip(system.pids[:running], system.classes, strict=False) if c is cls]
    bounds = _bounds(system, cls)
    return {
        "role": cls.__name__,
        "doc": _doc(cls),
        "plays": cls.__plait_role__.__name__ if cls.__plait_role__ is not None else None,
        "ids": ids,
        "spare": system.spare.get(cls, 0),
        "fields": [
            {
                "name": f.name,
                "type": _type(f.type),
                "default": _default(f),
                "durable": f.name in cls.__plait_durable__,
                "aux": f.name in cls.__plait_aux__,
                "bound": bounds.get(f.name),
            }
            for f in dataclasses.fields(cls)  # type: ignore[arg-type]
        ],
        "handlers": [_handler(system, h) for h in cls.__plait_handlers__],
    }


def _bounds(system: System, cls: type[Process]) -> dict[str, int]:
    """The bounds of the clocks of a class: the largest ones that its processes declare, or that the source shows."""
    if not cls.__plait_clocks__:
        return {}
    from plait.check.live.search import flattened
    from plait.check.source.clocks import clock_bounds

    try:
        found = clock_bounds(flattened(system, system.properties)).get(cls, {})
    except ModelError:  # `plait check` says why
        found = {}
    clocks = (
        (name, p.__dict__[name]._bound) for p in system.processes if type(p) is cls for name in p.__plait_clocks__
    )
    for name, bound in clocks:
        found |= {name: max(bound, found.get(name, 0))} if bound is not None else {}
    return found


def _handler(system: System, handler: Handler) -> dict[str, Any]:
    size = None
    if isinstance(handler.size, Quorum):
        size = system.quorum_size(handler.size)
    elif handler.quorum is not None and isinstance(handler.size, int):
        size = handler.size
    return {
        "name": handler.name,
        "kind": handler.kind,
        "trigger": handler.trigger,
        "message": handler.message_names or None,
        "guarded": handler.where is not None or handler.accept is not None,
        "quorum": size,
        "larger": isinstance(handler.quorum, AtLeast),
        "doc": (inspect.getdoc(handler.function) or "").split("\n")[0],
    }


def _decomposition(system: System) -> list[dict[str, Any]]:
    """For each class, which fields are relevant to the properties: those of states, and the predicates of temporal ones."""
    from plait.check.live.search import flattened
    from plait.check.reduce.decomposition import decompose

    fields = decompose(flattened(system, system.properties), "auto").fields
    return [
        {
            "role": cls.__name__,
            "shared": issubclass(cls, Shared),
            "fields": [
                {
                    "name": f.name,
                    "auxiliary": f.auxiliary,
                    "declared": f.declared,
                    "audited": f.audited,
                    "reason": list(f.reason),
                }
                for f in fields
                if f.cls is cls
            ],
        }
        for cls in dict.fromkeys((*system.classes, *map(type, system.shared)))
    ]


def _decomposition_lines(facts: dict[str, Any]) -> list[str]:
    properties = ", ".join(p["name"] for p in facts["properties"]) or "no properties"
    lines = [f"{facts.get('name', facts['target'])}: relevant and auxiliary fields for {properties}"]
    for of in facts["decomposition"]:
        lines += ["", f"{'shared' if of['shared'] else 'process'} {of['role']}{'' if of['fields'] else ': no fields'}"]
        longest = max((len(f["name"]) for f in of["fields"]), default=0)
        for f in of["fields"]:
            kind = "auxiliary" if f["auxiliary"] else "relevant"
            first, *rest = f["reason"] or ["proven: no observable effect depends on it"]
            if f["audited"]:
                first, rest = "declared; the search audits it, because of:", [f"{first}", *rest]
            lines.append(f"  {f['name']:<{longest}}  {kind:<9}  {first}")
            lines += [f"  {'':<{longest}}  {'':<9}  -> {link}" for link in rest]
    return lines


def _native(system: System) -> list[dict[str, Any]]:
    """For each function of a model, whether it runs as native code, and else why not."""
    from plait.check.live.search import flattened
    from plait.check.tabulate.native import native_system
    from plait.check.tabulate.tabulation import Tabulation

    system = flattened(system, system.properties)
    return [
        {
            "function": f.label,
            "file": f.file,
            "line": f.line,
            "native": f.reason is None,
            "reason": None if f.reason is None else f.reason._asdict(),
        }
        for f in native_system(Tabulation(system)).functions
    ]


def _native_lines(facts: dict[str, Any]) -> list[str]:
    functions = facts["native"]
    natively = sum(f["native"] for f in functions)
    some = plural(len(functions), "function")
    said = f"{some}, all native" if natively == len(functions) else f"{some}, {natively:,} of them native"
    lines = [f"{facts.get('name', facts['target'])}: {said if functions else 'no functions'}"]
    rows = []
    for f in functions:
        reason = None if f["native"] else str(Reason(**f["reason"]))
        rows.append((f["function"], "native" if reason is None else f"Python  {reason}"))
    return lines + _section("functions", rows)


def _type(annotation: Any) -> str:
    """An annotation as the user wrote it: `Pid | None`, not `plait.kernel.pid.Pid | None`.

    >>> _type(int), _type(list[int]), _type(Process | None), _type("Vote | None")
    ('int', 'list[int]', 'Process | None', 'Vote | None')
    """
    if isinstance(annotation, str):
        return annotation
    if isinstance(annotation, type) and not get_args(annotation):
        return annotation.__name__
    return re.sub(r"(?:\w+\.)+(?=\w)", "", str(annotation))


def _default(field: dataclasses.Field[Any]) -> str | None:
    if field.default is not dataclasses.MISSING:
        return text(to_data(field.default))
    if isinstance(getattr(field.default_factory, "__self__", None), Clock):
        return "Clock()"
    if field.default_factory is not dataclasses.MISSING:
        return f"{getattr(field.default_factory, '__name__', 'factory')}()"
    return None


def _doc(cls: type) -> str:
    """The first line of the docstring of a class. Empty if it is only the signature, which dataclasses add."""
    doc = (cls.__dict__.get("__doc__") or "").strip().split("\n")[0]
    return "" if doc.startswith(f"{cls.__name__}(") else doc


def _lines(facts: dict[str, Any]) -> list[str]:
    lines = [facts.get("name", facts["target"]) + (f": {facts['doc']}" if facts.get("doc") else "")]
    lines += _section("parameters", [
        (p["name"], f"{p['type']}  " + ("required" if p["required"] else f"= {text(p['default'])}"))
        for p in facts["parameters"]
    ])  # fmt: skip
    if "processes" not in facts:
        return lines
    lines += ["", f"network: {facts['network']}"]
    lines += [f"faults: {fault}" for fault in facts["faults"]]
    lines += [f"{kind}: {', '.join(facts[kind])}" for kind in ("symmetric", "rotations") if facts[kind]]
    lines += [facts[kind].replace(kind, f"{kind}:", 1) for kind in ("initially", "within") if facts[kind]]
    lines += [f"drift: {facts['drift']}"] if facts["drift"] else []
    for process in facts["processes"]:
        lines += _process(process)
    for shared in facts["shared"]:
        lines += ["", f"shared {shared['name']}"] + ([f"  {shared['doc']}"] if shared["doc"] else [])
        fields = [(f["name"], f"{f['type']} = {text(f['initial'])}") for f in shared["fields"]]
        lines += _section("fields", fields, "  ")
    lines += _section("monitors", [(m["name"], m["doc"]) for m in facts["monitors"]])
    of = {p["name"]: f"of {p['of']}: " if p["of"] else "" for p in facts["properties"]}
    said = [(p["name"], f"{p['kind']:<9}  {of[p['name']]}{p['doc']}".rstrip(": ")) for p in facts["properties"]]
    lines += _section("properties", said)
    return lines


def _process(process: dict[str, Any]) -> list[str]:
    ids = ", ".join(process["ids"]) or "none yet"
    head = f"process {process['role']}" + (f" (as {process['plays']})" if process["plays"] else "") + f": {ids}"
    if process["spare"]:
        head += f", {process['spare']} spare"
    lines = ["", head] + ([f"  {process['doc']}"] if process["doc"] else [])
    rows = []
    for f in process["fields"]:
        default = "" if f["default"] is None else f" = {f['default']}"
        marks = "".join(f"  {mark}" for mark in ("durable", "aux") if f[mark])
        marks += "" if f["bound"] is None else f"  bound {f['bound']}"
        rows.append((f["name"], f"{f['type']}{default}{marks}"))
    lines += _section("fields", rows, "  ")
    rows = []
    for h in process["handlers"]:
        least = "at least " if h["larger"] else ""
        extra = f"  {least}{h['quorum']} messages" if h["quorum"] is not None else ""
        rows.append((h["name"], f"{h['trigger']}{extra}{'  guarded' if h['guarded'] else ''}"))
    return lines + _section("handlers", rows, "  ")


def _section(title: str, rows: list[tuple[str, str]], indent: str = "") -> list[str]:
    if not rows:
        return []
    longest = max(len(name) for name, _ in rows)
    return (
        ([] if indent else [""])
        + [f"{indent}{title}"]
        + [f"{indent}  {name:<{longest}}  {said}".rstrip() for name, said in rows]
    )

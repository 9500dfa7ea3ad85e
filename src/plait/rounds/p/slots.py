"""How many machines of each class a run can create, where the text says it.

The entry function of the start state of the main machine runs once, unless the machine enters this state again. A `new` in
it that is in no loop creates one machine. If all `new` of a class are such, their number is the bound.
"""

from __future__ import annotations

from collections import Counter

from plait.rounds.p import syntax as s
from plait.rounds.p.expressions import function_of, start_state
from plait.rounds.p.machine_class import functions_of
from plait.rounds.p.names import Names


def slots_of(names: Names, main: s.Machine) -> dict[str, int]:
    """For the classes of which the text bounds the number of created machines, this number."""
    start = start_state(names, main)
    entry = function_of(names, main, start.entry) if isinstance(start.entry, s.Name) else start.entry
    known = functions_of(names, main)
    gotos = [node.state for part in (main, *known.values()) for node in part.find(s.Goto) if isinstance(node, s.Goto)]
    gotos += [handler.target for state in main.states for handler in state.handlers]
    others = [machine for machine in names.machines.values() if machine is not main]
    often = {made for machine in others for made in _created([machine, *functions_of(names, machine).values()])}
    handlers: list[s.Node] = [function for function in _handlers(names, main) if function is not entry]
    often |= _created(_with_called(handlers, known))
    once: Counter[str] = Counter()
    if entry is None or start.name in gotos:
        return {}
    _count(known, entry.body, (), False, once, often)
    return {} if main.name in {*once, *often} else {name: n for name, n in once.items() if name not in often}


def _created(nodes: list[s.Node]) -> set[str]:
    """The classes of the machines that these parts of the text create."""
    return {new.machine for node in nodes for new in node.find(s.New) if isinstance(new, s.New)}


def _handlers(names: Names, machine: s.Machine) -> list[s.Function]:
    """The functions that the states of a machine execute."""
    given = [f for state in machine.states for f in (state.entry, state.exit, *(h.function for h in state.handlers))]
    return [function_of(names, machine, f) if isinstance(f, s.Name) else f for f in given if f is not None]


def _with_called(roots: list[s.Node], known: dict[str, s.Function]) -> list[s.Node]:
    """Parts of the text, with the functions that they call."""
    found, met = list(roots), set[str]()
    for node in found:  # it grows
        for call in node.find(s.Call):
            assert isinstance(call, s.Call)
            if call.function in known and call.function not in met:
                met.add(call.function)
                found.append(known[call.function])
    return found


def _count(
    known: dict[str, s.Function],
    node: s.Node,
    around: tuple[str, ...],
    looped: bool,
    once: Counter[str],
    often: set[str],
) -> None:
    """Count the `new` in a part of the text, each once; those in loops and in recursive functions run often."""
    looped = looped or isinstance(node, s.While | s.Foreach)
    if isinstance(node, s.New):
        once[node.machine] += 1
        if looped:
            often.add(node.machine)
    if isinstance(node, s.Call) and node.function in known:
        if node.function in around:
            often.update(_created(_with_called([known[node.function]], known)))
        else:
            _count(known, known[node.function].body, (*around, node.function), looped, once, often)
    for part in node.parts():
        _count(known, part, around, looped, once, often)

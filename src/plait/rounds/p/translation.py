"""P to Python: a module with classes for events, machines and specifications, and a function for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from plait.rounds.p import syntax as s
from plait.rounds.p.expressions import entry_type
from plait.rounds.p.lexer import Place, Text
from plait.rounds.p.machine_class import MachineClass, functions_of
from plait.rounds.p.names import IMPORTS, OPERATIONS, Names
from plait.rounds.p.parser import parse
from plait.rounds.p.slots import slots_of
from plait.rounds.p.statements import LINE
from plait.rounds.p.value_types import NOTHING, NULL, fits

MACHINES = 5
"""How many machines of a class may be created in a run, unless the user says otherwise."""


def translate(source: str, file: str) -> tuple[str, list[int]]:
    """The Python source of a P program, and for each of its lines the line of the P text."""
    text = Text(source, file)
    names = Names.of(text, parse(text))
    found = list(_Translation(names).lines())
    lines, numbers = [], []
    for line in found:
        code, _, number = line.partition(LINE)
        for part in code.split("\n"):
            lines.append(part.rstrip())
            numbers.append(int(number) if number else 1)
    return "\n".join(lines) + "\n", numbers


class _Translation:
    def __init__(self, names: Names) -> None:
        self.names, self.text = names, names.text
        self.specs = names.specs

    def lines(self) -> Iterator[str]:
        classes = [MachineClass(self.names, m) for m in (*self.names.machines.values(), *self.names.specs.values())]
        bodies = [list(one.lines()) for one in classes]
        tests = [line for test in self._tests() for line in self._test(test)]
        yield f'"""{Path(self.text.file).name}, translated from P."""'
        yield from (
            "",
            "from __future__ import annotations",
            "",
            "from dataclasses import dataclass",
            "from enum import Enum",
        )
        yield from ("from typing import Any", "", "from plait import (")
        yield from (*(f"    {name}," for name in IMPORTS), ")", "from plait.rounds.p.machine import (")
        yield from (*(f"    {name}," for name in OPERATIONS), ")", "", "")
        yield from self._values()
        yield from self._messages()
        for body in bodies:
            yield from (*body, "")
        yield from tests

    def _values(self) -> Iterator[str]:
        """The classes of events, enums and tuples, and the functions for casts."""
        yield from ("class Events(Enum):", '    """The events of the program."""', "")
        for event in [*self.names.events, "halt"]:
            yield f"    {self.names.python(event)} = {event!r}"
        for enum in self.names.enums.values():
            yield from ("", "", f"class {self.names.python(enum.name)}(Enum):{LINE}{enum.place.line}")
            yield from (f'    """enum {enum.name}."""', "")
            yield from (f"    {self.names.python(element)} = {number}" for element, number in enum.elements)
        for fields, name in self.names.records.items():
            yield from ("", "", "@dataclass(frozen=True)", f"class {name}:")
            yield from (f"    {self.names.attribute(field)}: Any" for field in fields)
        for kind, name in self.names.casts.items():
            yield from ("", "", f"def {name}(value, where):")
            test = self.names.inhabits("value", kind)
            yield f'    assert {test}, f"{{where}}: {{shown(value)}} is no value of the type {kind}"'
            yield "    return value"
        yield from ("", "")

    def _messages(self) -> Iterator[str]:
        """The messages, and what the machines of this program have in common."""
        yield from ("class Event_(Message):", '    """An event in a queue."""', "", "    payload: Any = None")
        yield from ("", "    event_ = Events.halt", "", "")
        yield from ("class start_(Message):", '    """The start of a machine that was created."""', "")
        yield from ("    payload: Any = None", "", "")
        messages = {event: self.names.python(event) for event in self.names.events} | {"halt": "halt_"}
        for event, name in messages.items():
            line = self.names.events[event].place.line if event in self.names.events else 1
            yield f"class {name}(Event_):{LINE}{line}"
            yield from (f"    event_ = Events.{self.names.python(event)}", "", "")
        observed = {name.name: name for spec in self.specs.values() for name in spec.observes or ()}
        for seen in observed.values():
            if seen.name not in self.names.events:
                raise self.names.unknown(seen.place, "event", seen.name, self.names.events)
        yield f"OBSERVED = ({' '.join(f'Events.{self.names.python(event)},' for event in observed)})"
        yield from ("", "", "class Machine_(PMachine):", '    """A machine of this program."""', "")
        yield from ("    @init", "    def create(self):", "        self.send(self.id, start_(None))", "")
        yield from ("    @on(start_)", "    def start(self, m):", "        self.begin_(m.payload)", "")
        yield from ("    @on(Event_, where=lambda self, m: self.takes_(m.event_))", "    def take(self, m):")
        yield from ("        self.take_(m.event_, m.payload)", "", "    def emit_(self, to, event, payload):")
        if observed:
            yield from ("        if event in OBSERVED:", "            self.announce((event, payload))")
        yield from ("        if to is None:", "            return", "        if event is None:")
        yield "            self.send(to, start_(payload))"
        for event, name in messages.items():
            yield f"        elif event == Events.{self.names.python(event)}:"
            yield f"            self.send(to, {name}(payload))"
        yield from ("", "")

    # -- tests -------------------------------------------------------------------------------------------------------------

    def _tests(self) -> list[s.Test]:
        """The tests; without any, one of the machine Main with all specifications."""
        if self.names.tests:
            return list(self.names.tests.values())
        main = self.names.machines.get("Main")
        if main is None:
            raise self.text.error(
                Place(1, 1),
                "the program has no test, and no machine Main",
                "add: test tcMain [main=Client]: { Client };",
            )
        place = main.place
        asserts = tuple(s.Name(spec.place, name) for name, spec in self.specs.items())
        return [s.Test(place, "main", s.Name(place, "Main"), s.Module(place, (s.Name(place, "Main"),), asserts))]

    def _asserted(self, module: s.Module, around: tuple[str, ...] = ()) -> Iterator[str]:
        """The specifications that a module asserts."""
        for name in module.asserts:
            if name.name not in self.specs:
                raise self.names.unknown(name.place, "spec", name.name, self.specs)
            yield name.name
        for name in module.names:
            if name.name in self.names.modules and name.name not in around:
                yield from self._asserted(self.names.modules[name.name].module, (*around, name.name))
            elif name.name not in self.names.machines and name.name not in self.names.modules:
                raise self.names.unknown(
                    name.place, "machine or module", name.name, [*self.names.machines, *self.names.modules]
                )
        for part in module.modules:
            yield from self._asserted(part, around)

    def _created(self, main: s.Machine) -> list[str]:
        """The machines that may be created in a run, in the order of the text."""
        found: set[str] = set()
        waiting, met = [main], {main.name}
        while waiting:
            machine = waiting.pop()
            for part in (machine, *functions_of(self.names, machine).values()):
                for new in part.find(s.New):
                    assert isinstance(new, s.New)
                    found.add(new.machine)
                    if new.machine not in met:
                        met.add(new.machine)
                        waiting.append(self.names.machines[new.machine])
        return [name for name in self.names.machines if name in found]

    def _test(self, test: s.Test) -> Iterator[str]:
        if test.main.name not in self.names.machines:
            raise self.names.unknown(test.main.place, "machine", test.main.name, self.names.machines)
        main = self.names.machines[test.main.name]
        kind = entry_type(self.names, main)
        if kind != NOTHING and not fits(NULL, kind):
            raise self.text.error(test.place, f"the main machine {main.name} needs a payload", "remove its parameter")
        specs = list(dict.fromkeys(self._asserted(test.module)))
        title, line = self.names.python(test.name), test.place.line
        created = self._created(main)
        bounded = set(created) <= slots_of(self.names, main).keys()
        yield f"def {title}({'' if bounded else f'machines: int = {MACHINES}'}) -> System:{LINE}{line}"
        yield f'    """test {test.name} (line {line}): the main machine is {main.name}."""'
        yield ""
        properties = ["no_machine_waits"]
        yield from ("    @final", "    def no_machine_waits(s: View) -> bool:")
        yield '        """At the end, no machine waits in a receive."""'
        yield from ("        return all(len(p.frames) == 0 for p in s[Machine_])", "")
        for spec in specs:
            name = self.names.python(spec)
            yield f"    @always(name={spec!r})"
            yield f"    def {name}_holds(s: View) -> bool:{LINE}{self.specs[spec].place.line}"
            yield f'        """The specification {spec} never fails."""'
            yield from (f'        return s[{name}].failed == ""', "")
            properties.append(f"{name}_holds")
            for made in self._liveness(self.specs[spec]):
                yield f"    {made}" if made else ""
            if any(state.temperature == "hot" for state in self.specs[spec].states):
                properties.append(f"{self.names.python(spec)}_is_live")
        yield from ("    return System(", f"        [{self.names.python(main.name)}()],", "        network=mailbox(),")
        counts = slots_of(self.names, main)
        slots = ", ".join(f"{self.names.python(machine)}: {counts.get(machine, 'machines')}" for machine in created)
        yield f"        spare={{{slots}}},"
        monitors = ", ".join(f"{self.names.python(spec)}().begin_()" for spec in specs)
        yield f"        monitors=[{monitors}],"
        yield f"        properties=[{', '.join(properties)}],"
        yield from ("        fairness=[weak(everybody)],", f"        name={test.name!r},", "    )", "", "")

    def _liveness(self, spec: s.Machine) -> Iterator[str]:
        """What the hot and cold states of a specification say about infinite runs."""
        of = {word: [state.name for state in spec.states if state.temperature == word] for word in ("hot", "cold")}
        if not of["hot"]:
            return
        name = self.names.python(spec.name)
        if of["cold"]:
            cold, hot = (f"lambda s: s[{name}].at in {tuple(of[word])!r}" for word in ("cold", "hot"))
            yield f'{name}_is_live = ltl("G F cold | F G !hot", cold={cold}, hot={hot}, name="{spec.name}_is_live")'
        else:
            yield "@always_eventually"
            yield f"def {name}_is_live(s: View) -> bool:"
            yield f'    """The specification {spec.name} does not stay in a hot state for ever."""'
            yield f"    return s[{name}].at not in {tuple(of['hot'])!r}"
        yield ""

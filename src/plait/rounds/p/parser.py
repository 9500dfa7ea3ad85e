"""P text to a syntax tree. Declarations, machines, states and modules; `body_parser.py` has functions."""

from __future__ import annotations

from plait.rounds.p import syntax as s
from plait.rounds.p.body_parser import BodyParser
from plait.rounds.p.lexer import Place, Text
from plait.rounds.p.syntax import Declaration, Name
from plait.rounds.p.words import SUPPORTED


def parse(text: Text) -> list[Declaration]:
    """The declarations of a P program.

    >>> [light] = parse(Text("machine Light { start state Off { } }", "light.p"))
    >>> light.name, light.states[0].start
    ('Light', True)
    """
    parser = _Parser(text)
    found: list[Declaration] = []
    while parser.next.kind != "end":
        found += parser.declaration()
    return found


class _Parser(BodyParser):
    def declaration(self) -> list[Declaration]:
        place = self.place
        match self.next.text if self.next.kind == "keyword" else "":
            case "type":
                self.take()
                name = self.name("the name of a type").name
                if self.skip(";"):
                    self.refuse(f"the foreign type {name}", "define it: type name = …", place)
                self.expect("=")
                definition = s.TypeDefinition(place, name, self.type())
                self.expect(";")
                return [definition]
            case "enum":
                return [self._enum()]
            case "event":
                self.take()
                name = self.name("the name of an event").name
                event = s.Event(place, name, self.type() if self.skip(":") else None)
                self.expect(";")
                return [event]
            case "machine":
                self.take()
                name = self.name("the name of a machine").name
                while self.sees("receives", "sends"):
                    self._event_set()
                return [self._machine(place, name, None)]
            case "spec":
                self.take()
                name = self.name("the name of a specification").name
                self.expect("observes")
                return [self._machine(place, name, self.names("an event"))]
            case "fun":
                return [self.function()]
            case "module":
                self.take()
                name = self.name("the name of a module").name
                self.expect("=")
                module = s.NamedModule(place, name, self._module())
                self.expect(";")
                return [module]
            case "test":
                return [self._test()]
            case "implementation":
                while not self.sees(";") and self.next.kind != "end":
                    self.take()
                self.expect(";")
                return []
            case "eventset":
                self.refuse("eventset", "list the events")
            case "interface":
                self.refuse("interface", "use the name of the machine")
            case "scenario":
                self.refuse("scenario", "use spec")
            case "param":
                self.refuse("param", "write the value into the test machine")
        if self.next.text in ("invariant", "axiom", "pure", "Lemma", "Theorem", "Proof", "init-condition"):
            self.refuse(f"{self.next.text} (of the P verifier)", "remove it")
        raise self.wrong("a declaration (type, enum, event, machine, spec, fun, module or test)")

    def _enum(self) -> s.Enum:
        place = self.take().place
        name = self.name("the name of an enum").name
        self.expect("{")
        elements: list[tuple[str, int]] = []
        while True:
            element = self.name("the name of an element").name
            elements.append((element, self.number("a number") if self.skip("=") else len(elements)))
            if not self.skip(",") or self.sees("}"):
                break
        self.expect("}")
        return s.Enum(place, name, tuple(elements))

    def _event_set(self) -> None:
        """`receives` and `sends` of a machine. They restrict what the program may do, not what it does."""
        self.take()
        while not self.sees(";"):
            if self.next.kind == "end":
                self.wrong("';'")
            self.take()
        self.take()

    # -- machines ----------------------------------------------------------------------------------------------------------

    def _machine(self, place: Place, name: str, observes: tuple[Name, ...] | None) -> s.Machine:
        self.expect("{")
        variables: list[s.Variable] = []
        functions: list[s.Function] = []
        states: list[s.State] = []
        while not self.skip("}"):
            if self.sees("var"):
                variables += self.variables()
            elif self.sees("fun"):
                functions.append(self.function())
            elif self.sees("start", "hot", "cold", "state"):
                states.append(self._state())
            else:
                self.wrong("var, fun, state or '}'")
        return s.Machine(place, name, observes, tuple(variables), tuple(functions), tuple(states))

    def _state(self) -> s.State:
        start, temperature, place = False, "", self.place
        while not self.sees("state"):
            if self.sees("hot", "cold"):
                temperature = self.take().text
            else:
                self.expect("start")
                start = True
        self.take()
        name = self.name("the name of a state").name
        self.expect("{")
        functions: dict[str, s.Function | Name] = {}
        handlers: list[s.Handler] = []
        while not self.skip("}"):
            if self.sees("entry", "exit"):
                word = self.take()
                if word.text in functions:
                    raise self.text.error(word.place, f"the state {name} has two {word.text} functions", "combine them")
                functions[word.text] = self._handler_function()
            elif self.sees("defer", "ignore"):
                word = self.take()
                handlers += [s.Handler(event.place, word.text, event) for event in self._events()]
                self.expect(";")
            elif self.sees("on"):
                handlers += self._on()
            else:
                self.wrong("entry, exit, on, defer, ignore or '}'")
        return s.State(place, name, start, temperature, functions.get("entry"), functions.get("exit"), tuple(handlers))

    def _on(self) -> list[s.Handler]:
        self.take()
        events = self._events()
        function: s.Function | Name | None = None
        target = ""
        word = self.expect("do", "goto").text
        if word == "do":
            function = self._handler_function()
        else:
            target = self.name("the name of a state").name
            if self.skip("with"):
                function = self._handler_function()
            else:
                self.expect(";")
        return [s.Handler(event.place, word, event, target, function) for event in events]

    def _events(self) -> list[Name]:
        found = [self.event_name()]
        while self.skip(","):
            found.append(self.event_name())
        return found

    def _handler_function(self) -> s.Function | Name:
        if self.next.kind == "name":
            name = self.name("a function")
            self.expect(";")
            return name
        return self.anonymous()

    # -- tests and modules -------------------------------------------------------------------------------------------------

    def _test(self) -> s.Test:
        place = self.take().place
        if self.sees("param", "assume", "(") or self.next.text == "pairwise":
            self.refuse("a test with parameters", "write one test for each combination")
        name = self.name("the name of a test").name
        self.expect("[")
        self.expect("main")
        self.expect("=")
        main = self.name("the name of a machine")
        self.expect("]")
        self.expect(":")
        module = self._module()
        if self.sees("refines"):
            self.refuse("refines", "write the abstract system as a spec")
        self.expect(";")
        return s.Test(place, name, main, module)

    def _module(self) -> s.Module:
        place = self.place
        if self.skip("("):
            module = self._module()
            self.expect(")")
            return module
        if self.skip("{"):
            names = []
            while True:
                names.append(self.name("the name of a machine"))
                if self.sees("->"):
                    self.refuse("a binding of a machine to another name (->)", "give the machine that name")
                if not self.skip(",") or self.sees("}"):
                    break
            self.expect("}")
            return s.Module(place, tuple(names), ())
        if self.skip("union", "compose"):
            modules = [self._module()]
            while self.skip(","):
                modules.append(self._module())
            return s.Module(place, (), (), tuple(modules))
        if self.skip("assert"):
            asserts = self.names("the name of a specification")
            self.expect("in")
            return s.Module(place, (), asserts, (self._module(),))
        if self.skip("main"):
            self.name("the name of a machine")
            self.expect("in")
            return self._module()
        if self.sees("hidee", "hidei", "rename"):
            self.refuse(f"the module operator {self.next.text}", f"list the machines: {{ A, B }}; {SUPPORTED}")
        return s.Module(place, (self.name("a module"),), ())

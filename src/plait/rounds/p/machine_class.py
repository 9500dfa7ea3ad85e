"""A machine or a specification of P as a class in Python: its states become methods that choose by state and event."""

from __future__ import annotations

from collections.abc import Iterator

from plait.rounds.p import syntax as s
from plait.rounds.p.expressions import Scope, function_of, parameter_type, start_state
from plait.rounds.p.names import Names
from plait.rounds.p.receives import WaitingBody
from plait.rounds.p.statements import LINE, Body, indented, marked
from plait.rounds.p.value_types import NOTHING, NULL, ValueType, fits


def called(names: Names, machine: s.Machine, roots: list[s.Node]) -> dict[str, s.Function]:
    """The functions that these parts of a machine call, and those that the functions call."""
    known = {**names.functions, **{function.name: function for function in machine.functions}}
    found: dict[str, s.Function] = {}
    waiting = list(roots)
    while waiting:
        for node in waiting.pop().find(s.Call):
            name = node.function  # type: ignore[attr-defined]
            if name in known and name not in found:
                found[name] = known[name]
                waiting.append(known[name])
    return found


def functions_of(names: Names, machine: s.Machine) -> dict[str, s.Function]:
    """All functions that a machine may execute, its own first."""
    own = {function.name: function for function in machine.functions}
    if len(own) < len(machine.functions):
        twice = next(f for f in machine.functions if own[f.name] is not f)
        raise names.text.error(twice.place, f"the function {twice.name} is declared twice", "rename one of them")
    named = [function for state in machine.states for function in (state.entry, state.exit)]
    named += [handler.function for state in machine.states for handler in state.handlers]
    found = own | {f.name: function_of(names, machine, f) for f in named if isinstance(f, s.Name)}
    return found | called(names, machine, [machine, *found.values()])


class MachineClass:
    """The translation of one machine or specification."""

    def __init__(self, names: Names, machine: s.Machine) -> None:
        self.names, self.machine, self.text = names, machine, names.text
        self.functions = functions_of(names, machine)
        self.blocking = self._closure((s.Receive,))
        leaving = self._closure((s.Goto, s.Raise)) - self.blocking
        self.failing = self._closure((s.Assert,)) - leaving if self.is_spec else set()
        self.jumping = leaving | self.failing
        self.waiting: dict[str, WaitingBody] = {}
        self.states = {state.name: state for state in machine.states}
        if len(self.states) < len(machine.states):
            raise self.text.error(machine.place, f"{machine.name} has two states of the same name", "rename one")
        self.start = start_state(names, machine)

    @property
    def is_spec(self) -> bool:
        return self.machine.observes is not None

    def _closure(self, kinds: tuple[type[s.Node], ...]) -> set[str]:
        """The functions that contain a statement of these kinds, or call one that does."""
        found = {n for n, f in self.functions.items() if not self._only_value(f) and next(f.find(*kinds), None)}
        grown = True
        while grown:
            more = {
                name
                for name, function in self.functions.items()
                if any(call.function in found for call in function.find(s.Call))  # type: ignore[attr-defined]
                and not self._only_value(function)
            }
            grown = not more <= found
            found |= more
        return found

    def _only_value(self, function: s.Function) -> bool:
        """Whether an assertion in a function raises an exception: in a function of a spec that returns a value."""
        return self.is_spec and function.result is not None and next(function.find(s.Goto, s.Raise), None) is None

    def lines(self) -> Iterator[str]:
        """The class."""
        machine, base = self.machine, "PSpec" if self.is_spec else "Machine_"
        yield f"class {self.names.python(machine.name)}({base}):{LINE}{machine.place.line}"
        what = "spec" if self.is_spec else "machine"
        yield f'    """{what} {machine.name} (line {machine.place.line})."""'
        yield ""
        for variable in machine.variables:
            kind = self.names.resolve(variable.type)
            default = self.names.default(kind)
            if kind.mutable and kind.name != "any":
                default = f"field(default_factory=lambda: {default})"
            if [v.name for v in machine.variables].count(variable.name) > 1:
                raise self.text.error(variable.place, f"the variable {variable.name} is declared twice", "rename one")
            yield f"    {self.names.python(variable.name)}: Any = {default}{LINE}{variable.place.line}"
        body = list(self._methods())
        yield from indented(body)

    def _methods(self) -> Iterator[str]:
        yield from ("def first_(self):", f"    return {self.start.name!r}", "")
        methods: list[str] = []
        for name, function in self.functions.items():
            methods += self._function(function, f"fun_{name}", name in self.blocking)
        for state in self.machine.states:
            methods += self._state_functions(state)
        yield from methods
        yield from self._enter()
        yield from self._leave()
        yield from self._react()
        if self.is_spec:
            yield from self._observe()
            return
        yield from self._defers()
        if self.waiting:
            yield from self._continue()

    def _function(self, function: s.Function, title: str, waits: bool) -> list[str]:
        scope = Scope(self.names, self.machine, blocking=self.blocking, jumping=self.jumping, failing=self.failing)
        if not waits:
            return [*Body(scope, function, title).method(), ""]
        body = WaitingBody(scope, function, title)
        lines = [*body.method(), "", *marked(body.start_method(), function.place.line), ""]
        self.waiting[title] = body
        return lines

    def _waits(self, function: s.Function) -> bool:
        nodes = function.find(s.Receive, s.Call)
        return any(isinstance(n, s.Receive) or (isinstance(n, s.Call) and n.function in self.blocking) for n in nodes)

    def _state_functions(self, state: s.State) -> Iterator[str]:
        """The functions that a state defines without a name."""
        both = [("entry", state.entry), ("exit", state.exit)]
        both += [(f"{'do' if h.word == 'do' else 'with'}", h.function) for h in state.handlers]
        made: set[str] = set()
        for word, function in both:
            if isinstance(function, s.Function):
                title = self._title(word, state, function)
                if title not in made:
                    made.add(title)
                    yield from self._function(function, title, self._waits(function))
            elif isinstance(function, s.Name) and word in ("exit", "with"):
                leaving = self.jumping - (self.failing if word == "with" else set())
                for group, what in ((leaving, "may end in goto or raise"), (self.blocking, "waits in a receive")):
                    if function.name in group:
                        raise self.text.error(
                            function.place,
                            f"{function.name} {what}, in an exit function or after with",
                            "separate the two",
                        )

    def _title(self, word: str, state: s.State, function: s.Function) -> str:
        line, column = function.place
        return f"{word}_{state.name}" if word in ("entry", "exit") else f"{word}_{state.name}_{line}_{column}"

    def _run(self, word: str, state: s.State, function: s.Function | s.Name | None, payload: str) -> str | None:
        """A call of a function of a state; None if it has none."""
        if function is None:
            return None
        if isinstance(function, s.Name):
            title, given = f"fun_{function.name}", function_of(self.names, self.machine, function)
            waits = function.name in self.blocking
        else:
            title, given, waits = self._title(word, state, function), function, self._waits(function)
        if len(given.parameters) > 1 or (word == "exit" and given.parameters):
            most = "no" if word == "exit" else "at most one"
            raise self.text.error(given.place, f"a function for {word} has {most} parameter", "remove the parameter")
        argument = payload if given.parameters else ""
        if waits:
            return f"self.{title}(0, self.start_{title.removeprefix('fun_')}({argument}), None)"
        return f"self.{title}({argument})"

    def _jumps(self, function: s.Function | s.Name | None) -> bool:
        """Whether what a function returns says what to do next."""
        if isinstance(function, s.Name):
            return function.name in self.jumping | self.blocking
        return function is not None

    # -- states ------------------------------------------------------------------------------------------------------------

    def _enter(self) -> Iterator[str]:
        yield "def enter_(self, payload):"
        for state in self.machine.states:
            run = self._run("entry", state, state.entry, "payload")
            if run is not None:
                line = state.place.line
                yield f"    if self.at == {state.name!r}:{LINE}{line}"
                yield f"        {'return ' if self._jumps(state.entry) else ''}{run}{LINE}{line}"
        yield "    return None"
        yield ""

    def _leave(self) -> Iterator[str]:
        yield "def leave_(self):"
        for state in self.machine.states:
            run = self._run("exit", state, state.exit, "")
            if run is not None:
                yield f"    if self.at == {state.name!r}:{LINE}{state.place.line}"
                yield f"        {run}{LINE}{state.place.line}"
        yield "    return None"
        yield ""

    def _event(self, name: s.Name) -> str:
        if name.name != "halt" and name.name not in self.names.events:
            raise self.names.unknown(name.place, "event", name.name, self.names.events)
        return f"Events.{self.names.python(name.name)}"

    def _react(self) -> Iterator[str]:
        """What a state does with an event. An event that it does not handle is an error, except for halt."""
        yield "def react_(self, event, payload):"
        for state in self.machine.states:
            yield f"    if self.at == {state.name!r}:{LINE}{state.place.line}"
            met: set[str] = set()
            for handler in state.handlers:
                if handler.event.name in met:
                    raise self.text.error(
                        handler.place, f"the state {state.name} handles {handler.event.name} twice", "remove one"
                    )
                met.add(handler.event.name)
                yield from marked(self._handler(state, handler), handler.place.line)
            where = f"{self.text.where(state.place)}: {self.machine.name} in the state {state.name} cannot handle the event "
            line = state.place.line
            if not self.is_spec:
                yield f"        if event == Events.halt:{LINE}{line}"
                yield f"            self.leave_(){LINE}{line}"
                yield f"            self.at = HALTED{LINE}{line}"
                yield f"            return None{LINE}{line}"
            if self.is_spec:
                yield f'        return ("fail", {where!r} + event.value){LINE}{line}'
            else:
                yield f"        assert False, {where!r} + event.value{LINE}{line}"
        yield "    return None"
        yield ""

    def _handler(self, state: s.State, handler: s.Handler) -> Iterator[str]:
        yield f"        if event == {self._event(handler.event)}:"
        if handler.word == "defer" and self.is_spec:
            raise self.text.error(
                handler.place, "a spec cannot defer events", "ignore it, or remember it in a variable"
            )
        if self.is_spec and handler.event.name not in {name.name for name in self.machine.observes or ()}:
            names = self.machine.name
            raise self.text.error(handler.place, f"{names} does not observe {handler.event.name}", "add it to observes")
        if handler.word in ("defer", "ignore"):
            yield "            return None"
            return
        declared = self.names.events.get(handler.event.name)
        kind = self.names.resolve(declared.type if declared else None)
        self._check_payload(handler, handler.function, kind)
        run = self._run("do" if handler.word == "do" else "with", state, handler.function, "payload")
        if handler.word == "do":
            yield f"            {'return ' if self._jumps(handler.function) else ''}{run}"
            if not self._jumps(handler.function):
                yield "            return None"
            return
        if handler.target not in self.states:
            raise self.names.unknown(handler.place, "state", handler.target, self.states)
        entry = self.states[handler.target].entry
        self._check_payload(handler, entry, kind)
        leave = self._run("exit", state, state.exit, "")
        if leave is not None:
            yield f"            {leave}"
        if run is not None and self.is_spec and self._jumps(handler.function):
            yield f"            jump = {run}"
            yield "            if jump is not None:"
            yield "                return jump"
        elif run is not None:
            yield f"            {run}"
        yield f"            self.at = {handler.target!r}"
        yield "            return self.enter_(payload)"

    def _check_payload(self, handler: s.Handler, function: s.Function | s.Name | None, kind: ValueType) -> None:
        wanted = parameter_type(self.names, self.machine, function)
        kind = NULL if kind == NOTHING and fits(NULL, wanted) else kind
        if wanted != NOTHING and not fits(kind, wanted):
            raise self.text.error(
                handler.place,
                f"the event {handler.event.name} has a payload of the type {kind}, and its function takes {wanted}",
                "change one of the types",
            )

    def _defers(self) -> Iterator[str]:
        yield "def defers_(self, event):"
        for state in self.machine.states:
            deferred = [self._event(handler.event) for handler in state.handlers if handler.word == "defer"]
            if deferred:
                yield f"    if self.at == {state.name!r}:"
                yield f"        return event in ({', '.join(deferred)},)"
        yield "    return False"
        yield ""

    def _continue(self) -> Iterator[str]:
        yield "def awaits_(self, function, point):"
        for title, body in self.waiting.items():
            for point, events in body.awaited.items():
                listed = ", ".join(f"Events.{self.names.python(event)}" for event in events)
                yield f"    if function == {title!r} and point == {point}:"
                yield f"        return ({listed},)"
        yield from ("    return ()", "")
        yield "def continue_(self, function, point, values, got):"
        for title in self.waiting:
            yield f"    if function == {title!r}:"
            yield f"        return self.{title}(point, values, got)"
        yield from ("    return None", "")

    def _observe(self) -> Iterator[str]:
        observed = ", ".join(self._event(name) for name in self.machine.observes or ())
        yield from ("def observe(self, process, event):", f"    if event[0] in ({observed},):")
        yield from ("        self.settle_(self.react_(event[0], event[1]))", "")

"""Functions of P that may wait in a `receive`, translated to methods that can be continued.

The method gets a point to start from, the values of its variables, and what it waited for. It returns `("blocked", frames)`
with the functions that wait, the innermost last; `("return", value)`; or a jump, as other functions do. Statements in which
nothing waits are translated as usual. The others are split: each part begins at a point.
"""

from __future__ import annotations

from collections.abc import Iterator

from plait.rounds.p import syntax as s
from plait.rounds.p.expressions import Scope
from plait.rounds.p.statements import LINE, Body, Loop, indented, marked
from plait.rounds.p.value_types import NOTHING, NULL, ValueType


class WaitingBody(Body):
    """The translation of one function that may wait."""

    def __init__(self, scope: Scope, function: s.Function, title: str) -> None:
        super().__init__(scope, function, title)
        if title.startswith(("exit_", "with_")):
            raise self.error(
                function.place, "receive in an exit function or after with", "receive in an entry function"
            )
        self.points: list[list[str]] = []
        self.hidden: list[str] = []
        self.declared: list[str] = []
        """The Python names of all variables, those of cases included."""
        self.awaited: dict[int, list[str]] = {}
        """The events that the function waits for, by the point where it continues."""

    def start_method(self) -> list[str]:
        """The method that makes the values of the variables at the start from the arguments."""
        given = [self.scope.local[variable.name][0] for variable in self.function.parameters]
        values = [*given, *(self.default(variable) for variable in self.function.variables)]
        values += ["None"] * (len(self.declared) - len(values)) + ["()"] * len(self.hidden)
        name = self.title.removeprefix("fun_")
        return [
            f"def start_{name}({', '.join(['self', *given])}):",
            f"    return ({', '.join(values)}{',' if values else ''})",
        ]

    def method(self) -> Iterator[str]:
        for variable in self.function.variables:
            self.declare(variable)
        self._cases(self.function.body)
        self.declared = [name for name, _ in self.scope.local.values()]
        here = self.point()
        end = self._split(self.function.body, here)
        self.points[end].append('return ("return", None)')
        line = self.function.place.line
        names = self._variables()
        yield f"def {self.title}(self, point, values, got):{LINE}{line}"
        if names:
            yield f"    ({', '.join(names)},) = values{LINE}{line}"
        yield f"    while True:{LINE}{line}"
        for number, lines in enumerate(self.points):
            yield f"        {'if' if number == 0 else 'elif'} point == {number}:{LINE}{line}"
            yield from marked(indented(list(indented(list(indented(lines))))), line)

    def _variables(self) -> list[str]:
        return [*self.declared, *self.hidden]

    def frame(self, point: int) -> str:
        """The function, as it waits."""
        return f"({self.title!r}, {point}, ({', '.join(self._variables())}{',' if self._variables() else ''}))"

    def _cases(self, node: s.Node) -> None:
        """Declare the variables of cases, and those of loops that are split: a frame has all of them."""
        self._renamed: dict[s.Function, dict[str, str]] = {}
        for found in node.find(s.Case, s.Foreach):
            if isinstance(found, s.Foreach):
                if self.waits(found):
                    self.hidden.append(f"rest{len(self.hidden)}_")
                continue
            assert isinstance(found, s.Case)
            variables = (*found.function.parameters, *found.function.variables)
            own = {}
            for variable in variables:
                if variable.name in self.scope.local:
                    # The variables of a case hide those around it, so that they need names of their own.
                    own[variable.name] = f"{variable.name}.{len(self.scope.local)}"
                    hidden = s.Variable(variable.place, own[variable.name], variable.type)
                    name = f"{self.names.local(variable.name)}{len(self.scope.local)}_"
                    self.scope.local[hidden.name] = (name, self.names.resolve(variable.type))
                else:
                    own[variable.name] = variable.name
                    self.declare(variable)
            self._renamed[found.function] = own
        self._loops = iter(list(self.hidden))

    def waits(self, node: s.Node) -> bool:
        """Whether something in a statement may wait."""
        for found in node.find(s.Receive, s.Call):
            if isinstance(found, s.Receive) or (isinstance(found, s.Call) and found.function in self.scope.blocking):
                return True
        return False

    def point(self) -> int:
        self.points.append([])
        return len(self.points) - 1

    def _jump(self, point: int, line: int) -> list[str]:
        return [f"point = {point}{LINE}{line}", f"continue{LINE}{line}"]

    def _return(self, node: s.Return) -> Iterator[str]:
        if self._inside:
            raise self.error(node.place, "return in a case of a receive", "use if and else")
        yield f'return ("return", {self.returned(node)})'

    _inside = 0
    """How many cases are around the statement."""

    def _split(self, node: s.Statement, here: int) -> int:
        """Translate a statement that begins at a point. Returns the point at which the next one begins."""
        lines, line = self.points[here], node.place.line
        if not self.waits(node):
            lines += self.statement(node)
            return here
        match node:
            case s.Block():
                for statement in node.statements:
                    here = self._split(statement, here)
                return here
            case s.If():
                if self.waits(node.condition):
                    self.condition(node.condition)
                after, then, otherwise = self.point(), self.point(), self.point()
                lines.append(f"point = {then} if {self.condition(node.condition)} else {otherwise}{LINE}{line}")
                lines.append(f"continue{LINE}{line}")
                self.points[self._split(node.then, then)] += self._jump(after, line)
                last = otherwise if node.otherwise is None else self._split(node.otherwise, otherwise)
                self.points[last] += self._jump(after, line)
                return after
            case s.While():
                start, body, after = self.point(), self.point(), self.point()
                lines += self._jump(start, line)
                test = f"point = {body} if {self.condition(node.condition)} else {after}"
                self.points[start] += [f"{test}{LINE}{line}", f"continue{LINE}{line}"]
                self._loop(node.body, body, start, after, line)
                return after
            case s.Foreach():
                rest = next(self._loops)
                variable, elements = self.foreach(node)
                start, body, after = self.point(), self.point(), self.point()
                lines.append(f"{rest} = tuple({elements}){LINE}{line}")
                lines += self._jump(start, line)
                test = f"point = {body} if len({rest}) > 0 else {after}"
                self.points[start] += [f"{test}{LINE}{line}", f"continue{LINE}{line}"]
                self.points[body] += [f"{variable} = {rest}[0]{LINE}{line}", f"{rest} = {rest}[1:]{LINE}{line}"]
                self._loop(node.body, body, start, after, line)
                return after
            case s.Receive():
                return self._split_receive(node, here)
            case s.Do() if isinstance(node.call, s.Call):
                after, _ = self._wait_for(node.call, here)
                return after
            case s.Assign() if isinstance(node.value, s.Call) and not any(map(self.waits, node.value.arguments)):
                after, kind = self._wait_for(node.value, here)
                self.scope.check(node.place, kind, self._target_kind(node.target), "the variable")
                self.points[after] += marked(self._store(node.target, "got[1]"), line)
                return after
            case s.Return() if isinstance(node.value, s.Call) and not any(map(self.waits, node.value.arguments)):
                after, kind = self._wait_for(node.value, here)
                self.scope.check(node.place, kind, self.result, "the result")
                self.points[after].append(f"return got{LINE}{line}")
                return after
        call = next(c for c in node.find(s.Call) if isinstance(c, s.Call) and c.function in self.scope.blocking)
        raise self.error(
            call.place,
            f"{call.function} waits in a receive, and is called within an expression",
            "call it in a statement of its own: x = f(…);",
        )

    def _loop(self, node: s.Statement, body: int, start: int, after: int, line: int) -> None:
        self.loops.append(Loop(start, after))
        self.points[self._split(node, body)] += self._jump(start, line)
        self.loops.pop()

    def _wait_for(self, node: s.Call, here: int) -> tuple[int, ValueType]:
        """A call of a function that may wait: the point after it, and the type of its result."""
        function, given = self.scope.arguments(node)
        after, line = self.point(), node.place.line
        start = f"self.start_{function.name}({', '.join(given)})"
        lines = [
            f"got = self.fun_{function.name}(0, {start}, None)",
            'if got[0] == "blocked":',
            f'    return ("blocked", ({self.frame(after)}, *got[1]))',
            'if got[0] != "return":',
            "    return got",
        ]
        self.points[here] += marked(lines, line)
        self.points[here] += self._jump(after, line)
        return after, self.names.resolve(function.result)

    def _split_receive(self, node: s.Receive, here: int) -> int:
        self.only_machines(node.place, "receive")
        back, after, line = self.point(), self.point(), node.place.line
        self.points[here].append(f'return ("blocked", ({self.frame(back)},)){LINE}{line}')
        self.awaited[back] = []
        for case in node.cases:
            function, start = case.function, self.point()
            hides = self._renamed[function]
            around = {name: self.scope.local[name] for name in hides if name in self.scope.local}
            self.scope.local |= {name: self.scope.local[unique] for name, unique in hides.items()}
            for event in case.events:
                if event.name != "halt" and event.name not in self.names.events:
                    raise self.names.unknown(event.place, "event", event.name, self.names.events)
                if event.name in self.awaited[back]:
                    raise self.error(event.place, f"two cases for {event.name}", "remove one")
                self.awaited[back].append(event.name)
                if function.parameters:
                    declared = self.names.events.get(event.name)
                    kind = self.names.resolve(declared.type if declared else None)
                    name, wanted = self.scope.local[function.parameters[0].name]
                    kind = NULL if kind == NOTHING else kind
                    self.scope.check(event.place, kind, wanted, f"the parameter of the case {event.name}")
                self.points[back] += marked(
                    [f"if got[0] == Events.{self.names.python(event.name)}:"]
                    + ([f"    {name} = got[1]"] if function.parameters else [])
                    + [f"    point = {start}", "    continue"],
                    event.place.line,
                )
            for variable in function.variables:
                name, _ = self.scope.local[variable.name]
                self.points[start].append(f"{name} = {self.default(variable)}{LINE}{variable.place.line}")
            self._inside += 1
            end = self._split(function.body, start)
            self._inside -= 1
            self.points[end] += self._jump(after, line)
            for name in hides:
                if name in around:
                    self.scope.local[name] = around[name]
        self.points[back].append(f'assert False, "not awaited"{LINE}{line}')
        return after

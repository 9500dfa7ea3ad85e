"""Programs as Python functions: a subset of Python. Plait reads the source and never executes it.

    @thread
    def worker(s, i):
        t = s.x
        s.x = t + 1

    program = build({"x": 0}, [worker(0), worker(1)], always={"small": "s.x <= 2"})

`s` is the shared memory. Other names are locals (initially 0 or False) or arguments, which are constants of the thread.
Statements: assignments (also `+=`, `-=`, `*=`), `if`, `while`, `assert`, `pass`, `with atomic:`, `with s.m:` (a lock),
`lock(s.m)`, `unlock(s.m)`, `assume(c)`, `havoc(s.x)`, `s.x = choose(0, 3)`. Any other statement in a thread is an
error.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from plait.bmc.language import syntax as s
from plait.bmc.language.compiler import compile_program
from plait.bmc.program.definition import Program
from plait.bmc.program.source import Place, Source
from plait.kernel.errors import ModelError, UsageError

_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "/", ast.Mod: "%"}
_COMPARISONS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_STATEMENTS = "assignments, if, while, assert, pass, with atomic, with a lock, assume, lock, unlock and havoc"


def _only_in_threads(*_: object) -> NoReturn:
    raise UsageError(
        "this statement of a @thread function was called outside of one", hint="use it in a @thread function"
    )


class _Atomic:
    """`with atomic:` turns its block into one step."""

    def __enter__(self) -> None:
        _only_in_threads()

    def __exit__(self, *_: object) -> None: ...


atomic = _Atomic()


def lock(m: Any) -> None:
    """`lock(s.m)` waits for the lock and takes it. As a value in `build`, it declares a lock."""
    _only_in_threads()


def unlock(m: Any) -> None:
    """`unlock(s.m)` releases the lock."""
    _only_in_threads()


def assume(condition: Any) -> None:
    """`assume(c)` waits until c holds."""
    _only_in_threads()


def havoc(variable: Any, low: int | None = None, high: int | None = None) -> None:
    """`havoc(s.x)` sets a variable to any value; `havoc(s.x, 0, 3)` to any value from 0 to 3."""
    _only_in_threads()


def choose(low: int, high: int) -> Any:
    """`s.x = choose(0, 3)` sets a variable to any value from 0 to 3."""
    _only_in_threads()


def skip() -> None:
    """`skip()` is a step without effect, like `pass`."""
    _only_in_threads()


class Thread:
    """A function whose source is a process. A call with arguments creates an instance."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__doc__ = function.__doc__
        self.source, self.tree = _source(function)
        names = [a.arg for a in self.tree.args.args]
        if not names or self.tree.args.vararg or self.tree.args.kwarg or self.tree.args.kwonlyargs:
            place = Place(self.tree.lineno + self.source.first_line - 1, 1)
            raise self.source.error(
                place, f"{self.tree.name} has no argument for the shared memory", "write def p(s, i): …"
            )
        self.memory, self.arguments = names[0], names[1:]

    def __call__(self, *arguments: int | bool, **named: int | bool) -> Instance:
        unknown = [name for name in named if name not in self.arguments[len(arguments) :]]
        if not unknown:
            arguments += tuple(named[name] for name in self.arguments if name in named)
        if unknown or len(arguments) != len(self.arguments):
            raise UsageError(
                f"{self.tree.name} expects {len(self.arguments)} arguments after {self.memory}, but got "
                f"{len(arguments) + len(unknown)}",
                hint=f"its arguments are: {', '.join(self.arguments) or 'none'}",
            )
        for value in arguments:
            if not isinstance(value, int):
                raise UsageError(f"{self.tree.name}: {value!r} does not fit", hint="give a number or a bool")
        return Instance(self, arguments)


class Instance:
    """A thread with its arguments."""

    def __init__(self, thread: Thread, arguments: tuple[int | bool, ...]) -> None:
        self.thread, self.arguments = thread, arguments


def thread(function: Callable[..., Any]) -> Thread:
    """Turn a function into a process."""
    return Thread(function)


def build(
    variables: Mapping[str, Any],
    threads: Sequence[Instance | Thread],
    *,
    always: Mapping[str, str] | None = None,
    final: Mapping[str, str] | None = None,
    reachable: Mapping[str, str] | None = None,
    name: str = "program",
    atomic_statements: bool = False,
) -> Program:
    """Build a program from shared variables and threads.

    A step has at most one access to a variable that several threads use: `s.x += 1` is two steps. With
    `atomic_statements`, you claim that every statement is one step.

    The initial value declares a variable: a number, a bool, or a list of them. `int` or `bool` declares a free
    variable, a `range` a variable that is free within the range. `lock` or a list of locks declares locks. Properties
    are expressions: `"s.x < 2 or s.done"`. The threads of one function have numbers: `worker_0`, `worker_1`. A property
    reads their locals as `s.worker_0.t`.
    """
    instances = [t() if isinstance(t, Thread) else t for t in threads]
    for instance in instances:
        if not isinstance(instance, Instance):
            raise UsageError(
                f"{instance!r} is not a thread",
                hint="mark the function with @thread, then give the function or a call of it",
            )
    counts: dict[str, int] = {}
    totals: dict[str, int] = {}
    for instance in instances:
        totals[instance.thread.tree.name] = totals.get(instance.thread.tree.name, 0) + 1
    kinds = {n: _kind(n, v) for n, v in variables.items()}
    processes = []
    for instance in instances:
        base = instance.thread.tree.name
        number = counts.get(base, 0)
        counts[base] = number + 1
        label = base if totals[base] == 1 else f"{base}_{number}"
        processes.append(_Translation(instance.thread, instance.arguments, kinds).process(label))
    properties = []
    for kind, those in (("always", always), ("final", final), ("reachable", reachable)):
        for label, text in (those or {}).items():
            properties.append(_property(kind, label, text, kinds))
    source = instances[0].thread.source if instances else Source(name, "")
    tree = s.ProgramTree(
        source,
        name,
        variables=tuple(_declaration(n, v) for n, v in variables.items()),
        processes=tuple(processes),
        properties=tuple(properties),
        atomic=atomic_statements,
    )
    return compile_program(tree)


_NOWHERE = Place(1, 1)


def _kind(name: str, value: Any) -> str:
    sample = value[0] if isinstance(value, list | tuple) and value else value
    if sample is lock:
        return "lock"
    if sample is bool or isinstance(sample, bool):
        return "bool"
    if sample is int or isinstance(sample, int | range):
        return "int"
    raise UsageError(
        f"the variable {name} = {value!r} does not fit",
        hint="give a number, a bool, a list of them, int, bool, a range or lock",
    )


def _literal(value: int | bool) -> s.Expression:
    return s.Truth(_NOWHERE, value) if isinstance(value, bool) else s.Number(_NOWHERE, value)


def _declaration(name: str, value: Any) -> s.Declaration:
    kind = _kind(name, value)
    many = isinstance(value, list | tuple)
    size = s.Number(_NOWHERE, len(value)) if many else None
    if kind == "lock" or value in (int, bool) or (many and value[0] in (int, bool)):
        return s.Declaration(_NOWHERE, kind, name, size)
    if isinstance(value, range):
        ends = s.Number(_NOWHERE, value.start), s.Number(_NOWHERE, value.stop - 1)
        return s.Declaration(_NOWHERE, kind, name, None, None, False, *ends)
    values = tuple(_literal(v) for v in (value if many else [value]))
    return s.Declaration(_NOWHERE, kind, name, size, values, many)


def _source(function: Callable[..., Any]) -> tuple[Source, ast.FunctionDef]:
    try:
        lines, first = inspect.getsourcelines(function)
        file = inspect.getsourcefile(function) or "program"
    except (OSError, TypeError):
        raise UsageError(
            f"the source of {getattr(function, '__name__', function)!r} cannot be read",
            hint="write the function in a file",
        ) from None
    text = textwrap.dedent("".join(lines))
    tree = ast.parse(text).body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise UsageError("@thread marks something that is not a function", hint="write @thread above def p(s): …")
    return Source(file.rpartition("/")[2], text, first), tree


def _property(kind: str, name: str, text: str, kinds: Mapping[str, str]) -> s.PropertyDeclaration:
    source = Source(f"property {name}", text)
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        place = Place(error.lineno or 1, error.offset or 1)
        raise source.error(place, str(error.msg), "write a Python expression over s") from None
    reader = _Expressions(source, "s", {}, {}, {})
    return s.PropertyDeclaration(Place(1, 1, text), kind, name, reader.read(tree))


class _Expressions:
    """Translates Python expressions."""

    def __init__(
        self,
        source: Source,
        memory: str,
        constants: Mapping[str, int | bool],
        locals_: dict[str, str],
        outside: Mapping[str, Any],
    ) -> None:
        self.source, self.memory, self.constants = source, memory, dict(constants)
        self.locals, self.outside = locals_, outside

    def place(self, node: ast.AST) -> Place:
        line = getattr(node, "lineno", 1) + self.source.first_line - 1
        text = ast.get_source_segment(self.source.text, node) or ""
        return Place(line, getattr(node, "col_offset", 0) + 1, " ".join(text.split()))

    def error(self, node: ast.AST, message: str, hint: str) -> ModelError:
        return self.source.error(self.place(node), message, hint)

    def read(self, node: ast.expr) -> s.Expression:
        place = self.place(node)
        match node:
            case ast.Constant(value=bool() as truth):
                return s.Truth(place, truth)
            case ast.Constant(value=int() as number):
                return s.Number(place, number)
            case ast.Name(id=name) if name in self.constants:
                value = self.constants[name]
                return s.Truth(place, value) if isinstance(value, bool) else s.Number(place, value)
            case ast.Name(id=name) if name not in self.locals and isinstance(self.outside.get(name), int):
                value = self.outside[name]
                return s.Truth(place, value) if isinstance(value, bool) else s.Number(place, value)
            case ast.Name() | ast.Attribute() | ast.Subscript():
                return self.variable(node)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return s.Unary(place, "!", self.read(operand))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return s.Unary(place, "-", self.read(operand))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return s.Binary(place, _OPERATORS[type(op)], self.read(left), self.read(right))
            case ast.BoolOp(op=op, values=values):
                found = self.read(values[0])
                for side in values[1:]:
                    found = s.Binary(place, "&&" if isinstance(op, ast.And) else "||", found, self.read(side))
                return found
            case ast.Compare():
                return self._compare(node)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return s.Conditional(place, self.read(test), self.read(body), self.read(orelse))
            case ast.Call(func=ast.Name(id="all" | "any" as which), args=[ast.GeneratorExp() as generator]):
                return self._quantified(node, which, generator)
            case _:
                raise self.error(
                    node, f"{place.text} is not supported in a thread", "use numbers, variables, operators, all and any"
                )

    def _compare(self, node: ast.Compare) -> s.Expression:
        place = self.place(node)
        sides = [node.left, *node.comparators]
        found: s.Expression | None = None
        for left, op, right in zip(sides, node.ops, sides[1:], strict=False):
            if type(op) not in _COMPARISONS:
                raise self.error(node, f"{place.text} is not a supported comparison", "use == != < <= > >=")
            one = s.Binary(place, _COMPARISONS[type(op)], self.read(left), self.read(right))
            found = one if found is None else s.Binary(place, "&&", found, one)
        assert found is not None
        return found

    def _quantified(self, node: ast.Call, which: str, generator: ast.GeneratorExp) -> s.Expression:
        place = self.place(node)
        match generator.generators:
            case [
                ast.comprehension(
                    target=ast.Name(id=name),
                    iter=ast.Call(func=ast.Name(id="range"), args=[*ends]),
                    ifs=[],
                )
            ] if 1 <= len(ends) <= 2:
                low: s.Expression = self.read(ends[0]) if len(ends) == 2 else s.Number(place, 0)
                high = s.Binary(place, "-", self.read(ends[-1]), s.Number(place, 1))
                self.locals[name] = "int"
                body = self.read(generator.elt)
                del self.locals[name]
                return s.Quantified(place, which == "all", name, low, high, body)
            case _:
                raise self.error(
                    node, f"{place.text} is not a supported quantifier", f"write {which}(… for k in range(n))"
                )

    def variable(self, node: ast.expr) -> s.Name:
        """`s.x`, `s.a[i]`, a local, or (in properties) `s.worker_0.t`."""
        place = self.place(node)
        index: s.Expression | None = None
        if isinstance(node, ast.Subscript):
            index = self.read(node.slice)
            node = node.value
        match node:
            case ast.Attribute(value=ast.Name(id=memory), attr=name) if memory == self.memory:
                return s.Name(place, name, index)
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id=memory), attr=owner), attr=name) if (
                memory == self.memory
            ):
                return s.Name(place, name, index, owner)
            case ast.Name(id=name) if name in self.locals:
                return s.Name(place, name, index)
            case _:
                raise self.error(
                    node,
                    f"{place.text} is not a variable",
                    f"write {self.memory}.x for a shared variable; assign a local before you read it",
                )


class _Translation(_Expressions):
    """Translates a thread."""

    def __init__(self, thread: Thread, arguments: tuple[int | bool, ...], kinds: Mapping[str, str]) -> None:
        constants = dict(zip(thread.arguments, arguments, strict=True))
        outside = getattr(thread.function, "__globals__", {})
        super().__init__(thread.source, thread.memory, constants, {}, outside)
        self.kinds, self.tree = kinds, thread.tree

    def process(self, name: str) -> s.ProcessDeclaration:
        body = self.tree.body
        if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body = body[1:]
        self._find_locals(body)
        statements = self.block(body)
        initial: dict[str, s.Expression] = {"int": s.Number(_NOWHERE, 0), "bool": s.Truth(_NOWHERE, False)}
        declared = tuple(s.Declaration(_NOWHERE, k, n, None, (initial[k],)) for n, k in self.locals.items())
        return s.ProcessDeclaration(self.place(self.tree), name, None, None, None, (), declared, statements)

    def _find_locals(self, body: list[ast.stmt]) -> None:
        """Collect the assigned names, with the type of the first value."""
        for node in ast.walk(ast.Module(body, [])):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name) and target.id not in self.locals:
                        if target.id in self.constants:
                            raise self.error(
                                target, f"{target.id} is an argument: arguments are constants", "choose another name"
                            )
                        self.locals[target.id] = self._type(node.value)

    def _type(self, node: ast.expr) -> str:
        match node:
            case ast.Constant(value=bool()) | ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                return "bool"
            case ast.Name(id=name):
                if name in self.constants:
                    return "bool" if isinstance(self.constants[name], bool) else "int"
                return self.locals.get(name, "int")
            case ast.IfExp(body=body):
                return self._type(body)
            case ast.Subscript(value=value):
                return self._type(value)
            case ast.Attribute(attr=name):
                return "int" if self.kinds.get(name) == "int" else "bool"
            case _:
                return "int"

    def block(self, body: list[ast.stmt]) -> tuple[s.Statement, ...]:
        return tuple(statement for node in body for statement in self.statement(node))

    def _header(self, node: ast.If | ast.While | ast.With) -> Place:
        """The place of a compound statement, with the text of its first line."""
        place = self.place(node)
        line = self.source.text.splitlines()[node.lineno - 1].strip()
        return place._replace(text=line.removeprefix("el").rstrip(":") if line.startswith("elif") else line.rstrip(":"))

    def statement(self, node: ast.stmt) -> list[s.Statement]:
        place = self.place(node)
        match node:
            case ast.Assign(targets=[target], value=ast.Call(func=ast.Name(id="choose"), args=[low, high])):
                return [s.Havoc(place, self.variable(target), self.read(low), self.read(high))]
            case ast.Assign(targets=[target], value=value):
                return [s.Assign(place, self.variable(target), self.read(value))]
            case ast.AugAssign(target=target, op=op, value=value) if type(op) in _OPERATORS:
                name = self.variable(target)
                return [s.Assign(place, name, s.Binary(place, _OPERATORS[type(op)], name, self.read(value)))]
            case ast.If(test=test, body=body, orelse=orelse):
                return [s.If(self._header(node), self.read(test), self.block(body), self.block(orelse))]
            case ast.While(test=test, body=body, orelse=[]):
                inside = [] if all(isinstance(b, ast.Pass) for b in body) else body
                return [s.While(self._header(node), self.read(test), self.block(inside))]
            case ast.Assert(test=test):
                return [s.Assert(place, self.read(test))]
            case ast.Pass():
                return [s.Skip(place)]
            case ast.With(items=[first, second, *rest], body=body):
                inner = ast.copy_location(ast.With(items=[second, *rest], body=body), node)
                return self.statement(ast.copy_location(ast.With(items=[first], body=[inner]), node))
            case ast.With(items=[ast.withitem(context_expr=ast.Name(id="atomic"))], body=body):
                return [s.Atomic(self._header(node), self.block(body))]
            case ast.With(items=[ast.withitem(context_expr=manager)], body=body):
                name = self.variable(manager)
                text = name.place.text
                take, give = place._replace(text=f"lock({text})"), place._replace(text=f"unlock({text})")
                return [s.Locking(take, name, True), *self.block(body), s.Locking(give, name, False)]
            case ast.Expr(value=ast.Call(func=ast.Name(id=called), args=arguments)):
                return [self._call(node, called, arguments)]
            case _:
                raise self.error(node, "this statement is not supported in a thread", f"use {_STATEMENTS}")

    def _call(self, node: ast.stmt, called: str, arguments: list[ast.expr]) -> s.Statement:
        place = self.place(node)
        match called, arguments:
            case "assume", [condition]:
                return s.Assume(place, self.read(condition))
            case "lock" | "unlock", [target]:
                return s.Locking(place, self.variable(target), called == "lock")
            case "havoc", [target]:
                return s.Havoc(place, self.variable(target))
            case "havoc", [target, low, high]:
                return s.Havoc(place, self.variable(target), self.read(low), self.read(high))
            case "skip", []:
                return s.Skip(place)
            case _:
                raise self.error(node, f"{called}(…) is not supported in a thread", f"use {_STATEMENTS}")

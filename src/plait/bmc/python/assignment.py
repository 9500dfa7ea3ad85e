"""Which local variables of a function may be read before they are assigned.

The answer is on the safe side: for each such variable, the translation keeps a flag that says whether it is assigned.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

_NESTED = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
_COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
State = frozenset[str] | None
"""The variables that are assigned for sure. None: the place is not reached."""


def read_early(body: list[ast.stmt], own: frozenset[str], parameters: Iterable[str]) -> frozenset[str]:
    """The variables in `own` that the statements of a function may read before they assign them, or delete."""
    found = _Assignments(own)
    found.block(body, frozenset(parameters))
    imported: set[str] = set()
    foreign: set[str] = set()
    for node in (n for statement in body for n in ast.walk(statement)):
        match node:
            case ast.Name(id=name, ctx=ast.Del()):
                found.early.add(name)
            case ast.ExceptHandler(name=str(name)):
                found.early.add(name)
            case ast.Import() | ast.ImportFrom():
                imported |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
            case ast.Nonlocal():
                foreign.update(node.names)
    return (frozenset(found.early) & own) - imported - foreign


def _met(states: Iterable[State]) -> State:
    reached = [state for state in states if state is not None]
    return frozenset.intersection(*reached) if reached else None


class _Assignments:
    def __init__(self, own: frozenset[str]) -> None:
        self.own = own
        self.early: set[str] = set()
        self.breaks: list[list[State]] = []
        """The states at the `break`s of the loops around."""

    def block(self, statements: list[ast.stmt], state: State) -> State:
        for statement in statements:
            if state is None:
                return None
            state = self.statement(statement, state)
        return state

    def statement(self, node: ast.stmt, state: frozenset[str]) -> State:
        match node:
            case ast.If():
                state = self.read(node.test, state)
                return _met([self.block(node.body, state), self.block(node.orelse, state)])
            case ast.While():
                state = self.read(node.test, state)
                forever = isinstance(node.test, ast.Constant) and bool(node.test.value)
                return self._loop(node, state, None if forever else state)
            case ast.For() | ast.AsyncFor():
                state = self.read(node.iter, state)
                return self._loop(node, self.read(node.target, state), state)
            case ast.Try() | ast.TryStar():
                return self._try(node, state)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    state = self.read(item, state)
                return self.block(node.body, state)
            case ast.Return() | ast.Raise():
                self.read(node, state)
                return None
            case ast.Break():
                self.breaks[-1].append(state)
                return None
            case ast.Continue():
                return None
            case ast.Assign():
                state = self.read(node.value, state)
                for target in node.targets:
                    state = self.read(target, state)
                return state
            case ast.AnnAssign():
                return state if node.value is None else self.read(node.target, self.read(node.value, state))
            case ast.AugAssign():
                if isinstance(node.target, ast.Name):
                    self._use(node.target.id, state)
                return self.read(node.target, self.read(node.value, state))
            case ast.Import() | ast.ImportFrom():
                return state | {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
            case _:
                return self.read(node, state)

    def _loop(self, node: ast.While | ast.For | ast.AsyncFor, inside: frozenset[str], after: State) -> State:
        self.breaks.append([])
        self.block(node.body, inside)
        breaks = self.breaks.pop()
        return _met([self.block(node.orelse, after), *breaks])

    def _try(self, node: ast.Try | ast.TryStar, state: frozenset[str]) -> State:
        ends = [self.block(node.orelse, self.block(node.body, state))]
        for handler in node.handlers:
            if handler.type is not None:
                self.read(handler.type, state)
            name = {handler.name} if handler.name is not None else set()
            end = self.block(handler.body, state | name)
            ends.append(None if end is None else end - name)
        if not node.finalbody:
            return _met(ends)
        kept = frozenset.intersection(state, *(end for end in ends if end is not None))
        self.block(node.finalbody, kept)
        return self.block(node.finalbody, _met(ends))

    def read(self, node: ast.AST, state: frozenset[str]) -> frozenset[str]:
        """The parts of a statement in order; the state after it."""
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                self._use(name, state)
                return state
            case ast.Name(id=name, ctx=ast.Store()):
                return state | {name}
            case ast.NamedExpr():
                return self.read(node.target, self.read(node.value, state))
            case ast.BoolOp() | ast.IfExp():
                for child in ast.iter_child_nodes(node):
                    self.read(child, state)
                return state
            case _ if isinstance(node, _COMPREHENSIONS):
                names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
                for child in ast.iter_child_nodes(node):
                    self.read(child, state | names)
                return state
            case _ if isinstance(node, _NESTED):
                if not isinstance(node, ast.ClassDef):
                    for default in (*node.args.defaults, *node.args.kw_defaults):
                        if default is not None:
                            self.read(default, state)
                return state if isinstance(node, ast.Lambda) else state | {node.name}
            case _:
                for child in ast.iter_child_nodes(node):
                    state = self.read(child, state)
                return state

    def _use(self, name: str, state: frozenset[str]) -> None:
        if name in self.own and name not in state:
            self.early.add(name)

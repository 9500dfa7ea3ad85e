"""What all processes of a C program share during the translation: objects, threads, and where pointers may point."""

from __future__ import annotations

import msgspec

from plait.bmc.c.reading.tree import Call, Declaration, Definition, FunctionName, Name, Node, Number, nodes
from plait.bmc.c.reading.types import CType, Struct, cells
from plait.bmc.c.reading.unit import Unit
from plait.bmc.c.translation.values import Object, Origins, Val
from plait.bmc.program.builder import CodeBuilder, ProgramBuilder
from plait.bmc.program.definition import Variable


class Options(msgspec.Struct, frozen=True):
    """The bounds of the translation, and optional checks."""

    unwind: int = 8
    """The depth of recursion."""
    objects: int = 4
    """The number of objects that a call of malloc in a loop allocates."""
    threads: int = 4
    """The number of threads that a call of pthread_create in a loop starts."""
    overflow: bool = False
    """Whether the overflow of a signed number is a violation. Otherwise it wraps around."""
    leaks: bool = False
    """Whether a thread that is neither joined nor detached, and an object that is not freed, are violations."""
    spurious: bool = False
    """Whether `pthread_cond_wait` may return without a signal."""


class Thread(msgspec.Struct, eq=False):
    """A thread that a call of pthread_create starts."""

    code: CodeBuilder
    function: str
    argument: Val | Variable
    """A known value, or the variable from which the thread reads it."""
    result: Variable
    chain: tuple[str, ...]
    """The functions of the threads that started it, beginning with main."""
    released: Variable
    """Whether it has been joined or detached."""


class Model:
    """The state of one translation of a program."""

    def __init__(self, unit: Unit, options: Options, before: Model | None = None) -> None:
        self.unit, self.options = unit, options
        self.program = ProgramBuilder(unit.path.stem, unit.source)
        self.flows: dict[str, set[str]] = {} if before is None else before.found
        """What the translation before this one found out: which values may flow to a variable."""
        self.known: dict[str, Object] = {} if before is None else before.objects
        """The objects of the translation before this one."""
        self.found: dict[str, set[str]] = {}
        """The same for this translation."""
        self.objects: dict[str, Object] = {}
        self.statics: dict[Declaration, Object] = {}
        self.functions: dict[str, int] = {}
        """The addresses of functions."""
        self.threads: list[Thread] = []
        self.waiting: list[Thread] = []
        """The threads whose code is not translated yet."""
        self.allocated: list[Object] = []
        self.next = 1
        self.names: dict[str, int] = {}
        self.doubted: frozenset[str] = frozenset() if before is None else frozenset(before.doubtful)
        """The objects to which, according to the translation before, parts of structs are copied that are not set."""
        self.doubtful: set[str] = set(self.doubted)
        """The same for this translation."""
        self.closures: dict[Origins, list[str]] = {}
        called = called_functions(unit)
        self.frees = bool(called & {"free", "realloc"}) or options.leaks
        self.kinds = "pthread_mutexattr_settype" in called or any(
            isinstance(node, Number) and node.value in (1, 2)
            for d in unit.variables()
            if d.initial is not None and _has_mutex(d.type)
            for node in nodes(d.initial)
        )
        """Whether a mutex may be recursive or check errors."""
        self.words: set[Declaration] = set()
        """The arguments of main that are texts: nobody may look at them."""
        self.waits_for_threads = "pthread_exit" in called
        """Whether main may end with pthread_exit, which waits for all threads."""

    def name(self, wanted: str) -> str:
        """A name that no other object has."""
        count = self.names.get(wanted, 0)
        self.names[wanted] = count + 1
        return f"{wanted}#{count + 1}" if count else wanted

    def local(self, name: str, t: CType, process: int) -> Object:
        """A new object of a process. It has no address."""
        found = Object(name, t, None, process)
        found.doubtful = found.key in self.doubted
        return found

    def object(self, name: str, t: CType, *, copies: int = 1, heap: bool = False) -> Object:
        """A new object with an address."""
        name = self.name(name)
        return self.objects.get(f"object {name}") or self._placed(name, t, copies, heap)

    def _placed(self, name: str, t: CType, copies: int, heap: bool) -> Object:
        base, self.next = self.next, self.next + copies * (cells(t) + 1)
        found = self.objects[f"object {name}"] = Object(name, t, base, None, copies, heap)
        found.doubtful = found.key in self.doubted
        if heap and self.frees:
            found.alive = self.program.shared(f"{name} exists", "bool", size=copies, initial=False, temporary=True)
        if heap:
            self.allocated.append(found)
        return found

    def recalled(self, name: str) -> Object | None:
        """An object by name, even if the code that makes it has not been translated yet."""
        found, known = self.objects.get(name), self.known.get(name)
        if found is None and known is not None:
            found = self._placed(known.name, known.type, known.copies, known.heap)
            found.initial = {key: list(values) for key, values in known.initial.items()}
            found.unset = known.unset
        return found

    @property
    def stable(self) -> bool:
        """Whether another translation would give the same program."""
        before, now = (
            {n: (o.copies, o.initial, o.unset) for n, o in objects.items()} for objects in (self.known, self.objects)
        )
        return self.flows == self.found and before == now and self.doubtful == self.doubted

    def address(self, function: str) -> int:
        """The address of a function."""
        if function not in self.functions:
            self.functions[function], self.next = self.next, self.next + 1
        return self.functions[function]

    def resolved(self, origins: Origins) -> list[str]:
        """The objects and functions from which a value may come."""
        known = self.closures.get(origins)
        if known is None:
            seen = dict.fromkeys(sorted(origins))
            todo = list(seen)
            for name in todo:
                for source in sorted(self.flows.get(name, ())):
                    if source not in seen:
                        seen[source] = None
                        todo.append(source)
            known = self.closures[origins] = sorted(n for n in seen if not n.startswith("variable "))
        return known


def _has_mutex(t: CType) -> bool:
    from plait.bmc.c.reading.types import Array, Synchronization

    match t:
        case Synchronization(kind):
            return kind == "mutex"
        case Array(element):
            return _has_mutex(element)
        case Struct():
            return any(map(_has_mutex, t.fields.values()))
        case _:
            return False


def reachable(unit: Unit) -> list[Definition]:
    """All functions with a body that main may call or start, after reading them."""
    found: dict[str, Definition] = {}
    seen: set[Declaration] = set()
    todo = ["main"]

    def visit(node: Node) -> None:
        for part in nodes(node):
            if isinstance(part, FunctionName):
                todo.extend((part.name, f"__plait_{part.name}"))
            elif isinstance(part, Name) and part.declaration not in seen:
                seen.add(part.declaration)
                if part.declaration.static and part.declaration.initial is not None:
                    visit(part.declaration.initial)

    for name in todo:
        if name not in found and (definition := unit.function(name)) is not None:
            found[name] = definition
            visit(definition.body)
    return list(found.values())


def called_functions(unit: Unit) -> set[str]:
    """The names of all functions that are called."""
    return {
        node.function.name
        for definition in unit.known.values()
        for node in nodes(definition.body)
        if isinstance(node, Call) and isinstance(node.function, FunctionName)
    }

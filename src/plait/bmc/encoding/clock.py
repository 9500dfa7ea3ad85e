"""The encoding `clock`: one formula per process. The reads-from relation and clocks connect the processes.

Slot (p, n) is the n-th step of process p, if the process takes it. Its locals and its location follow from the previous
slot. A slot that accesses shared memory has a clock. A read reads from a write of its cell with a smaller clock; no
other write of this cell has a clock between the two. If no write of the cell comes before the read, it reads the
initial value. Then every order of the slots that respects the clocks is a run. The low bits of a clock are the number
of the process, so all clocks are different.

Projections constrain reads-from (Saissi 2019, section 4.3). A slot is taken only if the next slot of its process is
taken, if another slot reads from one of its writes, or if one of its writes is the last one of a cell of F. This is
Definition 4 with the reads-from relation. It also omits steps whose writes are overwritten before a read. The remaining
steps read the same values as before, because the writes that they read from remain. So they are a run with the same
final values.
"""

from __future__ import annotations

from collections.abc import Iterable

from plait.bmc.analysis.ranges import Ranges, free_range
from plait.bmc.analysis.relevance import counted, exclusive, relevance
from plait.bmc.encoding import symbolic
from plait.bmc.encoding.smt import CannotEncodeError, Formula, Term
from plait.bmc.encoding.symbolic import Access
from plait.bmc.encoding.witness import Model, Witness, cell_name, input_name
from plait.bmc.program.definition import Expr, Program, Variable, accesses, ended_in, longest, variables_of

Slot = tuple[int, int]


def supports(program: Program) -> bool:
    """Whether the encoding can express a program: no atomic section of several steps, no step reads a location."""
    return not any(exclusive(program)) and not counted(program)


class _Write:
    """A write of a slot to shared memory: at most one cell, for every instruction of the slot."""

    def __init__(self, slot: Slot, active: Term, index: Term, value: Term) -> None:
        self.slot, self.active, self.index, self.value = slot, active, index, value
        self.readers: list[Term] = []
        """The conditions under which a read reads from this write."""


class _Read:
    """A read of shared memory by a slot. Slot None: the final value."""

    def __init__(self, name: str, slot: Slot | None, variable: Variable, value: str) -> None:
        self.name, self.slot, self.variable, self.value = name, slot, variable, value
        self.users: list[tuple[Term, Term]] = []
        """Conditions, each with an index."""


class ClockEncoding:
    """Runs of at most `depth` steps."""

    def __init__(
        self,
        program: Program,
        depth: int,
        ranges: Ranges,
        bits: int | None,
        *,
        relevant: Iterable[Expr] = (),
        projection: bool = False,
        exact: bool = False,
    ) -> None:
        if not supports(program):
            raise CannotEncodeError("an atomic section of several steps in the encoding clock")
        self.depth, self.ranges = depth, ranges
        self.f = Formula(bits)
        relevant = list(relevant)
        self.relevant: set[Variable] = {v for e in relevant for v in variables_of(e)}
        self.watched: set[int] = {p for e in relevant for p in ended_in(e)}
        found = relevance(program, ranges, self.relevant, self.watched) if projection else None
        self.program = program = found.program if found else program
        self._classify()
        self.initial = {v: [self._initial(v, k) for k in range(v.cells)] for v in program.variables}
        self.most = [min(depth, depth if (n := longest(code)) is None else n) for code in program.processes]
        count = len(program.processes)
        self.low_bits = max(1, (count - 1).bit_length())
        self.high_bits = max(1, max(depth - 1, 1).bit_length())
        self.stamp = f"(_ BitVec {self.high_bits + self.low_bits})"
        self.taken: list[list[Term]] = [[] for _ in range(count)]
        """For each process and position, whether the slot is taken."""
        self.clocks: dict[Slot, str] = {}
        self.orders: dict[tuple[Slot, Slot], Term] = {}
        self.reads: list[_Read] = []
        self.writes: dict[Variable, list[_Write]] = {v: [] for v in program.variables}
        self.marks: dict[Slot, list[Term]] = {}
        """The conditions under which a slot writes a variable of F that no other process accesses."""
        self.cells: dict[Variable, list[Term]] = {v: list(c) for v, c in self.initial.items()}
        """The current values of private variables; after construction, the final values."""
        self.at: list[dict[int, Term]] = [{} for _ in range(count)]
        """For each process and location, whether the process is there at the end."""
        for p in range(count):
            self._process(p, found.latest(p, depth) if found else {})
        self.final: dict[tuple[Variable, int], _Read] = {}
        for variable in (v for v in program.variables if v in self.relevant):
            for k in range(variable.cells):
                self._last(variable, k)
        for e in program.initial:
            self.f.add(self._evaluate(e, lambda v, k, _: self.initial[v][int(k)], lambda _, place: place == 0))
        if not exact and not self.watched and not self.marks and not any(self.writes[v] for v in self.relevant):
            # No step writes a relevant variable, so the run without steps is enough.
            for slots in self.taken:
                self.f.add(self.f.all(*(self.f.not_(go) for go in slots)))
            return
        for read in self.reads:
            self._connect(read)
        self._limit(exact)
        if found:
            self._project()
            for p, at in enumerate(self.at):
                self.f.add(self.f.all(*(self.f.not_(at[place]) for place in found.never_last(p, at))))

    def _classify(self) -> None:
        """Find the shared variables: written, and accessed by several processes. Others are private or never change."""
        touching: dict[Variable, set[int]] = {v: set() for v in self.program.variables}
        self.written: set[Variable] = {v for v in self.program.variables if v.hidden}
        for p, code in enumerate(self.program.processes):
            for step in code.instructions:
                reads, writes = accesses(step.body)
                self.written |= writes
                for variable in reads | writes:
                    touching[variable].add(p)
        self.shared = {
            v for v in self.program.variables if v in self.written and (len(touching[v]) > 1 or v.hidden)
        }  # fmt: skip

    def _initial(self, variable: Variable, k: int) -> Term:
        f, value = self.f, variable.initial[k]
        if value is not None:
            return value if isinstance(value, bool) else f.wrap(value)
        if variable.kind == "bool":
            return f.boolean(cell_name(variable, k))
        term = f.number(cell_name(variable, k))
        if (limits := free_range(variable)) is not None:
            f.add(symbolic.between(f, term, limits))
        return term

    # -- slots ---------------------------------------------------------------------------------------------------------

    def _process(self, p: int, latest: dict[int, int]) -> None:
        """Add the slots of a process in order. Its location before slot n is a location after exactly n steps."""
        f, code = self.f, self.program.processes[p]
        here: dict[int, Term] = {0: True}
        rest: dict[int, list[Term]] = {}
        for n in range(self.most[p]):
            steps = {place: flag for place, flag in here.items() if place < code.end and n <= latest.get(place, n)}
            if not steps:
                break
            go = f.boolean(f"{code.name} takes {n}")
            f.add(f.implies(go, self.taken[p][-1] if self.taken[p] else True))
            f.add(f.implies(go, f.any(*steps.values())))
            for place, flag in here.items():
                rest.setdefault(place, []).append(f.all(flag, f.not_(go)) if place < code.end else flag)
            self.taken[p].append(go)
            here = self._slot(p, n, go, steps)
        for place, flag in here.items():
            rest.setdefault(place, []).append(flag)
        self.at[p] = {place: f.named(f.any(*flags), "Bool") for place, flags in rest.items()}

    def _slot(self, p: int, n: int, go: Term, steps: dict[int, Term]) -> dict[int, Term]:
        """Add one slot for all its possible locations, and return the locations after it."""
        f, code = self.f, self.program.processes[p]
        moves: dict[int, list[Term]] = {}
        ports: dict[tuple[Variable, int], _Read] = {}
        written: list[Access] = []
        private: list[Access] = []
        for place, here in steps.items():
            taken = f.named(f.all(go, here), "Bool")
            step = code.instructions[place]
            inputs: list[Term] = []
            for number, domain in enumerate(step.inputs):
                name = input_name(p, n, place, number)
                inputs.append(f.boolean(name) if domain.kind == "bool" else f.number(name))
                f.add(f.implies(taken, symbolic.domain(f, inputs[-1], domain)))
            load = _Loads(self, (p, n), taken, ports)
            outcome = symbolic.run(f, self.program, self.ranges, step, load, inputs, lambda _p, _place: False)
            f.add(f.implies(taken, outcome.enabled))
            for when, target in outcome.targets:
                moves.setdefault(target, []).append(f.all(taken, when))
            for write in outcome.writes:
                to = written if write.variable in self.shared else private
                to.append(write._replace(when=f.all(taken, write.when)))
        self._write_private((p, n), private)
        self._write_shared((p, n), written)
        if ports or written:
            self.clocks[p, n] = self._clock(p, n)
        after = {place: f.named(f.any(*ways), "Bool") for place, ways in moves.items()}
        return {place: flag for place, flag in after.items() if flag is not False}

    def _write_private(self, slot: Slot, writes: list[Access]) -> None:
        f = self.f
        for variable, at, when, value in writes:
            sort = None if variable.kind == "bool" else f.sort
            if variable in self.relevant:
                self.marks.setdefault(slot, []).append(when)
            for k in range(variable.cells):
                hit = f.all(when, f.equal(at, k))
                self.cells[variable][k] = f.select(hit, value, self.cells[variable][k], sort)
        for variable in dict.fromkeys(w.variable for w in writes):
            sort = "Bool" if variable.kind == "bool" else f.sort
            self.cells[variable] = [f.named(term, sort) for term in self.cells[variable]]

    def _write_shared(self, slot: Slot, writes: list[Access]) -> None:
        """Merge writes of the same cell. If two indices may be equal, the later write wins."""
        f = self.f
        by_variable: dict[Variable, list[Access]] = {}
        for write in writes:
            by_variable.setdefault(write.variable, []).append(write)
        for variable, those in by_variable.items():
            sort = None if variable.kind == "bool" else f.sort
            merged: list[Access] = []
            for write in those:
                same = next((i for i, m in enumerate(merged) if m.at == write.at), None)
                hits = [
                    m._replace(when=f.all(m.when, f.not_(f.all(write.when, f.equal(write.at, m.at)))))
                    if i != same else m
                    for i, m in enumerate(merged)
                ]  # fmt: skip
                if same is None:
                    merged = [*hits, write]
                    continue
                old = hits.pop(same)
                value = f.select(write.when, write.value, old.value, sort)
                merged = [*hits, Access(variable, write.at, f.any(old.when, write.when), value)]
            for m in merged:
                self.writes[variable].append(
                    _Write(slot, f.named(m.when, "Bool"), m.at, f.named(m.value, sort or "Bool"))
                )

    def _clock(self, p: int, n: int) -> str:
        f = self.f
        high = f.vector(f"clock {p} {n}", self.high_bits)
        stamp = f.named(f"(concat {high} (_ bv{p} {self.low_bits}))", self.stamp, f"stamp {p} {n}")
        assert isinstance(stamp, str)
        previous = next((self.clocks[p, m] for m in reversed(range(n)) if (p, m) in self.clocks), None)
        if previous is not None:
            f.add(f.implies(self.taken[p][n], f.below(previous, stamp, self.stamp)))
        return stamp

    def _before(self, one: Slot, two: Slot | None) -> Term:
        """Whether a slot comes before another one (None: before the end)."""
        if two is None:
            return True
        if one[0] == two[0]:
            return one[1] < two[1]
        if (one, two) not in self.orders:
            order = self.f.below(self.clocks[one], self.clocks[two], self.stamp)
            order = self.f.named(order, "Bool", "before")
            self.orders[one, two], self.orders[two, one] = order, self.f.not_(order)
        return self.orders[one, two]

    # -- reads-from ----------------------------------------------------------------------------------------------------

    def _last(self, variable: Variable, k: int) -> Term:
        """The final value of a cell."""
        if variable not in self.shared:
            return self.cells[variable][k]
        if not self.writes[variable]:
            return self.initial[variable][k]
        if (variable, k) not in self.final:
            read = self.read(f"last {variable.name} {k}", None, variable)
            read.users.append((True, k))
            self.final[variable, k] = read
        return self.final[variable, k].value

    def read(self, name: str, slot: Slot | None, variable: Variable) -> _Read:
        """Add a read of shared memory."""
        value = self.f.boolean(name) if variable.kind == "bool" else self.f.number(name)
        self.reads.append(_Read(name, slot, variable, value))
        return self.reads[-1]

    def _connect(self, read: _Read) -> None:
        """Constrain a read: it reads from the last earlier write of its cell."""
        f, variable = self.f, read.variable
        active = f.any(*(when for when, _ in read.users))
        index = read.users[-1][1]
        for when, at in reversed(read.users[:-1]):
            index = f.select(when, at, index, f.sort)
        index = f.named(index, f.sort)

        def same(value: Term) -> Term:
            return f.same(read.value, value) if variable.kind == "bool" else f.equal(read.value, value)

        found: list[tuple[_Write, Term]] = []
        for write in self.writes[variable]:
            before = self._before(write.slot, read.slot)
            match = f.all(active, before, write.active, f.equal(write.index, index))
            if match is not False:
                found.append((write, f.named(match, "Bool")))
        sources: list[Term] = []
        stamp = f.declare(f"from {read.name}", self.stamp) if len(found) > 1 else ""
        for number, (write, match) in enumerate(found):
            chosen = f.boolean(f"{read.name} from {number}")
            sources.append(chosen)
            write.readers.append(chosen)
            f.add(f.implies(chosen, match))
            f.add(f.implies(chosen, same(write.value)))
            if stamp:
                clock = self.clocks[write.slot]
                f.add(f.implies(chosen, f.equal(stamp, clock, self.stamp)))
                f.add(f.implies(match, f.at_most(clock, stamp, self.stamp)))
        untouched = f.all(*(f.not_(match) for _, match in found))
        initial = symbolic.select(f, variable, self.initial[variable], index)
        f.add(f.implies(f.all(active, untouched), same(initial)))
        f.add(f.any(f.not_(active), untouched, *sources))

    # -- constraints ---------------------------------------------------------------------------------------------------

    def _limit(self, exact: bool) -> None:
        """At most `depth` slots are taken; with `exact`, exactly `depth`."""
        if sum(map(len, self.taken)) <= self.depth and not exact:
            return
        f = self.f
        bits = max(sum(map(len, self.taken)), self.depth).bit_length() + 1
        sort = f"(_ BitVec {bits})"
        total: Term = 0
        for slots in self.taken:
            count: Term = 0
            for n, go in enumerate(slots):
                count = f.select(go, n + 1, count, sort)
            terms = [t if isinstance(t, str) else f"(_ bv{t} {bits})" for t in (total, count)]
            total = f.named(f"(bvadd {terms[0]} {terms[1]})", sort)
        f.add(f.at_most(total, self.depth, sort))
        if exact:
            f.add(f.equal(total, self.depth, sort))

    def _project(self) -> None:
        f = self.f
        read: dict[Slot, list[Term]] = {}
        for writes in self.writes.values():
            for write in writes:
                read.setdefault(write.slot, []).extend(write.readers)
        for p, slots in enumerate(self.taken):
            if p in self.watched:
                continue
            for n, go in enumerate(slots):
                after = slots[n + 1] if n + 1 < len(slots) else False
                f.add(f.implies(go, f.any(after, *read.get((p, n), ()), *self.marks.get((p, n), ()))))

    # -- results -------------------------------------------------------------------------------------------------------

    def evaluate(self, e: Expr) -> Term:
        """The final value of an expression of `relevant`."""

        def load(variable: Variable, index: Term, _: Term) -> Term:
            if not isinstance(index, str):
                return self._last(variable, index if 0 <= index < variable.cells else 0)
            return symbolic.select(self.f, variable, [self._last(variable, k) for k in range(variable.cells)], index)

        return self._evaluate(e, load, lambda p, place: self.at[p].get(place, False))

    def _evaluate(self, e: Expr, load: symbolic.Load, at: symbolic.Places) -> Term:
        return symbolic.evaluate(self.f, self.program, self.ranges, e, load, at)

    def decode(self, model: Model) -> Witness:
        """The run of a model, ordered by clocks. A slot without a clock follows the previous slot of its process."""
        keyed: list[tuple[int, int, int]] = []
        for p, code in enumerate(self.program.processes):
            clock = -1
            for n in range(len(self.taken[p])):
                if not model.get(f"{code.name} takes {n}", False):
                    break
                if (p, n) in self.clocks:
                    clock = int(model.get(f"clock {p} {n}", 0))
                keyed.append((clock, p, n))
        return Witness(model, [(p, n) for _, p, n in sorted(keyed)], self.f.bits)


class _Loads:
    """Reads by one instruction of a slot."""

    def __init__(self, of: ClockEncoding, slot: Slot, taken: Term, ports: dict[tuple[Variable, int], _Read]) -> None:
        self.of, self.slot, self.taken, self.ports = of, slot, taken, ports
        self.count: dict[Variable, int] = {}
        self.known: dict[tuple[Variable, Term], _Read] = {}

    def __call__(self, variable: Variable, index: Term, when: Term) -> Term:
        of = self.of
        if variable not in of.shared:
            return symbolic.select(of.f, variable, of.cells[variable], index)
        when = of.f.all(self.taken, when)
        if (variable, index) in self.known:
            # The same cell again: a step is atomic, so the value is the same.
            read = self.known[variable, index]
            read.users.append((when, index))
            return read.value
        n = self.count.get(variable, 0)
        self.count[variable] = n + 1
        if (variable, n) not in self.ports:
            name = f"{variable.name} {n} by {self.slot[0]} {self.slot[1]}"
            self.ports[variable, n] = of.read(name, self.slot, variable)
        read = self.known[variable, index] = self.ports[variable, n]
        read.users.append((when, index))
        return read.value

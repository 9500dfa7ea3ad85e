"""The encoding `steps` (Saissi 2019, section 4.5.2): the state after each step, and the process that takes the step.

sel^i is the process that takes step i. A process is sequential, so its program counter determines the instruction.
Steps without effect ("dummy" steps) come first. So a path of k steps represents every path of at most k steps, and the
formula looks for a violation in the last state only.

The projection constraint C_F: every step writes a cell of F, or a later step reads a cell that it writes. "A later step
reads the cell" means: the next step reads it, or a step after that reads it. So one flag per cell and step is enough,
and the constraint grows linearly with the depth. The d_ij of Saissi 2019 grow with its square. Each cell of an array
has its own flag: dependence is conditional on the indices. Program counters are cells too: a step writes the counter of
its process, and the next step of this process reads it.

While a process is in an atomic section of several steps, no other process is selected. Two neighbouring steps are not
exchanged if the first one leaves such a section, or the second one enters one. There are no projections of programs
with such sections.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from plait.bmc.analysis.intervals import bounded
from plait.bmc.analysis.ranges import Ranges, free_range
from plait.bmc.analysis.relevance import Relevance, counted, exclusive, relevance, watched_processes
from plait.bmc.encoding import symbolic
from plait.bmc.encoding.smt import Formula, Term
from plait.bmc.encoding.symbolic import Access, Outcome
from plait.bmc.encoding.witness import Model, Witness, cell_name, input_name
from plait.bmc.execution.interpreter import Cell
from plait.bmc.program.definition import Expr, Instruction, Program, Variable, distances, ended_in, variables_of

Kept = Literal["none", "sliced", "later", "live"]
"""Projections. none: no constraint. sliced: only the static analysis. later: a later step reads what the step writes
(Definition 4, C_F). live: a later step reads it before another step overwrites it."""


class Moment:
    """A state of the path: a term for each cell, and for each location whether the process is there."""

    def __init__(self, cells: dict[Variable, list[Term]], at: list[dict[int, Term]]) -> None:
        self.cells, self.at = cells, at


class _Port:
    """The n-th read or write of an array by the selected instruction. All instructions share its index."""

    def __init__(self) -> None:
        self.users: list[tuple[Term, Term, Term]] = []
        """Conditions, each with an index and (for a write) a value."""


class StepsEncoding:
    """Paths of at most `depth` steps."""

    def __init__(
        self,
        program: Program,
        depth: int,
        ranges: Ranges,
        bits: int | None,
        *,
        relevant: Iterable[Expr] = (),
        projection: Kept = "none",
        ordered: bool = True,
        arbitrary: bool = False,
        exact: bool = False,
    ) -> None:
        self.ranges = ranges
        self.f = Formula(bits)
        self.arbitrary, self.exact = arbitrary, exact
        """Start at any state instead of an initial one, without dummy steps."""
        relevant = list(relevant)
        self.relevant: set[Variable] = {v for e in relevant for v in variables_of(e)}
        self.watched = watched_processes(program, {p for e in relevant for p in ended_in(e)})
        self.exclusive = exclusive(program)
        self.counted = counted(program)
        """The processes whose program counters are read by steps."""
        self.projection = projection = "none" if any(self.exclusive) else projection
        found: Relevance | None = None
        if projection != "none":
            found = relevance(program, ranges, self.relevant, self.watched)
            program = found.program
            if (most := program.longest) is not None:
                depth = min(depth, most)
        self.program, self.depth = program, depth
        self.ordered = ordered and depth > 1
        """Whether independent neighbouring steps are in the order of their process numbers."""
        self.reads: list[dict[Cell, Term]] = []
        self.writes: list[dict[Cell, Term]] = []
        self.running: list[list[Term]] = []
        self.possible = found.possible(depth) if found else []
        self.distances = [distances(code) for code in program.processes]
        self.moments = [self._initial()]
        for i in range(depth):
            self.moments.append(self._step(i))
        if found:
            for p, at in enumerate(self.moments[-1].at):
                self.f.add(self.f.all(*(self.f.not_(at[place]) for place in found.never_last(p, at))))
        if projection in ("later", "live"):
            self._project()
        if self.ordered:
            self._order()

    # -- states --------------------------------------------------------------------------------------------------------

    def _initial(self) -> Moment:
        f = self.f
        cells: dict[Variable, list[Term]] = {}
        for variable in self.program.variables:
            cells[variable] = []
            for k, value in enumerate(variable.initial):
                if value is not None and not self.arbitrary:
                    cells[variable].append(value if isinstance(value, bool) else f.wrap(value))
                    continue
                name = cell_name(variable, k)
                term = f.boolean(name) if variable.kind == "bool" else f.number(name)
                cells[variable].append(term)
                if variable.kind == "int":
                    limits = self.ranges.variables[variable] if self.arbitrary else free_range(variable)
                    if limits is not None and bounded(limits):
                        f.add(symbolic.between(f, term, limits))
        at: list[dict[int, Term]] = []
        for p, code in enumerate(self.program.processes):
            if not self.arbitrary:
                at.append({0: True})
                continue
            places = sorted({*self.distances[p], code.stuck})
            flags = {place: f.boolean(f"{code.name} at {place}") for place in places}
            f.add(f.any(*flags.values()))
            for i, one in enumerate(places):
                f.add(f.all(*(f.any(f.not_(flags[one]), f.not_(flags[two])) for two in places[:i])))
            at.append(dict(flags))
        moment = Moment(cells, at)
        if not self.arbitrary:
            for e in self.program.initial:
                f.add(self.evaluate(e, moment))
        return moment

    def evaluate(self, e: Expr, moment: Moment | None = None) -> Term:
        """The value of an expression in a state; by default in the last one."""
        moment = moment or self.moments[-1]
        return symbolic.evaluate(self.f, self.program, self.ranges, e, _loader(self.f, moment), _places(moment))

    def differs(self, one: Moment, two: Moment) -> Term:
        """Whether two states of the path are different."""
        f = self.f
        found: list[Term] = []
        for variable in self.program.variables:
            for a, b in zip(one.cells[variable], two.cells[variable], strict=True):
                found.append(f.not_(f.same(a, b) if variable.kind == "bool" else f.equal(a, b)))
        for here, there in zip(one.at, two.at, strict=True):
            found += [f.not_(f.same(here.get(t, False), there.get(t, False))) for t in {**here, **there}]
        return f.any(*found)

    def _inside(self, moment: Moment, p: int) -> Term:
        """Whether a process is in an atomic section of several steps."""
        return self.f.any(*(moment.at[p].get(place, False) for place in self.exclusive[p]))

    # -- steps ---------------------------------------------------------------------------------------------------------

    def _step(self, i: int) -> Moment:
        f, before = self.f, self.moments[-1]
        running = self._choose(i, before)
        self.running.append(running)
        reading: dict[tuple[Variable, int], _Port] = {}
        done: list[tuple[Term, Outcome]] = []
        at_next: list[dict[int, Term]] = []
        for p, code in enumerate(self.program.processes):
            moves: dict[int, list[Term]] = {}
            for place, here in before.at[p].items():
                if place >= code.end:
                    continue
                taken = f.named(f.all(running[p], here), "Bool")
                if self.possible and (p, place) not in self.possible[i]:
                    f.add(f.not_(taken))
                    continue
                if taken is False:
                    continue
                step = code.instructions[place]
                inputs = self._inputs(i, p, step, taken)
                load = _Loads(self, i, before, taken, reading)
                outcome = symbolic.run(f, self.program, self.ranges, step, load, inputs, _places(before))
                f.add(f.implies(taken, outcome.enabled))
                done.append((taken, outcome))
                for when, target in outcome.targets:
                    moves.setdefault(target, []).append(f.all(here, when))
            places = dict.fromkeys([*before.at[p], *moves])
            at_next.append({
                t: f.named(f.select(running[p], f.any(*moves.get(t, ())), before.at[p].get(t, False)), "Bool")
                for t in places
            })  # fmt: skip
        reads: dict[Cell, list[Term]] = {}
        writes: dict[Cell, list[Term]] = {}
        for taken, outcome in done:
            for read in outcome.reads:
                if not isinstance(read.at, str):
                    reads.setdefault((read.variable, read.at), []).append(f.all(taken, read.when))
            for p, when in outcome.counters:
                reads.setdefault(p, []).append(f.all(taken, when))
        for (variable, _), port in reading.items():
            self._resolve_read(i, variable, port, before, reads)
        writes.update((p, [running[p]]) for p in self.counted)
        cells = self._written(i, before, done, writes)
        self.reads.append({cell: f.named(f.any(*flags), "Bool") for cell, flags in reads.items()})
        self.writes.append({cell: f.named(f.any(*flags), "Bool") for cell, flags in writes.items()})
        return Moment(cells, at_next)

    def _choose(self, i: int, before: Moment) -> list[Term]:
        """sel^i: for each process, whether it takes step i."""
        f = self.f
        count = len(self.program.processes)
        can = [
            f.any(*(here for place, here in at.items() if place < code.end))
            for code, at in zip(self.program.processes, before.at, strict=True)
        ]
        if count == 1:
            running: list[Term] = [f.boolean(f"sel {i}")]
        else:
            bits = count.bit_length()
            selected = f.vector(f"sel {i}", bits)
            sort = f"(_ BitVec {bits})"
            running = [f.equal(selected, p, sort) for p in range(count)]
            f.add(f.at_most(selected, count, sort))
        inside = [self._inside(before, p) for p in range(count)]
        for p in range(count):
            others = f.any(*(flag for q, flag in enumerate(inside) if q != p))
            f.add(f.implies(running[p], f.all(can[p], f.not_(others))))
        running = [f.named(r, "Bool") if c is not False else False for r, c in zip(running, can, strict=True)]
        if self.exact:
            f.add(f.any(*running))
        elif i:
            f.add(f.implies(f.any(*self.running[-1]), f.any(*running)))
        return running

    def _inputs(self, i: int, p: int, step: Instruction, taken: Term) -> list[Term]:
        f = self.f
        found: list[Term] = []
        for n, domain in enumerate(step.inputs):
            name = input_name(p, i, step.location, n)
            term = f.boolean(name) if domain.kind == "bool" else f.number(name)
            f.add(f.implies(taken, symbolic.domain(f, term, domain)))
            found.append(term)
        return found

    def _resolve_read(
        self, i: int, variable: Variable, port: _Port, before: Moment, reads: dict[Cell, list[Term]]
    ) -> None:
        """A read port has the value of the cell at its index."""
        f = self.f
        value = port.users[0][2]
        index = _selected(f, [(when, at) for when, at, _ in port.users])
        active = f.any(*(when for when, _, _ in port.users))
        sort = None if variable.kind == "bool" else f.sort
        cells = before.cells[variable]
        found = cells[-1]
        for k in reversed(range(variable.cells)):
            hit = f.named(f.equal(index, k), "Bool")
            if k < variable.cells - 1:
                found = f.select(hit, cells[k], found, sort)
            reads.setdefault((variable, k), []).append(f.all(active, hit))
        f.add(f.same(value, found) if sort is None else f.equal(value, found))

    def _written(
        self, i: int, before: Moment, done: list[tuple[Term, Outcome]], writes: dict[Cell, list[Term]]
    ) -> dict[Variable, list[Term]]:
        """The cells after step i."""
        f = self.f
        cells = {variable: list(terms) for variable, terms in before.cells.items()}
        ports: dict[tuple[Variable, int], _Port] = {}
        for taken, outcome in done:
            by_variable: dict[Variable, list[Access]] = {}
            for write in outcome.writes:
                by_variable.setdefault(write.variable, []).append(write)
            for variable, accesses in by_variable.items():
                direct = all(not isinstance(a.at, str) for a in accesses)
                for n, a in enumerate(accesses):
                    when = f.all(taken, a.when)
                    if not direct:
                        ports.setdefault((variable, n), _Port()).users.append((when, a.at, a.value))
                        continue
                    k = int(a.at)
                    if not 0 <= k < variable.cells:
                        continue  # unreachable code: the analysis of ranges found this out
                    sort = None if variable.kind == "bool" else f.sort
                    cells[variable][k] = f.select(when, a.value, cells[variable][k], sort)
                    writes.setdefault((variable, k), []).append(when)
        for (variable, _), port in sorted(ports.items(), key=lambda item: item[0][1]):
            sort = None if variable.kind == "bool" else f.sort
            active = f.any(*(when for when, _, _ in port.users))
            index = _selected(f, [(when, at) for when, at, _ in port.users])
            value = _selected(f, [(when, new) for when, _, new in port.users], sort)
            for k in range(variable.cells):
                hit = f.named(f.all(active, f.equal(index, k)), "Bool")
                cells[variable][k] = f.select(hit, value, cells[variable][k], sort)
                writes.setdefault((variable, k), []).append(hit)
        for variable, terms in cells.items():
            sort = "Bool" if variable.kind == "bool" else f.sort
            cells[variable] = [f.named(term, sort) for term in terms]
            if variable.kind == "int" and variable.size is None and cells[variable] != before.cells[variable]:
                self._lemma(variable, cells[variable][0])
        return cells

    def _lemma(self, variable: Variable, value: Term) -> None:
        """Assert the range of a number, as the analysis found it. The solver need not derive it again."""
        limits = self.ranges.variables[variable]
        if self.f.bits is not None and bounded(limits):
            self.f.add(symbolic.between(self.f, value, limits))

    # -- constraints ---------------------------------------------------------------------------------------------------

    def _project(self) -> None:
        """Add the constraint C_F: every step matters."""
        f = self.f
        needed: dict[Cell, Term] = {
            (v, k): True for v in self.program.variables if v in self.relevant for k in range(v.cells)
        }
        later: list[Term] = [False] * len(self.program.processes)
        for i in reversed(range(self.depth)):
            matters: list[Term] = [f.all(flag, needed.get(cell, False)) for cell, flag in self.writes[i].items()]
            for p, taken in enumerate(self.running[i]):
                matters.append(f.all(taken, p in self.watched or later[p]))
            f.add(f.implies(f.any(*self.running[i]), f.any(*matters)))
            if self.projection == "live":
                for cell, flag in self.writes[i].items():
                    if cell in needed:
                        needed[cell] = f.all(f.not_(flag), needed[cell])
            for cell, flag in self.reads[i].items():
                needed[cell] = f.any(flag, needed.get(cell, False))
            later = [f.named(f.any(a, b), "Bool") for a, b in zip(self.running[i], later, strict=True)]

    def _order(self) -> None:
        """Neighbouring steps of different processes are in the order of their process numbers, or dependent."""
        f = self.f
        for i in range(self.depth - 1):
            clash: list[Term] = []
            for cell, wrote in self.writes[i].items():
                clash.append(f.all(wrote, self.reads[i + 1].get(cell, False)))
                clash.append(f.all(wrote, self.writes[i + 1].get(cell, False)))
            for cell, read in self.reads[i].items():
                clash.append(f.all(read, self.writes[i + 1].get(cell, False)))
            for p, (first, second) in enumerate(zip(self.running[i], self.running[i + 1], strict=True)):
                clash.append(f.all(first, self._inside(self.moments[i], p)))
                clash.append(f.all(second, self._inside(self.moments[i + 2], p)))
            dependent = f.any(*clash)
            for p, first in enumerate(self.running[i]):
                lower = f.any(*self.running[i + 1][:p])
                f.add(f.any(f.not_(f.all(first, lower)), dependent))

    # -- results -------------------------------------------------------------------------------------------------------

    def decode(self, model: Model) -> Witness:
        """The run of a model."""
        return Witness(model, self._schedule(model), self.f.bits)

    def _schedule(self, model: Model) -> list[tuple[int, int]]:
        found = []
        count = len(self.program.processes)
        for i in range(self.depth):
            chosen = model.get(f"sel {i}", count)
            p = (0 if chosen is True else count) if isinstance(chosen, bool) else chosen
            if p < count:
                found.append((p, i))
        return found


def _selected(f: Formula, options: list[tuple[Term, Term]], sort: str | None = "number") -> Term:
    """The value of the option whose condition holds (any value, if none does)."""
    kind = f.sort if sort == "number" else sort
    value = options[-1][1]
    for when, option in reversed(options[:-1]):
        value = f.select(when, option, value, kind)
    return f.named(value, kind or "Bool")


def _loader(f: Formula, moment: Moment) -> symbolic.Load:
    """Read a state."""
    return lambda variable, index, _: symbolic.select(f, variable, moment.cells[variable], index)


def _places(moment: Moment) -> symbolic.Places:
    """The locations of processes in a state."""
    return lambda p, place: moment.at[p].get(place, False)


class _Loads:
    """Reads of a state by one instruction: directly at known indices, else through ports."""

    def __init__(
        self, of: StepsEncoding, i: int, moment: Moment, taken: Term, ports: dict[tuple[Variable, int], _Port]
    ) -> None:
        self.of, self.i, self.moment, self.taken, self.ports = of, i, moment, taken, ports
        self.count: dict[Variable, int] = {}

    def __call__(self, variable: Variable, index: Term, when: Term) -> Term:
        f = self.of.f
        if not isinstance(index, str):
            known = 0 <= index < variable.cells
            return self.moment.cells[variable][index if known else 0]
        n = self.count.get(variable, 0)
        self.count[variable] = n + 1
        key = (variable, n)
        if key not in self.ports:
            self.ports[key] = _Port()
            name = f"read {n} of {variable.name}@{self.i}"
            value = f.boolean(name) if variable.kind == "bool" else f.number(name)
        else:
            value = self.ports[key].users[0][2]  # type: ignore[assignment]
        self.ports[key].users.append((f.all(self.taken, when), index, value))
        return value

"""Temporal properties: look for a fair run that violates one, in the graph of all states.

The negation of the formula becomes an automaton (`plait.check.live.buchi`). The engine looks for a fair run of its
product with the graph (`rust/src/live/product.rs`). Before such a run is reported, it is executed again, and the
formula is evaluated on it by the definition of the operators.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from plait._native import Counters, SearchReport, Transition
from plait.check.explain.lifting import lifted
from plait.check.explain.tidy import MOST_STEPS
from plait.check.explain.tracing import Tracer
from plait.check.live.buchi import Automaton, automaton
from plait.check.live.lasso import RECOVERY, TICK, EngineFairness, Lasso, closes, differences, is_fair, tidied_lasso
from plait.check.options import Options
from plait.check.runner import Runner
from plait.kernel.deadline import Deadline
from plait.kernel.errors import Argument, ModelError
from plait.kernel.trace import Clause, Trace, Why
from plait.model.clock import tick
from plait.model.fairness import Fairness
from plait.model.message import Message
from plait.model.process import Recovery
from plait.model.properties import Property
from plait.model.refinement import Refinement
from plait.model.system import System, plays, with_properties
from plait.model.temporal import (
    And,
    Atom,
    Constant,
    Finally,
    Formula,
    Globally,
    Implies,
    Next,
    Not,
    Or,
    Release,
    Temporal,
    Until,
    WeakUntil,
)

if TYPE_CHECKING:
    from plait.check.live.refinement import Refining

MOST_PREDICATES = 63
"""The maximum for all temporal properties together."""
MOST_SETS = 63
"""The maximum of acceptance sets of an automaton."""
MOST_ROUNDS = 16
"""A loop of relevant parts goes round at most so often until the full state comes back."""


def flattened(system: System, properties: Sequence[Property], more: Sequence[Atom] = ()) -> System:
    """The System with the properties that the engine evaluates in a state.

    Each temporal property is replaced by its predicates. The conditions of the System come before these.
    """
    plain = [p for p in properties if not isinstance(p, Temporal | Refinement)]
    plain += [one for one in (system.initially, system.within) if one is not None]
    atoms = [Property(atom.name, "predicate", atom.predicate) for atom in predicates(properties, more)]
    return with_properties(system, plain + atoms)


def predicates(properties: Sequence[Property], more: Sequence[Atom] = ()) -> list[Atom]:
    """The predicates of the temporal properties, and more, without duplicates."""
    atoms = (a for p in properties if isinstance(p, Temporal) for a in p.formula.atoms())
    return list(dict.fromkeys([*atoms, *more]))


class Findings(NamedTuple):
    """The result of a search for fair runs."""

    traces: list[Trace | None]
    """For each temporal property, a run that violates it, or None."""
    report: SearchReport
    """The report of the engine about states."""
    runner: Runner
    """Where the states of the report are."""
    refined: Sequence[Trace | None] = ()
    """For each refinement, a run that violates it, or None."""


def automata(properties: Sequence[Temporal], more: Sequence[Atom] = ()) -> list[Automaton]:
    """For each property, an automaton for the runs that violate it. This takes long for large formulas."""
    atoms = predicates(properties, more)
    if len(atoms) > MOST_PREDICATES:
        raise ModelError(
            f"the temporal properties have {len(atoms)} predicates, more than {MOST_PREDICATES}",
            hint=("check some of them at a time with ", Argument("properties")),
        )
    made = [automaton(Not(p.formula), atoms) for p in properties]
    for p, one in zip(properties, made, strict=True):
        if one.sets > MOST_SETS:
            raise ModelError(
                f"{p.name} is too large: its automaton has {one.sets} acceptance sets, more than {MOST_SETS}",
                hint="split it into several properties",
            )
    return made


def search(
    runner: Runner,
    properties: Sequence[Temporal],
    found_by: Sequence[Automaton],
    more: Sequence[Atom],
    options: Options,
    clock: Deadline,
    *,
    whole: Callable[[], Runner] | None = None,
    safety: bool = False,
    por: bool = False,
    refining: Sequence[Refining] = (),
    progress: Callable[[Counters], None] | None = None,
) -> Findings:
    """Look for a fair run that violates each of the properties. Evaluate `more` predicates in all states.

    `refining` are refinements to check on the same graph. Reductions are not applied then.

    `found_by` are the automata of the properties. In the runner's System, they are all flattened. `whole` makes a runner
    of whole states, in case relevant parts are not enough. With `safety`, properties of states are checked in the same
    search; a violation ends it. With `por`, partial-order reduction is applied.
    """
    system, atoms = runner.system, predicates(properties, more)
    first = len(system.properties) - len(atoms)
    found = runner.engine.liveness(
        dataclasses.replace(options, timeout=clock.left),
        predicates=[first + number for number in range(len(atoms))],
        automata=[
            (one, engine_fairness(system, assumed(system, p))) for p, one in zip(properties, found_by, strict=True)
        ],
        progress=progress,
        refinements=[(one, engine_fairness(system, system.fairness)) for one in refining],
        safety=safety,
        por=por,
    )
    if runner.decomposition and found.silent:
        # A step that changes only auxiliary fields can repeat forever. The graph of relevant parts does not show this.
        full = whole() if whole else Runner(system)
        return search(full, properties, found_by, more, options, clock, por=por, progress=progress)
    if por and found.stays and any(assumed(system, p) for p in properties):
        # A step that leaves its process as it is may be disabled by others. The proof does not cover this.
        return search(runner, properties, found_by, more, options, clock, whole=whole, progress=progress)
    traces = [
        None if lasso is None else _trace(runner, p, atoms, first, *lasso, clock, tidy=not options.raw)
        for p, lasso in zip(properties, found.lassos, strict=True)
    ]
    refined = [
        None if violation is None else _refinement_trace(runner, one, violation[0], *violation[1])
        for one, violation in zip(refining, found.refined, strict=True)
    ]
    return Findings(traces, found.states, runner, refined)


def _refinement_trace(
    runner: Runner,
    refining: Refining,
    kind: str,
    start: Sequence[int],
    stem: Sequence[Transition],
    cycle: Sequence[Transition],
) -> Trace:
    """The run that was found, executed again and judged again."""
    tracer = Tracer(runner, start)
    events = [tracer.step(transition) for transition in (*stem, *cycle)]
    lasso = Lasso(tracer, events, len(stem) if cycle else None)
    if refining.violated_by(lasso, engine_fairness(runner.system, runner.system.fairness)) != kind:
        raise RuntimeError(f"the run that was found for {refining.prop.name} does not violate it")
    return refining.trace(lasso, kind)


def assumed(system: System, prop: Temporal) -> tuple[Fairness, ...]:
    """The fairness assumptions for a property."""
    for one in prop.fairness:
        if any(_recovering(system, one, i) and not system.returning[i] for i in range(len(system.classes))):
            raise ModelError(
                f"{prop.name}: {one} cannot be assumed for a single property: it decides which states are terminal",
                hint=f"assume it for the whole model: System(…, fairness=[{one}])",
            )
    return tuple(dict.fromkeys((*system.fairness, *prop.fairness)))


def _recovering(system: System, one: Fairness, position: int) -> bool:
    """Whether an assumption says that this process recovers."""
    role = one.role
    return one.recovers and role is not None and plays(system.classes[position], role) and system.may_recover(position)


def engine_fairness(system: System, given: Sequence[Fairness]) -> list[EngineFairness]:
    """The assumptions for the engine."""
    made: list[EngineFairness] = []
    for one in given:
        places: list[list[tuple[int, int]]] = []
        if one.of is tick:
            places = [[(position, TICK)] for position in system.ticking]
        for position, cls in enumerate(system.classes):
            if one.of is not tick and (one.role is None or plays(cls, one.role)):
                handlers = cls.__plait_handlers__
                own = [(position, i) for i, handler in enumerate(handlers) if one.concerns(cls, handler)]
                places.append(own + [(position, RECOVERY)] * _recovering(system, one, position))
        if one.demand == "loss" and not system.network.lossy:
            raise ModelError(
                f"fairness {one}: the network ({system.network}) loses no messages",
                hint="leave the assumption out, or declare the losses, for example network=unordered(lossy=True)",
            )
        if isinstance(one.of, Recovery) and not any(places):
            raise ModelError(
                f"fairness {one}: no {one.of.role.__name__} of the System may crash and recover",
                hint="declare the fault, for example faults=[crash_recovery(Server)], or leave the assumption out",
            )
        if not any(places):
            raise ModelError(
                f"fairness {one}: no process of the System has such steps",
                hint="name a role, a handler or a message of this System",
            )
        if one.by_message:
            heads = tuple(_head(cls) for cls in one.messages)
            made.append(EngineFairness(one.demand, [place for some in places for place in some], heads))
        else:
            made += [EngineFairness(one.demand, some, None) for some in places if some]
    return made


def _head(cls: type[Message]) -> bytes:
    """The first bytes of the content of each message of exactly this class (`rust/src/python/canon.rs`)."""
    name = f"{cls.__module__}.{cls.__qualname__}".encode()
    length, rest = bytearray(), len(name)
    while rest >= 128:
        length.append(rest & 127 | 128)
        rest >>= 7
    return b"D" + bytes([*length, rest]) + name


def _trace(
    runner: Runner,
    prop: Temporal,
    atoms: Sequence[Atom],
    first: int,
    start: Sequence[int],
    stem: Sequence[Any],
    cycle: Sequence[Any],
    clock: Deadline,
    *,
    tidy: bool,
) -> Trace:
    if runner.decomposition:
        lasso = _in_full_states(runner, start, stem, cycle)
    else:
        tracer = Tracer(runner, start)
        events = [tracer.step(transition) for transition in (*stem, *cycle)]
        if tracer.visited[-1] != tracer.visited[len(stem)]:
            raise RuntimeError("a loop that was found does not return to its first state")
        lasso = Lasso(tracer, events, len(stem) if cycle else None)
    note = None

    def violates(run: Lasso) -> bool:
        return violated(run.tracer.runner, prop.formula, first, atoms, run.tracer.visited, run.loop)

    if not violates(lasso):
        raise RuntimeError(f"the run that was found for {prop.name} satisfies {prop.formula}")
    if tidy:
        fairness = engine_fairness(runner.system, assumed(runner.system, prop))
        with clock.optional():
            lasso, note = tidied_lasso(lasso, lambda run: closes(run) and violates(run) and is_fair(run, fairness))
    if lasso.loop is None:
        end = "the run ends in a state without possible steps"
        if not lasso.tracer.runner.is_terminal(lasso.tracer.state):
            end = "in the last state, time passes for ever and no process takes a step"
    else:
        end = f"steps {lasso.stem + 1} to {len(lasso.events)} repeat for ever{_apart_from(lasso)}"
    explanation = f"{end}, and {prop.formula} is false on this run"
    clauses = [
        Clause(atom.name, _when(lasso, first + number))
        for number, atom in enumerate(atoms)
        if atom in prop.formula.atoms()
    ]
    reasons = Why(clauses, [], [])
    return lasso.tracer.trace(lasso.events, prop.name, explanation, loop=lasso.loop, tidied=note, why=reasons)


def _in_full_states(runner: Runner, start: Sequence[int], stem: Sequence[Any], cycle: Sequence[Any]) -> Lasso:
    """A lasso of relevant parts, taken on the full model. Its loop goes round until the full state comes back.

    If the full state does not come back within some rounds, the loop is one round, which repeats all relevant parts.
    """
    rounds = 1
    while cycle:
        tracer, events = lifted(runner, start, [*stem, *list(cycle) * rounds])
        starts = [tuple(state) for state in tracer.visited[len(stem) :: len(cycle)]]
        first = starts.index(starts[-1])
        if first < rounds:
            return Lasso(tracer, events, len(stem) + first * len(cycle))
        if rounds == MOST_ROUNDS or len(stem) + (rounds + 1) * len(cycle) > MOST_STEPS:
            break
        rounds += 1
    return Lasso(*lifted(runner, start, [*stem, *cycle]), len(stem) if cycle else None)


def _apart_from(lasso: Lasso) -> str:
    """What the loop does not repeat, as text."""
    system = lasso.tracer.system
    names = [*lasso.tracer.names, *(repr(cell.shared) for cell in system.cells)]
    fields = [f"{names[index]}.{name}" for index, name in differences(lasso) or ()]
    return f" (apart from {', '.join(fields)}, on which nothing else depends)" if fields else ""


def _when(lasso: Lasso, number: int) -> str:
    """After which steps of a run a predicate is true, as text. The last step of a loop counts too."""
    states = lasso.tracer.visited
    true = [i for i, state in enumerate(states) if lasso.tracer.runner.holds(number, state)]
    if len(true) in (0, len(states)):
        return "never true" if not true else "always true"
    spans: list[list[int]] = []
    for i in true:
        if spans and spans[-1][1] == i - 1:
            spans[-1][1] = i
        else:
            spans.append([i, i])
    words = [str(a) if a == b else f"{a} to {b}" for a, b in spans]
    return f"true only after step {', '.join(words)} (0 is the initial state)"


def violated(
    runner: Runner,
    formula: Formula,
    first: int,
    atoms: Sequence[Atom],
    visited: Sequence[Sequence[int]],
    loop: int | None,
) -> bool:
    """Whether a run through these states violates the formula. With a loop, the last state is its first state."""
    states = visited if loop is None else visited[:-1]
    values = {atom: [bool(runner.holds(first + i, state)) for state in states] for i, atom in enumerate(atoms)}
    after = [*range(1, len(states)), len(states) - 1 if loop is None else loop]
    return not evaluated(formula, values, after)[0]


def evaluated(formula: Formula, values: dict[Atom, list[bool]], after: list[int]) -> list[bool]:
    """The value of a formula at each position of a run, by the definition of the operators."""

    def of(part: Formula) -> list[bool]:
        return evaluated(part, values, after)

    def settled(start: bool, now: Callable[[int, bool], bool]) -> list[bool]:
        """The least or greatest fixed point: values at each position that agree with the values after it."""
        found = [start] * len(after)
        while True:
            better = [now(i, found[j]) for i, j in enumerate(after)]
            if better == found:
                return found
            found = better

    match formula:
        case Constant(value):
            return [value] * len(after)
        case Atom():
            return values[formula]
        case Not():
            return [not x for x in of(formula.of)]
        case Next():
            there = of(formula.of)
            return [there[j] for j in after]
        case Finally():
            return of(Until(Constant(True), formula.of))
        case Globally():
            return of(Release(Constant(False), formula.of))
        case WeakUntil():
            return of(Or(Until(formula.left, formula.right), Globally(formula.left)))
        case And() | Or() | Implies() | Until() | Release():
            left, right = of(formula.left), of(formula.right)
            match formula:
                case And():
                    return [a and b for a, b in zip(left, right, strict=True)]
                case Or():
                    return [a or b for a, b in zip(left, right, strict=True)]
                case Implies():
                    return [not a or b for a, b in zip(left, right, strict=True)]
                case Until():
                    return settled(False, lambda i, then: right[i] or (left[i] and then))
                case Release():
                    return settled(True, lambda i, then: right[i] and (left[i] or then))
    raise TypeError(f"{formula!r} is not a formula")

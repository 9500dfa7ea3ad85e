"""What each property says at the end of a run: it holds, is violated, was satisfied, or is still open."""

from __future__ import annotations

from typing import Literal

import msgspec

from plait.check.explain.why import clauses, view_of
from plait.check.live.search import evaluated, predicates
from plait.check.runner import Runner
from plait.check.walk.progression import progressed
from plait.check.walk.run import Stop
from plait.kernel.trace import for_whom
from plait.model.properties import ASSERTIONS, NO_EXCEPTIONS, Property
from plait.model.system import System
from plait.model.temporal import Atom, Constant, Formula, Temporal

Standing = Literal["holds", "violated", "open", "satisfied"]


class PropertyStatus(msgspec.Struct, frozen=True):
    """A property at the end of a run."""

    name: str
    kind: str
    status: Standing
    detail: str = ""


def statuses(runner: Runner, system: System, stop: Stop) -> list[PropertyStatus]:
    """The properties of a System at the end of a run. The runner has the flattened System."""
    numbers = {prop.name: number for number, prop in enumerate(runner.system.properties)}
    found = []
    for prop in system.properties:
        if isinstance(prop, Temporal):
            found.append(_temporal(runner, system, prop, stop))
        elif prop.name in numbers:
            found.append(_of_state(runner, prop, numbers[prop.name], stop))
        else:
            found.append(PropertyStatus(prop.name, prop.kind, "open", "a search checks it"))
    if stop.transition is not None and stop.transition.failure is not None:
        failure = stop.transition.failure
        name = NO_EXCEPTIONS if failure.exception is not None else ASSERTIONS
        found.append(PropertyStatus(name, "built-in", "violated", failure.message))
    return found


def _of_state(runner: Runner, prop: Property, number: int, stop: Stop) -> PropertyStatus:
    if prop.kind == "reachable":
        step = _reached(runner, prop, number, stop)
        if step is None:
            return PropertyStatus(prop.name, prop.kind, "open", "not true so far")
        return PropertyStatus(prop.name, prop.kind, "satisfied", f"true after step {step}")
    if prop.kind == "final" and not runner.is_terminal(stop.state):
        return PropertyStatus(prop.name, prop.kind, "open", "a step is possible: only terminal states count")
    holds = runner.holds(number, stop.state)
    if holds:
        return PropertyStatus(prop.name, prop.kind, "holds")
    if holds is None:
        failure = runner.tabulation.property_failure(number, *runner.engine.components(stop.state)[:3])
        return PropertyStatus(
            prop.name, prop.kind, "violated", failure.message if failure else "it raises an exception"
        )
    view = view_of(runner, stop.state)
    whom = []
    if prop.quantified is not None:
        whom = [[repr(p.id) for p in chosen] for chosen in prop.quantified.violators(view)]
    said = [f"{clause.text} = {clause.value}" if clause.value else clause.text for clause in clauses(prop, view)]
    detail = "; ".join([*([f"false{for_whom(whom)}"] if whom else []), *said])
    return PropertyStatus(prop.name, prop.kind, "violated", detail)


def _reached(runner: Runner, prop: Property, number: int, stop: Stop) -> int | None:
    """The first step of a run after which a property is true."""
    waiting, at = _unknown(prop, stop)
    step: int | None = None if at is None else at.open[prop.name]  # type: ignore[assignment]
    for one in reversed(waiting):
        if step is None and runner.holds(number, one.state):
            step = one.number
        one.open[prop.name] = step
    return step


def _unknown(prop: Property, stop: Stop) -> tuple[list[Stop], Stop | None]:
    """The last states of a run for which nothing is known of a property, backwards, and the state before them."""
    waiting = []
    at: Stop | None = stop
    while at is not None and prop.name not in at.open:
        waiting.append(at)
        at = at.before
    return waiting, at


def _temporal(runner: Runner, system: System, prop: Temporal, stop: Stop) -> PropertyStatus:
    atoms = predicates(system.properties)
    first = len(runner.system.properties) - len(atoms)
    places = {atom: first + number for number, atom in enumerate(atoms)}

    def holds(state: Stop, atom: Atom) -> bool:
        return bool(runner.holds(places[atom], state.state))

    waiting, at = _unknown(prop, stop)
    left: Formula = prop.formula if at is None else at.open[prop.name]  # type: ignore[assignment]
    for one in reversed(waiting):
        left = one.open[prop.name] = progressed(left, lambda atom, one=one: holds(one, atom))  # type: ignore[misc]
    if isinstance(left, Constant):
        return PropertyStatus(prop.name, prop.kind, "satisfied" if left.value else "violated", str(prop.formula))
    detail = f"still to come: {left}"
    if runner.may_end(stop.state):
        values = {atom: [holds(stop, atom)] for atom in atoms}
        detail += f"; a run that ends here {'satisfies' if evaluated(left, values, [0])[0] else 'violates'} it"
    return PropertyStatus(prop.name, prop.kind, "open", detail)

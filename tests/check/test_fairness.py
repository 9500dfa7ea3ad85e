"""Fairness of recoveries, of everybody and of losses; and of whole processes with partial-order reduction."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plait import (
    Message,
    ModelError,
    Process,
    System,
    UsageError,
    action,
    always_eventually,
    check,
    crash_recovery,
    crash_stop,
    deadlock_free,
    duplicating,
    durable,
    eventually,
    everybody,
    fair_loss,
    fifo,
    final,
    leads_to,
    on,
    recovery,
    strong,
    unordered,
    weak,
)
from plait.check.explain.replay import replay
from plait.check.reduce import plan
from plait.kernel.errors import TraceError
from tests.oracle.cyclic_systems import drawn, formulas
from tests.oracle.explorer import explore
from tests.support.liveness import Flip, Worker, compare, done, verdict


class Clerk(Process):
    """Files three papers; what is filed survives a crash."""

    filed: int = durable(0)

    @action(when=lambda self: self.filed < 3)
    def file(self) -> None:
        self.filed += 1


@eventually
def all_filed(s: Any) -> bool:
    return bool(s[Clerk][0].filed == 3)


@final
def filed_in_the_end(s: Any) -> bool:
    return bool(s[Clerk][0].filed == 3)


def office(*fairness: Any, crashes: int = 2, **options: Any) -> System:
    return System([Clerk()], faults=[crash_recovery(Clerk, budget=crashes)], fairness=fairness, **options)


# -- recoveries -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fairness", [weak(recovery(Clerk)), strong(recovery(Process)), weak(everybody)], ids=str)
def test_work_is_done_after_crashes_if_processes_recover(fairness: Any) -> None:
    properties = [all_filed, filed_in_the_end, deadlock_free(unless=lambda s: s[Clerk][0].filed == 3)]
    assert check(office(properties=properties)).status == "violated"  # it may stay down
    assert check(office(weak(Process), properties=[all_filed])).status == "violated"
    result = check(office(fairness, properties=properties))
    assert result.status == "holds"
    truth = explore(office(fairness, properties=properties))
    assert (result.statistics.states, result.statistics.terminal_states) == (truth.states, truth.terminal)
    assert truth.terminal == 3  # up and done, after no, one or two crashes


@pytest.mark.parametrize("search", ["bfs", "dfs", "stateless", "random"])
def test_a_process_that_will_recover_is_not_terminal(search: Any) -> None:
    options = {"walks": 30} if search == "random" else {}
    system = office(weak(recovery(Clerk)), properties=[filed_in_the_end])
    assert check(system, search=search, **options).status != "violated"
    assert check(office(properties=[filed_in_the_end]), search=search, **options).status == "violated"


@pytest.mark.parametrize("reduce", ["por", "dpor", "decomposition"])
def test_with_reductions_it_is_not_terminal_either(reduce: str) -> None:
    search: Any = "stateless" if reduce == "dpor" else "bfs"
    system = office(weak(everybody), properties=[filed_in_the_end])
    assert check(system, search=search, reduce="auto").status == "holds"


def test_after_a_crash_it_comes_back() -> None:
    down_to_up = leads_to(lambda s: s[Clerk][0].crashed, lambda s: not s[Clerk][0].crashed, name="comes back")
    assert check(office(properties=[down_to_up])).status == "violated"
    assert check(office(weak(recovery(Clerk)), properties=[down_to_up])).status == "holds"


def test_a_loop_of_others_does_not_keep_it_down() -> None:
    def busy(*fairness: Any) -> System:
        faults = [crash_recovery(Clerk)]
        return System([Clerk(), Flip()], faults=faults, fairness=fairness, properties=[all_filed])

    result = check(busy(weak(Process)))
    assert result.status == "violated"
    assert result.trace is not None
    assert check(busy(weak(everybody))).status == "holds"
    with pytest.raises(TraceError, match=r"weak\(everybody\): Clerk0 recover is enabled in all states of the loop"):
        list(replay(busy(weak(everybody)), result.trace))


def test_a_recovery_of_one_property_is_refused() -> None:
    one = eventually(all_filed.formula.of, name="one", fairness=[weak(recovery(Clerk))])
    with pytest.raises(ModelError, match="it decides which states are terminal"):
        check(office(properties=[one]))
    assert check(office(weak(everybody), properties=[one])).status == "holds"
    calm = eventually(done, fairness=[weak(everybody)])
    assert check(System([Flip(), Worker()], properties=[calm])).status == "holds"


def test_bad_input() -> None:
    with pytest.raises(ModelError, match="is not about a Process class"):
        recovery(Message)  # type: ignore[call-overload]
    with pytest.raises(ModelError, match="expected a Message class"):
        fair_loss(Clerk)
    with pytest.raises(ModelError, match="no Clerk of the System may crash and recover"):
        check(System([Clerk()], faults=[crash_stop(Clerk)], properties=[all_filed], fairness=[weak(recovery(Clerk))]))
    with pytest.raises(ModelError, match="loses no messages"):
        check(office(fair_loss(Message), properties=[all_filed]))


# -- losses -----------------------------------------------------------------------------------------------------------


class Knock(Message):
    """Is sent again and again."""


class Guest(Process):
    """Knocks for ever."""

    @action
    def knock(self) -> None:
        self.send(Host.pid(0), Knock())


class Host(Process):
    """Turns away and back, and hears a knock only while it listens."""

    listens: bool = False
    heard: bool = False

    @action
    def turn(self) -> None:
        self.listens = not self.listens

    @on(Knock, where=lambda self, m: self.listens)
    def hear(self, m: Knock) -> None:
        self.heard = True


@eventually
def heard(s: Any) -> bool:
    return bool(s[Host][0].heard)


def visit(*fairness: Any, lossy: bool = True) -> System:
    return System([Guest(), Host()], network=duplicating(lossy=lossy), fairness=fairness, properties=[heard])


def test_a_message_that_is_sent_again_and_again_arrives() -> None:
    """Also if it is lost whenever the host listens: then strong fairness does not help."""
    assert check(visit(weak(everybody), strong(Message))).status == "violated"
    lost = check(visit(weak(everybody)))
    assert lost.trace is not None
    with pytest.raises(TraceError, match=r"fair_loss\(Knock\): Knock\(\) from Guest0 to Host0 is lost again and again"):
        list(replay(visit(weak(everybody), fair_loss(Knock)), lost.trace))
    # Not lost for ever, it is pending while the host listens again and again.
    assert check(visit(weak(everybody), fair_loss(Message))).status == "violated"  # the host may only turn
    assert check(visit(weak(everybody), fair_loss(Message), strong(Host.hear))).status == "holds"
    assert check(visit(weak(everybody), strong(Host.hear))).status == "violated"


def test_losses_are_never_assumed_and_a_budget_of_them_is_fair() -> None:
    system = System(
        [Guest(), Host()],
        network=duplicating(losses=1),
        properties=[heard],
        fairness=[weak(everybody), fair_loss(Message), strong(Host.hear)],
    )
    assert check(system).status == "holds"


# -- partial-order reduction under fairness -----------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_fair_runs_survive_the_reduction(data: st.DataObject) -> None:
    made = data.draw(drawn(limit=60, counts=(2, 2, 3), networks=("unordered", "unordered", "fifo", "set"), fairness=()))
    made.system.fairness = (data.draw(st.sampled_from([weak, strong]))(everybody),)
    formula = data.draw(formulas(made.atoms, following=False))
    expected = verdict(made, formula).status
    found = verdict(made, formula, reduce="por")
    assert found.status == expected
    if found.trace is not None:
        assert len(list(replay(made.system, found.trace))) == len(found.trace)


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_fair_reduced_runs_on_all_short_lassos(data: st.DataObject) -> None:
    made = data.draw(drawn(limit=12, counts=(2, 3), networks=("unordered", "fifo"), fairness=()))
    made.system.fairness = (weak(everybody),)
    compare(made, data.draw(formulas(made.atoms, following=False)), length=5, reduce="por")


class Stair(Process):
    """Goes up four steps, and then walks between the last two for ever."""

    step: int = 0

    @action
    def walk(self) -> None:
        self.step += 1 if self.step < 4 else -1


def house(*fairness: Any, **options: Any) -> System:
    return System([Stair(), Stair(), Flip(), Worker()], properties=[eventually(done)], fairness=fairness, **options)


def test_the_reduction_leaves_states_out_and_keeps_the_verdict() -> None:
    result = check(house(weak(everybody)), reduce="por")
    assert result.status == "holds"
    assert 0 < result.statistics.graph_states < check(house(weak(everybody))).statistics.states
    never = always_eventually(lambda s: s[Flip][0].up and s[Worker][0].done and False, name="never")
    system = house(weak(everybody))
    system.properties = [never]
    assert check(system, reduce="por").status == "violated"


class Bell(Process):
    """Rings at Door, for ever."""

    on_: bool = False

    @action
    def ring(self) -> None:
        self.on_ = not self.on_


class Door(Process):
    """Opens when it hears the Postman."""

    open: bool = False

    @on(Knock)
    def answer(self, m: Knock) -> None:
        self.open = True


class Postman(Process):
    """Knocks once, if it comes at all."""

    came: bool = False

    @action(when=lambda self: not self.came)
    def come(self) -> None:
        self.came = True
        self.send(Door.pid(0), Knock())


def test_if_not_all_are_fair_the_reduction_would_be_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """A postman need not come. The reduction may let it come first, and then a fair door opens in each run."""
    never_open = eventually(lambda s: s[Door][0].open, name="open")
    system = System([Postman(), Door(), Bell()], properties=[never_open], fairness=[weak(Door), weak(Bell)])
    assert check(system).status == "violated"
    with pytest.raises(UsageError, match="no fairness of Postman0"):
        check(system, reduce="por")
    monkeypatch.setattr(plan, "_needs_fair_order", lambda *_: None)
    assert check(system, reduce="por").status == "holds"  # wrong: the refusal is needed


@pytest.mark.parametrize(
    ("fairness", "options", "reason"),
    [
        ([weak(Flip.flip)], {}, r"weak\(Flip.flip\), .* it keeps fairness of whole processes only"),
        ([weak(everybody), fair_loss(Message)], {"network": unordered(lossy=True)}, r"fair_loss\(Message\)"),
        ([weak(everybody)], {"network": fifo(lossy=True)}, "a network that loses any number of messages"),
        ([weak(everybody)], {"spare": {Worker: 1}}, "in a system with spare slots"),
        ([weak(everybody)], {"network": fifo(capacity=2)}, "on a network with a capacity"),
        ([weak(Flip)], {}, r"weak\(Flip\), but no fairness of Guest0"),
    ],
)
def test_other_fairness_is_refused_with_the_reason(fairness: Any, options: Any, reason: str) -> None:
    system = System([Guest(), Host(), Flip(), Worker()], properties=[eventually(done)], fairness=fairness, **options)
    with pytest.raises(UsageError, match=reason):
        check(system, reduce="por")


def test_a_step_that_leaves_its_process_as_it_is_switches_the_reduction_off() -> None:
    """Others can disable it, which the proof does not cover. Both searches have all states."""
    system = System([Guest(), Host(), Stair()], network=duplicating(), properties=[heard], fairness=[weak(everybody)])
    assert check(system, reduce="por").statistics.graph_states == check(system).statistics.states

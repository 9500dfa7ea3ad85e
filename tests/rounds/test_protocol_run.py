"""From a run of the sequential program to the steps of the protocol: typed values, in the order of the rounds."""

from __future__ import annotations

import pytest

from plait import check
from plait.check.explain.execute import execute, execution
from plait.kernel.step import Step, steps_of
from plait.protocols.distal_paxos import distal_paxos
from plait.rounds.program.step import ProtocolStep
from plait.rounds.protocol_run import protocol_steps, with_marks
from plait.rounds.sequential import program_of


@pytest.mark.slow
def test_the_choices_of_the_program_are_steps_of_the_protocol() -> None:
    protocol = distal_paxos(faulty="printed", ballots=2)
    sequential = program_of(protocol, phases=2).make()
    trace = check(sequential, properties=["agreement"]).trace
    assert trace is not None
    chosen = [c for choices in execution(sequential, steps_of(trace)).choices() for c in choices]
    taken = [c for c in chosen if isinstance(c, ProtocolStep)]
    assert taken
    steps = protocol_steps(sequential, trace)
    assert sorted(s.label for s in steps) == sorted(c.handler for c in taken)
    assert [s.place for s in steps] == sorted(s.place for s in steps), "in the order of the rounds"
    run = execute(protocol, steps, "agreement")
    assert [event.label for event in run.events] == [step.label for step in steps]
    assert steps_of(run) == [Step(s.lane, s.label, s.kind, s.consumed, s.choices) for s in steps]
    marks = with_marks(protocol, run, steps).marks
    assert marks[0].label == "before phase 1" or marks[0].label.startswith("phase 1")
    assert [mark.before for mark in marks] == sorted(mark.before for mark in marks)


def test_a_crash_consumes_nothing() -> None:
    assert ProtocolStep(3, 1, "crash", (), (0,)).taken_by("Peer0") == Step("Peer0", "crash", "crash", place=3)

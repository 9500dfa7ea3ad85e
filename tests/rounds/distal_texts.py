"""Distal texts of several tests, and what a text means as the oracle finds it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import plait.cli.main  # noqa: F401 commands register the readers of .distal files
from plait import System
from plait.rounds.distal.module import module_of
from tests.oracle.explorer import explore
from tests.oracle.relation import make

PROTOCOLS = Path(module_of.__code__.co_filename).parents[2] / "protocols"
SHIPPED = sorted(file.stem for file in PROTOCOLS.glob("*.distal"))
"""The protocols that come with Plait."""

FIGURE_1 = """\
type Prepare = struct { phase int ballot; }
type Ack = struct { phase int ballot; int last; [text] log; }
type Propose = struct { phase int ballot; [text] log; }
type Promise = struct { phase int ballot; [text] log; }

init
  ballot = 0; log = ε;
  if primary(ballot+1) then
    ballot = ballot+1;
    m = Prepare(ballot);                  ► Prepare
    send m to ALL;
while true do
  upon Prepare with m.ballot > ballot do
    last = ballot;
    ballot = m.ballot;
    promised = false;
    primary = m.sender;
    m = Ack(ballot, last, log);           ► Ack
    send m to primary;
  upon Ack with m.ballot = ballot times n/2 do
    log = longest_log(ballot);            ► Ack
    log.add(newCommand());
    m = Propose(ballot, log);             ► Propose
    send m to ALL;
  upon Propose with m.ballot ≥ ballot ∧ ¬promised do
    ballot = m.ballot;                    ► Propose
    log = m.log;
    //Bugfix: last = ballot;
    m = Promise(ballot,log);              ► Promise
    send m to ALL;
  upon Promise with m.ballot ≥ ballot ∧ m.log = log times n/2 do
    ballot = m.ballot;                    ► Promise
    log = m.log;
    promised = true;
    output(log);
    if primary(ballot+1) then
      ballot = ballot+1;                  ► Prepare
      m = Prepare(ballot);
      send m to ALL;
  upon timeout() with true do
    if primary(ballot+1) then
      ballot = ballot+1;
      m = Prepare(ballot);                ► Prepare
      send m to ALL;
"""
"""Fig. 1 of Sequentialization, line by line (PrepareMsg in line 5 is called Prepare, as elsewhere), after message types."""

AUCTION = """\
type Bid = struct { int x; }
init
  if process(0) then
    send Bid(4) to self; send Bid(2) to self
  else
    send Bid(1) to process(0)
while true do
  upon Bid with m.x = 4 ∧ ¬seen do
    seen = true
    output(m.x)
  upon Bid with m.x < 4 times n/2 do
    output(greatest b in mbox(Bid, b.x > 0) by b.x give b.x)
  upon Bid with m.x = 4 do
    output(5)
"""

TIES = """\
type Go = struct { int x; }
init
  if process(0) then
    send Go(1) to ALL; send Go(5) to ALL;
while true do
  upon Go with m.x > 3 do
    output(1);
  upon Go with m.x > 0 times 0 do
    output(2);
  upon Go do
    output(3);
always big: forall p: ¬ (exists x in p.outputs: x = 3);
reachable both: exists p: p.outputs = [1, 2];
"""

NESTED = """\
type Ask = struct { int x; }
type Answer = struct { int x; }

init
  if self.index = 0 then
    send Ask(1) to ALL; send Answer(7) to self; send Answer(8) to self;
while true do
  upon Ask do
    asked = asked + 1;
    upon Answer with m.x > 6 do
      output(m.x + asked);
      upon Answer do
        output(-1 + 1);
  upon timeout(late) do
    output(100);
  upon Answer do
    output(m.x);
    start timeout(late);
always nothing: true;
"""

FIELD = """\
type Step = struct { phase int view; round text step in ["Ask", "Answer"]; int x; }

parameter int phases = 1;
init
  if self.index = 0 then
    send Step(1, "Ask", 3) to ALL;
while true do
  upon Step with m.step = "Ask" ∧ m.view > view do
    view = m.view;
    send Step(m.view, if m.x > 2 then "Answer" else "Ask", self.index) to m.sender;
  upon Step with m.step = "Answer" ∧ m.view = view times 0 do
    best = max(a.x for a in mbox with a.step = "Answer");
    total = sum(a.x for a in mbox);
always small: forall p: p.total < 3;
reachable both: exists p: p.total = 1 and p.best = 1;
"""


def system(text: str, tmp_path: Path, **parameters: Any) -> System:
    file = tmp_path / "protocol.distal"
    file.write_text(text, encoding="utf-8")
    built: System = module_of(file).__dict__["protocol"](**parameters)
    return built


def locals_of(built: System, *names: str) -> set[tuple[tuple[str, Any], ...]]:
    """All local states of all processes, as the oracle finds them."""
    found = set()
    for state in explore(built).seen:
        for p, slot in enumerate(state.slots):
            fields = vars(make(built.classes[p], slot.fields))
            found.add((("process", p), *((name, fields[name]) for name in sorted(names))))
    return found

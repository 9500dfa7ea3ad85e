"""P programs with known verdicts: the examples with a mutant each, and the meaning of single constructs."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait import System, Verdict, check
from plait.model.loading.loader import load
from plait.model.loading.readers import reads
from plait.rounds.p.module import module_of
from tests.support.markdown import ROOT

EXAMPLES = ROOT / "examples" / "p"


@pytest.fixture
def program(tmp_path: Path):
    """Reads a P text, and makes its only model, or the one with this name."""

    def made(text: str, name: str = "main", **parameters: int) -> System:
        file = tmp_path / "program.p"
        file.write_text(text)
        system: System = getattr(module_of(file), name)(**parameters)
        return system

    return made


def message(verdict: Verdict) -> str:
    """What the last step of the counterexample says."""
    assert verdict.trace is not None
    return verdict.trace.events[-1].note or ""


MUTANTS = [
    ("bank", "tcTwoClients", "balance[request.account] >= request.amount", "true", "NeverOverdrawn"),
    ("bank", "tcTwoClients", "        Answer(request, REFUSED);\n", "", "Answered_is_live"),
    ("two_phase_commit", "tcOne", "votes == sizeof(participants)", "votes == 1", "assertions"),
    (
        "failure_detector",
        "tcOneCrash",
        "        send node, eProbe, this;\n        receive {\n          case eProbed: { }\n        }\n",
        "",
        "Accurate",
    ),
    (
        "coffee",
        "tcTwoUsers",
        "    defer eCoffee;\n    ignore eReset;\n    entry {\n      send maker, eBrew;",
        "    ignore eReset;\n    entry {\n      send maker, eBrew;",
        "assertions",
    ),
    ("coffee", "tcTwoUsers", "on eReset goto Warming;", "on eReset goto Ready;", "BrewsOnlyWhenReady"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "test", "old", "new", "violated"), MUTANTS, ids=lambda v: str(v)[:20])
def test_the_examples_hold_and_their_mutants_do_not(
    name: str, test: str, old: str, new: str, violated: str, tmp_path: Path
) -> None:
    text = (EXAMPLES / f"{name}.p").read_text()
    assert text.count(old) == 1
    assert check(getattr(module_of(EXAMPLES / f"{name}.p"), test)()).status == "holds"
    file = tmp_path / f"{name}.p"
    file.write_text(text.replace(old, new))
    assert check(getattr(module_of(file), test)()).property == violated


def test_the_command_line_finds_tests_by_name() -> None:
    reads(".p", module_of)
    system = load(f"{EXAMPLES / 'two_phase_commit.p'}:tcOne", {})
    assert (system.name, system.target) == ("tcOne", f"{EXAMPLES / 'two_phase_commit.p'}:tcOne")


# -- queues ----------------------------------------------------------------------------------------------------------------

ORDER = """
event eA: int; event eB; event eOpen;
machine Box {{
  var sum: int;
  start state Shut {{
    defer eA;
    on eB do {{ sum = sum * 10 + 9; }}
    on eOpen goto Open;
  }}
  state Open {{
    on eA do (x: int) {{ sum = sum * 10 + x; assert {claim}; }}
    on eB do {{ sum = sum * 10 + 8; }}
  }}
}}
machine Main {{
  start state Init {{
    entry {{
      var box: Box;
      box = new Box();
      send box, eA, 1; send box, eB; send box, eA, 2; send box, eOpen; send box, eA, 3;
    }}
  }}
}}
"""


def test_deferred_events_keep_their_place(program) -> None:
    """By hand: 9 for eB while shut, then 1, 2 and 3 in the order in which they were sent."""
    assert check(program(ORDER.format(claim="sum in Allowed()") + ALLOWED)).status == "holds"
    assert check(program(ORDER.format(claim="sum != 9123"))).property == "assertions"


ALLOWED = """
fun Allowed(): seq[int] { var s: seq[int]; s += (0, 91); s += (1, 912); s += (2, 9123); return s; }
"""


def test_an_event_that_is_not_handled_is_a_violation_with_its_place(program) -> None:
    text = """
event eNo;
machine Deaf {
  start state Quiet { }
}
machine Main { start state Init { entry { var deaf: Deaf; deaf = new Deaf(); send deaf, eNo; } } }
"""
    verdict = check(program(text))
    assert verdict.property == "assertions"
    assert "program.p, line 4, column 3: Deaf in the state Quiet cannot handle the event eNo" in message(verdict)
    assert check(program(text.replace("send deaf, eNo", "send deaf, halt"))).status == "holds"


def test_a_machine_that_halts_drops_events(program) -> None:
    text = """
event eDie; event eNo;
machine Mortal { start state Alive { on eDie do { raise halt; } } }
machine Main { start state Init { entry { var m: Mortal; m = new Mortal(); send m, eDie; send m, eNo; } } }
"""
    assert check(program(text)).status == "holds"


# -- control ---------------------------------------------------------------------------------------------------------------


def test_exit_with_and_entry_run_in_this_order(program) -> None:
    text = """
event eGo: int;
machine Main {
  var log: seq[int];
  start state A {
    entry { send this, eGo, 5; }
    on eGo goto B with (x: int) { log += (sizeof(log), x); }
    exit { log += (sizeof(log), 1); }
  }
  state B {
    entry (x: int) {
      log += (sizeof(log), x + 1);
      assert log[0] == 1 && log[1] == 5 && log[2] == 6 && sizeof(log) == 3;
      goto C, (name = "c", number = 7);
    }
  }
  state C {
    entry (given: (name: string, number: int)) { raise eGo, given.number; }
    on eGo do (x: int) { assert x == 7; Final(x); assert false; }
  }
  state D { entry { assert log[2] == 6; } }
  fun Final(x: int) { if (x == 7) { goto D; } }
}
"""
    assert check(program(text)).status == "holds"
    assert check(program(text.replace("x == 7) { goto D; }", "x == 8) { goto D; }"))).property == "assertions"


WAITING = """
event eQuery: machine; event eAnswer: int; event eOther: int; event eNext;
machine Server {
  start state Up { on eQuery do (client: machine) { send client, eOther, 1; send client, eAnswer, 41; } }
}
machine Main {
  var server: Server;
  start state Init {
    entry {
      var i, got: int;
      server = new Server();
      while (i < 2) {
        got = Ask(i);
        assert got == 42 + i, format("got {0}", got);
        i = i + 1;
      }
      goto Rest;
    }
  }
  state Rest { on eOther do (x: int) { assert x == 1; } }
  fun Ask(plus: int): int {
    var found: int;
    send server, eQuery, this;
    receive {
      case eAnswer: (value: int) { found = value + 1; }
      case eNext: { found = 0; }
    }
    return found + plus;
  }
}
"""


def test_receive_waits_inside_functions_and_loops(program) -> None:
    assert check(program(WAITING)).status == "holds"
    verdict = check(program(WAITING.replace("value + 1", "value")))
    assert verdict.property == "assertions"
    assert "line 14, column 9: got 41" in message(verdict)


def test_a_machine_that_waits_for_ever_is_a_violation(program) -> None:
    verdict = check(program(WAITING.replace(" send client, eAnswer, 41;", "")))
    assert verdict.property == "no_machine_waits"


@pytest.mark.slow
def test_liveness_with_hot_and_cold_states(program) -> None:
    text = """
event eAsk; event eGot;
spec Answers observes eAsk, eGot {
  start cold state Idle { on eAsk goto Busy; }
  hot state Busy { on eGot goto Idle; }
}
machine Main {
  start state Ask { entry { send this, eAsk; } on eAsk goto Reply; }
  state Reply { entry { send this, eGot; } on eGot goto Ask; }
}
"""
    assert check(program(text)).status == "holds"
    for broken in ("if ($) { send this, eGot; }", "send this, eAsk;"):
        assert check(program(text.replace("send this, eGot;", broken))).status == "violated"
    dead = text.replace("entry { send this, eGot; } on eGot goto Ask;", "")
    assert check(program(dead)).property == "Answers_is_live"


def test_operations_within_a_payload_come_first(program) -> None:
    """The machine that is created for a payload starts before the event is in the queue."""
    text = """
event eMeet: machine; event eHi;
machine Guest { start state S { on eHi do { } } }
machine Host { start state S { on eMeet do (guest: machine) { send guest, eHi; } } }
machine Main { start state S { entry { var host: Host; host = new Host(); send host, eMeet, new Guest(); } } }
"""
    system = program(text)
    verdict = check(system, keep_going=True)
    assert verdict.status == "holds"
    assert check(program(text.replace("on eHi do { }", "on eHi do { assert false; }"))).property == "assertions"


def test_names_that_python_uses(program) -> None:
    """Variables, fields, events and machines may have any name: Python's words, names of Plait, names with underscores."""
    text = """
event init: (lambda: int, lambda_: int); event self: int;
type tA = (a_b: int, c: int); type tB = (a: int, b_c: int);
machine System {
  var outbox, at, at_, id, take: int; var k: map[int, int];
  start state None {
    entry { var x__, v: int; var first: tA; var second: tB;
      k[1] = 4; k[2] = 5; foreach (v in values(k)) { x__ = x__ + v; } at = 1; at_ = 2; outbox = 3; id = 4; take = 5;
      first = (a_b = 1, c = 2); second = (a = 3, b_c = 4);
      assert x__ == 9 && first.a_b + second.b_c == 5;
      send this, init, (lambda = 6, lambda_ = 7); }
    on init do (lambda: (lambda: int, lambda_: int)) {
      assert lambda.lambda == 6 && lambda.lambda_ == 7 && at + 2 * at_ + outbox + id + take == 17; raise self, 8; }
    on self do (m: int) { assert m == 8; }
  }
}
test final [main=System]: { System };
"""
    assert check(program(text, "final_")).status == "holds"


# -- values ----------------------------------------------------------------------------------------------------------------


def test_values_and_operators(program) -> None:
    """Facts from the manual of P: copies, defaults, rounding towards zero, collections."""
    text = """
enum Level { LOW = 3, HIGH = 7 }
type tPoint = (x: int, y: int);
machine Main {
  start state Init {
    entry {
      var a, b: seq[int]; var m, n: map[string, seq[int]]; var s: set[tPoint]; var t: (int, bool); var p: tPoint;
      var anything: any; var level: Level; var nobody: machine; var sum, i: int;
      a += (0, 1); a += (1, 2); b = a; b[0] = 9;
      assert a[0] == 1 && b[0] == 9;
      m["k"] = a; n = m; n["k"] += (0, 5);
      assert sizeof(m["k"]) == 2 && n["k"][0] == 5 && keys(n)[0] == "k" && sizeof(values(m)) == 1;
      s += ((x = 1, y = 2)); s += ((x = 1, y = 2)); s -= (x = 3, y = 3);
      assert sizeof(s) == 1 && (x = 1, y = 2) in s && s[0].y == 2;
      t = (4, true); t.0 = t.0 + 1; p.y = 6;
      assert t.0 == 5 && t.1 && p == (x = 0, y = 6);
      assert -7 / 2 == -3 && -7 % 2 == -1 && 7 / -2 == -3 && 7 % -2 == 1;
      assert level == LOW && HIGH to int == 7 && nobody == null && default(string) == "";
      anything = p; assert (anything as tPoint).y == 6 && anything != null;
      foreach (i in b) { if (i == 2) { continue; } sum = sum + i; }
      assert sum == 9, format("sum {0} of {1}", sum, b);
      a -= (0); assert a[0] == 2 && !(1 in a);
      m -= ("k"); assert sizeof(m) == 0;
    }
  }
}
"""
    assert check(program(text)).status == "holds"


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("x = s[0];", "the index 0 is not below the size 0"),
        ("x = m[4];", "the map has no key 4"),
        ("x = 1 / x;", "division by zero"),
        ("s += (1, 2);", "the index 1 is above the size 0"),
        ("m += (1, 1); m += (1, 2);", "the map has the key 1 already"),
        ("send nobody, eA;", "the target of the send is null"),
        ("x = choose(s);", "there is nothing to choose from"),
        ("y = true; x = y as int;", "True is no value of the type int"),
        ("assert y == 1;", "the assertion fails"),
    ],
)
def test_errors_at_run_time_have_a_line_and_a_column(program, statement: str, problem: str) -> None:
    text = f"""event eA;
machine Main {{
  start state Init {{
    entry {{
      var x: int; var y: any; var s: seq[int]; var m: map[int, int]; var nobody: machine;
      y = 0;
      {statement}
    }}
  }}
}}
"""
    verdict = check(program(text))
    assert verdict.property == "assertions"
    assert problem in message(verdict)
    assert "program.p, line 7, column " in message(verdict)


def test_more_machines_than_slots_end_the_check_with_an_error(program) -> None:
    from plait import ModelError

    text = """
event eMore;
machine Leaf { start state S { } }
machine Main { var made: int; start state S { entry { goto T; } }
  state T { entry { if (made < 3) { made = made + 1; new Leaf(); send this, eMore; } } on eMore goto T; } }
"""
    assert check(program(text)).status == "holds"
    with pytest.raises(ModelError, match="spawns Leaf") as found:
        check(program(text, machines=2))
    assert "machines=" in str(found.value.hint)

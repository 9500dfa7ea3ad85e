"""The Distal front end: the paper's text means what the paper says, and a wrong text is refused with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plait import ModelError, check
from plait.cli.main import main
from plait.kernel.errors import PlaitError, UsageError
from plait.model.loading.loader import load
from plait.protocols.distal_paxos import distal_paxos
from plait.rounds.distal.module import module_of, source_of
from plait.rounds.distal.translation import translate
from tests.rounds.distal_texts import AUCTION, FIGURE_1, TIES, locals_of, system
from tests.rounds.mailbox import Mail, Protocol, Upon, reachable

SHIPPED = Path(module_of.__code__.co_filename).parents[2] / "protocols" / "distal_paxos.distal"

# -- what a text means -----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("n", "phases"), [(3, 1), (2, 2)])
@pytest.mark.parametrize("early", [False, True])
def test_the_shipped_text_and_the_python_model_are_the_same(n: int, phases: int, early: bool) -> None:
    distal = module_of(SHIPPED).__dict__["distal_paxos"](n=n, phases=phases, early=early)
    python = distal_paxos(replicas=n, ballots=phases, faulty="early" if early else "none")
    names = ("ballot", "leading", "last", "promised", "log", "outputs")
    assert locals_of(distal, *names) == locals_of(python, *names)
    one, other = check(distal).statistics, check(python).statistics
    assert (one.states, one.transitions, one.terminal_states) == (
        other.states,
        other.transitions,
        other.terminal_states,
    )


@pytest.mark.slow
@pytest.mark.parametrize("early", [False, True])
def test_they_are_the_same_where_the_oracle_is_too_slow(early: bool) -> None:
    distal = check(module_of(SHIPPED).__dict__["distal_paxos"](early=early))
    python = check(distal_paxos(faulty="early" if early else "none"))
    assert distal.status == python.status == "holds"
    assert distal.statistics.states == python.statistics.states
    assert distal.statistics.transitions == python.statistics.transitions


@pytest.mark.slow
def test_figure_1_breaks_agreement_and_its_fix_does_not(tmp_path: Path) -> None:
    assert check(system(FIGURE_1, tmp_path, phases=2)).status == "holds"
    found = check(system(FIGURE_1, tmp_path, phases=3))
    assert found.property == "agreement"
    assert found.trace is not None
    assert len(found.trace) == 15
    fixed = FIGURE_1.replace("    last = ballot;\n", "", 1).replace("//Bugfix: last", "last")
    verdict = check(system(fixed, tmp_path, phases=3), max_states=300_000)
    assert not verdict.trace


def figure_1_by_hand(n: int, phases: int) -> Protocol:
    """Fig. 1 once more, for the mailbox of the paper."""

    def primary(b: int) -> int | None:
        return (b - 1) % n if b <= phases else None

    def lead(me: dict[str, Any], send: Any) -> None:
        me["ballot"] += 1
        for q in range(n):
            send(q, "Prepare", (me["ballot"],))

    def init(me: dict[str, Any], send: Any) -> None:
        if primary(1) == me["me"]:
            lead(me, send)

    def prepare(me: dict[str, Any], used: list[Mail], send: Any) -> None:
        last, me["ballot"], me["promised"] = me["ballot"], used[0].fields[0], False
        send(used[0].sender, "Ack", (me["ballot"], last, me["log"]))

    def ack(me: dict[str, Any], used: list[Mail], send: Any) -> None:
        best = max(used, key=lambda m: (m.fields[1], len(m.fields[2]), m.sender == me["me"], m.fields[2]))
        me["log"] = (*best.fields[2], "abc"[me["ballot"] - 1])
        for q in range(n):
            send(q, "Propose", (me["ballot"], me["log"]))

    def propose(me: dict[str, Any], used: list[Mail], send: Any) -> None:
        me["ballot"], me["log"] = used[0].fields
        for q in range(n):
            send(q, "Promise", used[0].fields)

    def promise(me: dict[str, Any], used: list[Mail], send: Any) -> None:
        me["ballot"], me["log"] = used[0].fields
        me["promised"], me["outputs"] = True, (*me["outputs"], me["log"])
        if primary(me["ballot"] + 1) == me["me"]:
            lead(me, send)

    def timeout(me: dict[str, Any], used: list[Mail], send: Any) -> None:
        if primary(me["ballot"] + 1) == me["me"]:
            lead(me, send)

    return Protocol(
        [{"me": p, "ballot": 0, "log": (), "promised": False, "outputs": ()} for p in range(n)],
        init,
        [
            Upon("Prepare", lambda me, m: m is not None and m.fields[0] > me["ballot"], prepare),
            Upon("Ack", lambda me, m: m is not None and m.fields[0] == me["ballot"], ack, times=n // 2),
            Upon(
                "Propose", lambda me, m: m is not None and m.fields[0] >= me["ballot"] and not me["promised"], propose
            ),
            Upon(
                "Promise",
                lambda me, m: m is not None and m.fields[0] >= me["ballot"] and m.fields[1] == me["log"],
                promise,
                times=n // 2,
            ),
            Upon(None, lambda me, m: True, timeout),
        ],
    )


def auction_by_hand(n: int) -> Protocol:
    """The text above, for the mailbox of the paper."""

    def init(me: dict[str, Any], send: Any) -> None:
        for x in (4, 2) if me["me"] == 0 else (1,):
            send(0, "Bid", (x,))

    def see(me: dict[str, Any], used: list[Mail], send: Any) -> None:
        me["seen"], me["outputs"] = True, (*me["outputs"], used[0].fields[0])

    def best(me: dict[str, Any], used: list[Mail], send: Any) -> None:
        me["outputs"] = (*me["outputs"], max(m.fields[0] for m in used))

    def late(me: dict[str, Any], used: list[Mail], send: Any) -> None:
        me["outputs"] = (*me["outputs"], 5)

    return Protocol(
        [{"me": p, "seen": False, "outputs": ()} for p in range(n)],
        init,
        [
            Upon("Bid", lambda me, m: m is not None and m.fields[0] == 4 and not me["seen"], see),
            Upon("Bid", lambda me, m: m is not None and m.fields[0] < 4, best, times=n // 2),
            Upon("Bid", lambda me, m: m is not None and m.fields[0] == 4, late),
        ],
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "truth", "names"),
    [
        pytest.param(FIGURE_1, figure_1_by_hand(3, 1), ("ballot", "log", "promised", "outputs"), id="figure 1"),
        pytest.param(AUCTION, auction_by_hand(3), ("seen", "outputs"), id="auction"),
    ],
)
def test_no_mailbox_is_needed(tmp_path: Path, text: str, truth: Protocol, names: tuple[str, ...]) -> None:
    """Consuming messages where they are pending gives the local states of the paper's loop with its mailbox."""
    expected = {tuple(field for field in state if field[0] != "me") for state in reachable(truth)}
    assert len(expected) > 8
    assert locals_of(system(text, tmp_path, n=3, phases=1), *names) == expected


@pytest.mark.slow
def test_the_listing_order_breaks_ties(tmp_path: Path) -> None:
    """A message that an earlier upon would take is none for a later one."""
    assert "not m.x > 3" in translate(TIES, "ties.distal", "ties")[0]
    assert check(system(TIES, tmp_path, n=2)).status == "holds"
    only = TIES.replace("  upon Go with m.x > 0 times 0 do\n    output(2);\n", "").replace("[1, 2]", "[1, 3]")
    only = only.replace("always big: forall p: ¬ (exists x in p.outputs: x = 3);", "")
    found = check(system(only, tmp_path, n=2), keep_going=True)
    assert found.status == "holds"
    outputs = {dict(s)["outputs"] for s in locals_of(system(only, tmp_path, n=2), "outputs")}
    assert outputs == {(), (1,), (3,), (1, 3), (3, 1)}  # Go(5) is never taken by the last upon


@pytest.mark.slow
def test_times_is_more_than(tmp_path: Path) -> None:
    text = "type A = struct { int x; }\ninit\n  send A(1) to ALL\nloop:\n  upon A times TIMES do\n    output(1)\n"
    for times, n, needed in (("n/2", 3, 2), ("n/2", 4, 3), ("1", 4, 2), ("2*n/3", 4, 3), ("n - 1", 3, 3)):
        built = system(text.replace("TIMES", times), tmp_path, n=n)
        (handler,) = [h for h in type(built.processes[0]).__plait_handlers__ if h.kind == "message"]
        assert callable(handler.quorum)
        assert handler.quorum(built.processes[0]) == needed, times  # type: ignore[call-arg, arg-type]


@pytest.mark.slow
def test_variables_that_no_action_remembers_are_no_fields(tmp_path: Path) -> None:
    names = type(system(FIGURE_1, tmp_path).processes[0]).__plait_fields__
    assert set(names) == {"n", "phases", "ballot", "log", "promised", "outputs"}  # neither last nor primary
    remembered = system(FIGURE_1 + "\nreachable led: exists p: p.primary = process(0) and p.last = 0", tmp_path)
    assert {"primary", "last"} < set(type(remembered.processes[0]).__plait_fields__)
    assert check(remembered).status == "holds"


# -- what is wrong with a text ---------------------------------------------------------------------------------------

WRONG = [
    ("last = ballot;", "last = balot;", 14, 12, "the name 'balot' is not defined"),
    ("m.ballot > ballot", "m.balot > ballot", 13, 23, "Prepare has no field 'balot'"),
    ("upon Prepare", "upon Prepar", 13, 8, "no message type 'Prepar'"),
    ("Ack(ballot, last, log)", "Ack(ballot, last)", 18, 9, r"Ack takes 3 values \(int, int, \[text\]\), not 2"),
    ("Ack(ballot, last, log)", "Ack(ballot, log, last)", 18, 21, r"value 2 of Ack: expected int, not \["),
    ("promised = false", "promised = 3", 25, 42, "expected bool, not int"),
    ("send m to primary", "send m to ballot", 19, 15, "expected pid, not int"),
    ("send m to primary", "send ballot to primary", 19, 10, "expected a message to send"),
    ("times n/2", "times n/2/", 20, 48, "expected do or until, not the end of the line"),
    ("while true do", "while true", 12, 11, "expected do, not the end of the line"),
    ("with true do", "with true", 40, 27, "expected do, times or until"),
    ("    promised = false;", "      promised = false;", 16, 7, "not an indented block"),
    ("    promised = false;", "   promised = false;", 16, 4, "matches no block around it"),
    ("longest_log(ballot)", "longest_lug(ballot)", 21, 11, "no function or message type 'longest_lug'"),
    ("log.add(newCommand())", "log.add(3)", 22, 5, r"expected \[text\], not \[int\]"),
    ("primary = m.sender", "n = 3", 17, 5, "'n' cannot be assigned"),
    ("primary = m.sender", "primary = n/2", 17, 16, "/ is allowed only in times"),
    ("primary = m.sender", "upon_x = 3", 17, 5, "a reserved name"),
    ("type Prepare", "type prepare", 1, 6, "must begin with a capital letter"),
    ("int last;", "integer last;", 2, 39, "no type 'integer'"),
    ("int last;", "int ballot;", 2, 43, "'ballot' is declared twice"),
    ("phase int ballot; int last;", "int ballot; int last;", 2, 6, "all message types have a phase, or none"),
    ("output(log);", "output(m.sender);", 35, 14, "m.sender is ambiguous"),
    ("output(log);", "output(ballot); output(log);", 35, 28, r"expected \[int\], not \[\[text\]\]"),
    ("ε", "€", 7, 21, "'€' does not belong here: expected an expression"),
    ("send m to ALL;", "send m ALL;", 11, 12, "expected an operator, .* or to, not 'ALL'"),
    ("log = m.log;", "log = longest_log(ballot);", 27, 11, "reads Ack messages, but this action received Propose"),
    ("init", "innit", 6, 1, "expected constant, function, init, parameter, require, spawns or type, not 'innit'"),
    ("upon timeout() with true", "upon timeout() with true times 3", 40, 3, "a timeout cannot have times"),
    ("m = Prepare(ballot);", "m = true;", 10, 5, "'m' cannot be assigned"),
    ("m.log = log times", "m.log > log times", 31, 41, "compares numbers"),
]


@pytest.mark.parametrize(("right", "wrong", "line", "column", "words"), WRONG, ids=[w[1] for w in WRONG])
def test_a_wrong_text(right: str, wrong: str, line: int, column: int, words: str) -> None:
    assert right in FIGURE_1
    with pytest.raises(ModelError, match=words) as caught:
        translate(FIGURE_1.replace(right, wrong, 1), "fig1.distal", "fig1")
    assert caught.value.message.startswith(f"fig1.distal, line {line}, column {column}: ")
    assert caught.value.message.splitlines()[2].index("^") == column + 1  # shown two columns to the right


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("always a: forall p: p.logg = 3", "no variable 'logg'"),
        ("always a: ballot = 3", "'ballot' needs a process"),
        ("always a: forall p: forall x in p.ballot: true", r"what forall ranges over: expected \["),
        ("always a: forall p: p.log", "expected bool"),
        ("always a: 3 + ", "expected an expression, not the end"),
        ("always a: forall p: primary(3) = p.primary", "cannot call functions of a process"),
        ("always a: true;\nalways a: true", "'a' is declared twice"),
        ("sometimes a: true", "expected always or reachable"),
    ],
)
def test_a_wrong_property(line: str, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        translate(FIGURE_1 + line + "\n", "fig1.distal", "fig1")


@pytest.mark.parametrize(
    "text", ["", "init", "init\n  x = 1\n", "// nothing\n", "\n  init\n x = 1\n", "init\n  skip\nloop\n"]
)
def test_a_text_that_ends_too_early(text: str) -> None:
    with pytest.raises(ModelError, match="expected"):
        translate(text, "empty.distal", "empty")


# -- the command line ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_distal_file_is_a_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "fig1.distal"
    file.write_text(FIGURE_1, encoding="utf-8")
    assert main(["check", str(file), "-p", "phases=1"]) == 0
    assert main(["show", str(file)]) == 0
    assert "upon_promise" in capsys.readouterr().out
    built = load(str(file), {"phases": "1"})
    assert built.target == f"{file}:fig1"
    assert built.target is not None
    assert check(load(built.target, {"phases": "1"})).statistics.states == check(built).statistics.states


@pytest.mark.slow
def test_a_violation_of_a_distal_text_is_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fig1.distal").write_text(FIGURE_1, encoding="utf-8")
    assert main(["check", "fig1.distal", "-p", "phases=3"]) == 1
    assert main(["replay", ".plait/fig1-agreement-phases=3.itf.json"]) == 0
    Path("fig1.distal").write_text(FIGURE_1.replace("log = m.log", "skip"), encoding="utf-8")
    assert main(["replay", ".plait/fig1-agreement-phases=3.itf.json"]) == 2


@pytest.mark.slow
def test_the_shipped_text_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of that name comes first."""
    monkeypatch.chdir(tmp_path)
    built = load("distal_paxos.distal", {"phases": "1"})
    assert built.target == "distal_paxos.distal:distal_paxos"
    assert check(built).statistics.states == check(distal_paxos(ballots=1)).statistics.states
    Path("distal_paxos.distal").write_text(FIGURE_1, encoding="utf-8")
    assert "leading" not in type(load("distal_paxos.distal").processes[0]).__plait_fields__


@pytest.mark.slow
def test_import_writes_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, model = tmp_path / "2 phases.distal", tmp_path / "model.py"
    file.write_text(FIGURE_1, encoding="utf-8")
    assert main(["rounds", "import", str(file), "-o", str(model)]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "plait check" in captured.err
    assert model.read_text(encoding="utf-8") == source_of(file)[0]
    assert main(["rounds", "import", str(file)]) == 0
    assert capsys.readouterr().out == source_of(file)[0]
    expected = check(system(FIGURE_1, tmp_path)).statistics
    found = check(load(str(model), {})).statistics
    assert (found.states, found.transitions) == (expected.states, expected.transitions)


def test_what_cannot_be_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rounds", "import", str(tmp_path / "no.distal")]) == 2
    assert "cannot be read" in capsys.readouterr().err
    assert main(["check", str(tmp_path / "no.distal")]) == 2
    assert "there is no file" in capsys.readouterr().err
    binary = tmp_path / "binary.distal"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not UTF-8"):
        source_of(binary)
    wrong = tmp_path / "wrong.distal"
    wrong.write_text("init\n  x = y\nloop\n  upon timeout() do\n    skip\n", encoding="utf-8")
    with pytest.raises(PlaitError, match=r"wrong.distal, line 2, column 7: the name 'y' is not defined"):
        load(str(wrong))


DIVIDES = """\
type Ping = struct { phase int ballot; }

init
  ballot = 1;
  m = Ping(ballot);
  send m to ALL;
while true do
  upon Ping with m.ballot > 0 do
    x = 4;
    ballot = x div (m.ballot - 1);

always fine: forall p: true;
"""


@pytest.mark.parametrize("rounds", [[], ["--rounds"]])
def test_an_error_while_it_runs_names_the_line_of_the_text(
    rounds: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("divides.distal").write_text(DIVIDES, encoding="utf-8")
    assert main(["check", "divides.distal", "--json", *rounds]) == 1
    trace = json.loads(capsys.readouterr().out)["trace"]
    assert "Node.upon_ping raised ZeroDivisionError: integer division or modulo by zero" in trace["explanation"]
    frame = trace["exception"]["frames"][-1]
    assert (Path(frame["file"]).name, frame["line"], frame["column"]) == ("divides.distal", 10, 16)
    assert frame["code"] == "ballot = x div (m.ballot - 1);"


RAISING = [
    ("x = [4, 5][ballot + 7];", 9, "IndexError", "no element 8 in a list of 2"),
    ("y = none; x = value(if ballot = 0 then 3 else y);", 19, "ValueError", "value(none)"),
    ("x = max(b for b in [9 .. 3]);", 9, "ValueError", "empty"),
    ("if ballot > 0 ∧ (3 div (ballot - 1)) > 2 then skip;", 24, "ZeroDivisionError", "zero"),
    ("z = [1]; z[3] = 4;", 14, "IndexError", "no element 3"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("statement", "column", "error", "words"), RAISING, ids=[case[0] for case in RAISING])
def test_an_error_while_it_runs_names_the_column(
    statement: str, column: int, error: str, words: str, tmp_path: Path
) -> None:
    text = DIVIDES.replace("x = 4;", "skip;").replace("ballot = x div (m.ballot - 1);", statement)
    found = check(system(text, tmp_path))
    assert found.trace is not None
    assert found.trace.exception is not None
    assert found.trace.exception.type == error
    frame = [f for f in found.trace.exception.frames if f.file.endswith(".distal")]
    assert (frame[0].line, frame[0].column) == (10, column)
    assert words in found.trace.exception.message


def test_an_error_in_a_guard_names_the_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "guard.distal"
    file.write_text(DIVIDES.replace("m.ballot > 0 do", "3 mod (m.ballot - 1) > 0 do"), encoding="utf-8")
    assert main(["check", str(file)]) != 0
    assert f"{file}:8:20" in "".join(capsys.readouterr())

"""SIGTERM and SIGHUP end a command as Ctrl-C does; a signal that is ignored stays ignored; start-up is quiet."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.endless import ENDLESS, PLAIT
from tests.support.patience import PATIENCE, started, until

BUILDING = """
from pathlib import Path
from plait import System

def endless() -> System:
    Path("running").touch()
    while True:
        pass
"""


def not_ignored() -> None:
    """In a child: a signal that the tests ignore (under nohup, SIGHUP) has its ordinary effect."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def ended_by(command: list[str], number: signal.Signals, workplace: Path) -> tuple[int, str, str]:
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=not_ignored) as process:
        until(lambda: (workplace / "running").exists() or process.poll() is not None, "the command begins")
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_search_ends_with_what_was_found(workplace: Path, number: signal.Signals) -> None:
    (workplace / "endless.py").write_text(ENDLESS)
    code, out, err = ended_by([*PLAIT, "check", "endless.py", "--json", "--memory", "1G"], number, workplace)
    assert code == 3, err
    verdict = json.loads(out)
    assert (verdict["verdict"], verdict["bound"]) == ("inconclusive", "interrupted")
    assert verdict["states"] > 1
    assert "Traceback" not in err


@pytest.mark.slow
def test_a_violation_that_was_found_is_shown(workplace: Path) -> None:
    (workplace / "endless.py").write_text(ENDLESS.replace("c.number >= 0", "c.number < 2"))
    command = [*PLAIT, "check", "endless.py", "--json", "--memory", "1G", "--keep-going"]
    (workplace / "endless.py").write_text(
        (workplace / "endless.py")
        .read_text()
        .replace("properties=[positive]", "properties=[positive, always(lambda s: True)]")
    )
    code, out, err = ended_by(command, signal.SIGTERM, workplace)
    assert (code, json.loads(out)["verdict"]) == (1, "violated"), err


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_while_a_model_is_built(workplace: Path, number: signal.Signals) -> None:
    (workplace / "building.py").write_text(BUILDING)
    code, out, err = ended_by([*PLAIT, "check", "building.py", "--json"], number, workplace)
    assert (code, err) == (3, "error: interrupted\n")
    assert json.loads(out)["error"]["kind"] == "interrupted"


@pytest.mark.slow
def test_nohup_is_respected(workplace: Path) -> None:
    (workplace / "endless.py").write_text(ENDLESS)
    command = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *PLAIT, "check", "endless.py", "--json", "--memory", "1G"]
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        until(lambda: (workplace / "running").exists() or process.poll() is not None, "the search begins")
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGHUP)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, json.loads(out)["bound"]) == (3, "interrupted"), err


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("json_wanted", [False, True])
def test_start_up_prints_no_traceback(workplace: Path, number: signal.Signals, json_wanted: bool) -> None:
    """The first import of Plait is interrupted: it sends the signal to its own process."""
    Path("sitecustomize.py").write_text("")
    code = (
        "import sys, os, signal, _plait_main\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == 'cyclopts': os.kill(os.getpid(), {int(number)})\n"
        "sys.meta_path.insert(0, Finder())\n"
        f"sys.argv = ['plait', 'zoo'{', ' + repr('--json') if json_wanted else ''}]\n"
        "sys.exit(_plait_main.main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
        preexec_fn=not_ignored,
    )
    assert (done.returncode, done.stderr) == (3, "error: interrupted\n")
    assert (json.loads(done.stdout)["error"]["exit_code"] == 3) if json_wanted else done.stdout == ""


FACTORS = """
int c = 0;
int a in 2..2000000000, b in 2..2000000000;
process p { c = 1; }
reachable one: c == 1;
always prime: a * b != 1000000016000000063;
"""
SOLVING = """
import os, signal, sys, threading, time, z3, _plait_main, plait.bmc.search as search
decide, asked = search.SolverSearch.decide, z3.Solver.check

def decided(self, property_):
    if property_.name == "prime":  # Z3 would need hours
        z3.Solver.check = lambda *given: {kill} or asked(*given)
    return decide(self, property_)

search.SolverSearch.decide = decided
sys.argv = ["plait", "bmc", "factors.plait", "--json", "--depth", "3", "--width", "64", "--encoding", "clock"]
sys.exit(_plait_main.main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    "kill",
    ["os.kill(os.getpid(), {})", "time.sleep(0.5) or signal.pthread_kill(threading.get_ident(), {})"],
    ids=["process", "thread"],
)
def test_one_signal_is_enough_while_z3_works(workplace: Path, number: signal.Signals, kill: str) -> None:
    """The signal comes before Z3 could notice it: from the thread that is about to ask Z3.

    A signal to that thread does not wake the main thread, which waits for it after half a second. On a busy machine, a
    signal to the process may not wake it either.
    """
    (workplace / "factors.plait").write_text(FACTORS)
    done = subprocess.run(
        [sys.executable, "-c", SOLVING.format(kill=kill.format(int(number)))],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
        preexec_fn=not_ignored,
    )
    assert done.returncode == 3, done.stderr
    verdict = json.loads(done.stdout)
    assert verdict["bound"] == "interrupted"
    assert [(p["name"], p["status"]) for p in verdict["properties"]] == [("one", "holds"), ("prime", "inconclusive")]
    assert "Traceback" not in done.stderr


ASKING = """
import os, signal, threading, time, z3
from plait.epa.solver import decide
from plait.gyro.solver import Solver
from plait.gyro.sql.entries import Entry
from plait.gyro.sql.terms import Column, Compare, Parameter

signal.signal(signal.SIGINT, signal.default_int_handler)
asked = z3.Solver.check

def check(self, *given):  # Z3 would need hours
    a, b = z3.BitVecs("a b", 64)
    self.add(a * b == 1000000016000000063, *(z3.And(z3.UGT(n, 1), z3.ULT(n, 2000000000)) for n in (a, b)))
    z3.Solver.check = asked
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    return self.check(*given)

z3.Solver.check = check
entry = Entry("cart", frozenset({"id"}), Compare("=", Column("cart", "id", "number"), Parameter("c")), "cart", "query")
try:
    ROOM
    time.sleep(5)
    print("missed")
except KeyboardInterrupt:
    print("noticed")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "room", ["decide([0, 1], [[], []], [], early=0, late=1)", "Solver().conflict(entry, entry)"], ids=["epa", "gyro"]
)
def test_z3_does_not_take_ctrl_c_for_itself(room: str) -> None:
    """Z3 would answer "unknown". Then the analysis would continue, with a result that is not exact."""
    command = [sys.executable, "-c", ASKING.replace("ROOM", room)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert (done.stdout, done.stderr) == ("noticed\n", "")

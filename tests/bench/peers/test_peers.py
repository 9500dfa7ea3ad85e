"""`plait bench peers`: the same protocols for other checkers find the same states, and a wrong model is noticed.

Spin runs if it is installed. Stateright takes a minute to build and TLC has to be fetched, so these two run where
`plait bench peers` has been before.
"""

from __future__ import annotations

import functools
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from plait import check
from plait.bench.errors import FailedError, MissingError
from plait.bench.peers import process
from plait.bench.peers import table as peers
from plait.bench.peers.checker import Case, Checker
from plait.bench.peers.own import Plait
from plait.bench.peers.process import build
from plait.bench.peers.spin import Spin, promela
from plait.bench.peers.stateright import Stateright
from plait.bench.peers.tlc import Tlc
from plait.cli.main import main
from plait.protocols.raft import raft
from tests.oracle.explorer import explore
from tests.support.patience import PATIENCE, until

# States and transitions. The first two are published: the TLA+ specification TwoPhase (Stateright counts the transitions
# as well), Stateright's examples/paxos.rs. The law of docs/decisions/0006 gives the states of Paxos with two acceptors.
# The oracle counts those of the smallest Raft (below).
CASES = [
    (Case("two_phase_commit", (3,), 288), 1_145),
    (Case("register_paxos", (2, 3), 16_668), 32_970),
    (Case("paxos", (2, 2, 1), 18**2), 732),
    (Case("lamport_mutex", (2, 4), 401), 662),
    (Case("raft", (2, 2, 2, 2), 489), 664),
    (Case("raft", (3, 2, 2, 1), 5_521), 10_972),
]
SMALL = {"Two-phase commit": CASES[0][0], "Paxos": CASES[2][0]}


@functools.cache
def checker(name: str) -> Checker:
    """One that is here without building or fetching much; else the test is skipped."""
    found: Checker = {"Plait": Plait, "Spin": lambda: Spin(optimization="-O0"), "Stateright": Stateright, "TLC": Tlc}[
        name
    ]()
    if isinstance(found, Stateright) and not found.program.exists():
        pytest.skip("Stateright is not built: plait bench peers does")
    if isinstance(found, Tlc) and not found.fetched.exists():
        pytest.skip("TLC is not fetched: plait bench peers does")
    try:
        assert found.version().startswith(name)
    except MissingError as missing:
        pytest.skip(f"{missing}; {missing.hint}")
    return found


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["bench", "peers", *arguments])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return code, captured.out, captured.err


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Small settings, no other checker on the PATH, and nothing fetched; the folder that is the PATH."""
    path = tmp_path / "bin"
    path.mkdir()
    monkeypatch.setenv("PATH", str(path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(peers, "QUICK", SMALL)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Plait", "Spin", "Stateright", "TLC"])
@pytest.mark.parametrize(("case", "transitions"), CASES, ids=lambda value: getattr(value, "protocol", ""))
def test_all_find_the_same(name: str, case: Case, transitions: int, tmp_path: Path) -> None:
    found = checker(name)
    if not found.has(case.protocol):
        assert (name, case.protocol) in [("Spin", "register_paxos"), ("TLC", "register_paxos"), ("Spin", "raft")]
        return
    prepared = found.prepare(case, 1, tmp_path)
    measured = process.run(prepared.command, cwd=prepared.cwd, timeout=PATIENCE)
    said = found.read(measured.output, measured.code)
    assert (said.states, said.transitions, said.violated) == (case.states, transitions, False)


@pytest.mark.slow
def test_the_oracle_counts_raft() -> None:
    case, transitions = CASES[4]
    truth = explore(raft(servers=2, elections="any,any", entries=2, quorum=False))
    assert case.parameters == {"servers": "2", "elections": "any,any", "entries": "2", "quorum": "false"}
    assert (truth.states, truth.transitions, truth.violated) == (case.states, transitions, set())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "guard", "instead"),
    [
        pytest.param(CASES[0][0], "&& ALL(NOTED)", "", id="commits at once"),
        pytest.param(CASES[2][0], "promised <= p + 1 ->", "true ->", id="accepts every write"),
        pytest.param(CASES[3][0], "acked[q] &&", "", id="does not wait"),
    ],
)
def test_spin_notices_a_wrong_model(case: Case, guard: str, instead: str, tmp_path: Path) -> None:
    """The property is in the model, and it is checked."""
    spin = checker("Spin")
    assert isinstance(spin, Spin)
    model = promela(case)
    assert guard in model
    verifier = spin.verifier(model.replace(guard, instead), case.states, tmp_path)
    measured = process.run(verifier.command, cwd=verifier.cwd, timeout=PATIENCE)
    assert spin.read(measured.output, measured.code).violated


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "module", "guard", "instead", "violated"),
    [
        pytest.param(
            CASES[0][0],
            "TwoPhaseCommit",
            '  /\\ outcome = "committed" => noted = RM\n',
            "",
            "Consistency",
            id="commits at once",
        ),
        pytest.param(
            CASES[2][0], "Paxos", "  /\\ m.from >= promised[m.to]\n", "", "Agreement", id="accepts every write"
        ),
        pytest.param(
            CASES[3][0], "LamportMutex", "  /\\ acks[p] = Contender \\ {p}\n", "", "MutualExclusion", id="does not wait"
        ),
        pytest.param(CASES[5][0], "Raft", "voted[s] = 0)", 'role[s] = "follower")', "ElectionSafety", id="votes twice"),
        pytest.param(
            CASES[5][0], "Raft", "IF UpToDate(m)", "IF TRUE", "LeaderCompleteness", id="does not compare logs"
        ),
    ],
)
def test_tlc_notices_a_wrong_model(
    case: Case, module: str, guard: str, instead: str, violated: str, tmp_path: Path
) -> None:
    tlc = checker("TLC")
    prepared = tlc.prepare(case, 1, tmp_path)
    assert prepared.cwd is not None
    file = prepared.cwd / f"{module}.tla"
    text = file.read_text(encoding="ascii")
    assert text.count(guard) == 1
    file.write_text(text.replace(guard, instead), encoding="ascii")
    measured = process.run(prepared.command, cwd=prepared.cwd, timeout=PATIENCE)
    assert tlc.read(measured.output, measured.code).violated
    assert f"Invariant {violated} is violated" in measured.output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("faulty", "violated"), [("vote", "election_safety"), ("log", "leader_completeness")], ids=["vote", "log"]
)
def test_the_twins_of_raft_violate_what_tlc_says(faulty: Any, violated: str) -> None:
    """The two wrong models of Raft above, as they are in the zoo."""
    twin = raft(servers=3, elections="1+2,1+2", quorum=False, faulty=faulty)
    assert check(twin).property == violated


@pytest.mark.slow
def test_what_is_not_installed_is_named(alone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "--quick")
    assert code == 0
    assert "Spin is missing: spin is not installed; install it: apt-get install spin." in out
    assert "Stateright is missing: cargo is not installed; install the Rust toolchain" in out
    assert "TLC is missing: java is not installed" in out
    assert "288" in out
    assert "324" in out
    assert "1/2  Two-phase commit: Plait" in err


@pytest.mark.slow
def test_a_checker_that_fails_does_not_stop_the_others(alone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("spin", "gcc", "java"):
        (alone / name).write_text(
            f"#!{shutil.which('sh', path='/bin:/usr/bin')}\necho {name} is out of order\nexit 7\n"
        )
        (alone / name).chmod(0o755)
    code, out, _ = run(capsys, "--quick", "--json", "-q")
    assert code == 3
    (table,) = json.loads(out)["tables"]
    rows = {(row["setting"], row["variant"]): row for row in table["rows"]}
    assert len(rows) == 4
    for setting, case in SMALL.items():
        assert rows[setting, "Plait"]["cells"]["states"]["value"] == case.states
        assert rows[setting, "Spin"]["cells"]["states"]["value"] is None
        assert "spin is out of order" in rows[setting, "Spin"]["failed"]
    assert table["missing"].keys() == {"Stateright", "TLC"}
    assert "mvn is not installed to fetch it" in table["missing"]["TLC"]


@pytest.mark.slow
def test_other_counts_are_told(
    alone: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "QUICK", {"Two-phase commit": Case("two_phase_commit", (3,), 289)})
    code, out, _ = run(capsys, "--quick", "-q")
    assert code == 1
    assert "288 instead of 289" in out
    assert "COUNTS DIFFER, so the speeds cannot be compared: Two-phase commit, Plait." in out


@pytest.mark.slow
def test_a_file_that_is_not_tlc(alone: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = run(capsys, "--tla2tools", str(tmp_path / "none.jar"))
    assert (code, out) == (2, "")
    assert f"--tla2tools: there is no file {tmp_path / 'none.jar'}" in err
    java = shutil.which("java", path="/usr/bin:/usr/local/bin")
    if java is None:
        pytest.skip("java is not installed")
    (alone / "java").symlink_to(java)
    (tmp_path / "some.jar").write_text("no jar")
    code, out, _ = run(capsys, "--quick", "-q", "--tla2tools", str(tmp_path / "some.jar"), "--markdown")
    assert code == 0
    assert "does not contain TLC; name the jar of the TLA+ tools" in out


@pytest.mark.slow
def test_interrupted(alone: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    original, calls = peers.run, []

    def interrupted(*args: Any, **options: Any) -> Any:
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(*args, **options)

    monkeypatch.setattr(peers, "run", interrupted)
    code, out, _ = run(capsys, "--quick", "-q")
    assert code == 3
    assert "Interrupted: the rest is missing." in out
    assert "288" in out


# -- measuring --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_memory_is_that_of_the_command_alone() -> None:
    """Not what this process has: that is why `watch.py` stands in between."""
    hoard = bytearray(200 * 2**20)
    assert process.run(["true"]).memory_bytes < 40 * 2**20
    assert len(hoard) == 200 * 2**20
    measured = process.run([sys.executable, "-c", "len(bytearray(b'1' * 100 * 2**20))"])
    assert measured.memory_bytes > 100 * 2**20
    assert measured.seconds > 0
    assert measured.cpu_seconds > 0


@pytest.mark.slow
def test_what_takes_too_long_is_stopped(tmp_path: Path) -> None:
    """With whatever it has started."""
    number = tmp_path / "number"
    with pytest.raises(FailedError, match=r"stopped after 2 s"):
        process.run(["sh", "-c", f"sleep {PATIENCE} & echo $! > '{number}'; wait"], timeout=2)
    started = Path("/proc", number.read_text().strip())
    until(lambda: not started.exists() or "zombie" in (started / "status").read_text(), "what it started ends")


def test_a_command_that_is_not_there() -> None:
    with pytest.raises(FailedError, match=r"could not be run"):
        process.run(["plait-no-such-command"])
    with pytest.raises(FailedError, match=r"`false` failed: no output"):
        build(["false"])

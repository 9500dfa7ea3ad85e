"""Replay: runs without a fault are equal to the golden run in every event, and no replayed run hangs because of replay.

`replayed.c` has one source of chance per mode. Each of them is refused without replay.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plait.cli.main import main
from plait.epa.campaign import Campaign, NotDeterministic
from plait.epa.comparison import compare
from plait.epa.events import Event, fast_check, settle
from plait.epa.faults import Fault
from plait.epa.instrumentation.build import build
from plait.epa.recording import OPERATIONS, Recording
from plait.epa.replay import Ending, ending, identity_of_file, write
from plait.epa.reversibility import check, decide
from plait.epa.run import Run, run
from plait.kernel.errors import TraceError, UsageError
from tests.epa.schedules import can_be_reversed, traces
from tests.support.once import made_once

SOURCES = {
    "locks": "the order of lock lock",
    "tries": "pthread_mutex_trylock at",
    "rwlock": "the order of lock both",
    "condition": "the order of lock lock",
    "timed": "pthread_cond_timedwait at",
    "c11": "the order of lock plain",
    "atomics": "the order of accesses to tickets",
    "baton": "the order of accesses to",
    "stdout": "the order of accesses to stdout",
    "offset": "the offset of file descriptor",
    "semaphore": "the order of accesses to used",
    "barrier": "pthread_barrier_wait at",
    "rand": "the result of rand at",
    "results": "the result of getrandom at",
}
WORDS = {"results": ["gettimeofday", "clock_gettime", "time", "getrandom", "stat", "rand", "lrand48", "drand48", "clock",
                     "getpid", "gettid", "rdtsc"]}  # fmt: skip
UNLOCK = next(number for number, name in OPERATIONS.items() if name == "unlock")


def _chance(toolchain: int, factory: pytest.TempPathFactory) -> Path:
    source = Path(__file__).with_name("replayed.c")
    made = made_once(
        factory, "epa-replayed", lambda folder: build([source], folder / "p.epa", version=toolchain) and None
    )
    return made / "p.epa"


@pytest.fixture(scope="session")
def program(toolchain: int, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _chance(toolchain, tmp_path_factory)


def _golden(program: Path, mode: str, folder: Path, **options: object) -> Recording:
    (folder / "input.txt").write_text("abcdefghijklmnopqrstuvwxyz", encoding="utf-8")
    done: Run = run(program, [mode], folder / "golden", base=folder, **options)  # type: ignore[arg-type]
    assert done.code == 0
    golden = Recording(folder / "golden")
    write(golden, folder / "order", stall=60.0)
    return golden


def _replayed(program: Path, mode: str, folder: Path, **options: object) -> Recording:
    run(program, [mode], folder / "again", base=folder, order=folder / "order", timeout=120.0, **options)  # type: ignore[arg-type]
    return Recording(folder / "again")


@pytest.mark.slow
@pytest.mark.parametrize("mode", SOURCES)
def test_replayed_runs_are_equal(mode: str, program: Path, tmp_path: Path) -> None:
    """The law of replay: whatever the schedule, a run without a fault has the events and the output of the golden run."""
    golden = _golden(program, mode, tmp_path, yields=7)
    assert not check(golden).verdict, "it needs replay"
    found = check(golden, replay=True)
    assert found.verdict.status == "holds", found
    assert any(SOURCES[mode] in need for need in found.needs), found.needs
    assert all(any(word in need for need in found.needs) for word in WORDS.get(mode, []))
    for seed in range(1, 5):
        again = _replayed(program, mode, tmp_path, yields=seed)
        assert ending(again.folder) is None
        assert golden.native.outcome(again.native) == (True, False)
        assert again.output == golden.output
    compared = compare(golden, again)
    assert (compared.comparable, compared.equal, compared.proof.replay) == (True, True, True)


@pytest.mark.slow
def test_free_runs_differ(program: Path, tmp_path: Path) -> None:
    """The law is not empty: without replay, the order of the locks and the results differ from run to run."""
    for mode in ("locks", "results"):
        golden = _golden(program, mode, tmp_path, yields=7)
        outputs = set()
        for seed in range(1, 9):
            run(program, [mode], tmp_path / "free", yields=seed)
            outputs.add(Recording(tmp_path / "free").output)
        assert outputs - {golden.output}, mode
        free = compare(golden, Recording(tmp_path / "free"))
        assert not free.comparable, "a free run is not comparable with this golden run"


@pytest.mark.slow
def test_a_recorder_that_does_not_wait_is_caught(
    toolchain: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mutant: every thread takes its turn at once. The law above then fails."""
    import plait.epa.instrumentation.build as building

    recorder = Path(building.__file__).parents[1] / "recorder"
    broken = tmp_path / "package" / "recorder"
    broken.mkdir(parents=True)
    for file in recorder.iterdir():
        if file.is_file():
            text = file.read_text(encoding="utf-8")
            assert file.name != "replay.c" or "if (current == mine) return 1;" in text
            changed = text.replace("if (current == mine) return 1;", "if (current <= mine) return 1;")
            (broken / file.name).write_text(changed, encoding="utf-8")
    monkeypatch.setattr(building, "files", lambda package: broken.parent)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    mutant = tmp_path / "mutant.epa"
    build([Path(__file__).with_name("replayed.c")], mutant, version=toolchain)
    caught = 0
    golden = _golden(mutant, "locks", tmp_path, yields=7)
    write(golden, tmp_path / "order", stall=0.5)
    for seed in range(1, 9):
        again = _replayed(mutant, "locks", tmp_path, yields=seed)
        caught += ending(again.folder) is not None or not golden.native.outcome(again.native)[0]
    assert caught


@pytest.mark.slow
def test_a_plain_race_is_refused(program: Path, tmp_path: Path) -> None:
    golden = _golden(program, "race", tmp_path)
    found = decide(golden)
    assert (found.verdict.status, found.replay) == ("violated", True)
    assert all(witness.object == "plain_race" for witness in found.witnesses)
    with pytest.raises(NotDeterministic):
        Campaign(program, ["race"], types=["bitflip"], runs=1)


def _site(recording: Recording, function: str, op: str, name: str = "") -> int:
    return next(
        i for i, s in enumerate(recording.table.sites, 1) if (s.function, s.op) == (function, op) and s.name == name
    )


ENDS = {
    "locks:pthread_mutex_unlock": ("skip", {"operation", "lock"}),
    "locks:pthread_mutex_lock": ("twice", {"operation", "lock"}),
    "condition:pthread_cond_wait": ("kill", {"end"}),
    "stdout:printf": ("kill", {"end"}),
    "tries:pthread_mutex_trylock": ("kill", {"end"}),
}
FUNCTIONS = {"locks": "locks", "condition": "meets", "stdout": "prints", "tries": "tries"}


@pytest.mark.slow
@pytest.mark.parametrize("case", ENDS)
def test_a_fault_ends_replay_without_a_hang(case: str, program: Path, tmp_path: Path) -> None:
    """The fault changes the operations of a thread. Replay ends there, long before its time limit, and the run goes on."""
    mode, _, name = case.partition(":")
    action, reasons = ENDS[case]
    golden = _golden(program, mode, tmp_path, yields=7)
    site = _site(golden, FUNCTIONS[mode], "call", name)
    kind = {"skip": "skipunlock", "twice": "doublelock", "kill": "killthread"}[action]
    fault = Fault(kind, site, "T_0_1", 0, 0)
    limit = 4.0
    run(program, [mode], tmp_path / "faulty", base=tmp_path, order=tmp_path / "order", fault=fault, timeout=limit)
    ended = ending(tmp_path / "faulty")
    assert ended is not None
    assert ended.diverged
    assert ended.reason in reasons
    assert "T_0_" in ended.words
    faulty = Recording(tmp_path / "faulty")
    assert faulty.run is not None
    # A double lock and a skipped unlock are deadlocks of the program itself; a killed thread is not missed by `stdout`.
    assert not faulty.run.timed_out or action != "kill" or mode == "condition"
    found = compare(golden, faulty)
    assert found.comparable
    assert not found.equal
    assert found.replay_ended == ended
    assert any(t.first is not None for t in found.threads)


@pytest.mark.slow
def test_a_stall_ends_replay(program: Path, tmp_path: Path) -> None:
    """A thread that sleeps at its turn ends replay after the time limit: the other threads do not wait forever."""
    for seed in range(50):  # until another thread has a turn after the first section
        golden = _golden(program, "tries", tmp_path, yields=seed)
        turns = golden.native.turns()
        first = next(i for i, turn in enumerate(turns) if turn[1] == UNLOCK)
        if any(turn[0] != turns[first][0] for turn in turns[first:]):
            break
    write(golden, tmp_path / "order", stall=0.3)
    site = next(i for i, s in enumerate(golden.table.sites, 1) if (s.op, s.name) == ("argument", "usleep"))
    thread = golden.threads[turns[first][0]].name
    fault = Fault("xor", site, thread, 0, 1 << 21)  # two seconds
    run(program, ["tries"], tmp_path / "faulty", base=tmp_path, order=tmp_path / "order", fault=fault, timeout=60.0)
    ended = ending(tmp_path / "faulty")
    assert ended is not None
    assert (ended.reason, ended.diverged) == ("stalled", False)
    faulty = Recording(tmp_path / "faulty")
    assert faulty.run is not None
    assert (faulty.run.timed_out, faulty.run.code) == (False, 0)


@pytest.mark.slow
def test_deviations_before_the_end_of_replay_are_certain(program: Path, tmp_path: Path) -> None:
    """A corrupted value that changes no operation is replayed to the end, and reaches only what depends on it."""
    golden = _golden(program, "locks", tmp_path, yields=7)
    site = _site(golden, "note", "trunc")
    fault = Fault("xor", site, "T_0_1", 1, 64)
    run(program, ["locks"], tmp_path / "faulty", base=tmp_path, order=tmp_path / "order", fault=fault, timeout=60.0)
    faulty = Recording(tmp_path / "faulty")
    found = compare(golden, faulty)
    assert found.comparable
    assert not found.equal
    assert found.replay_ended is None
    assert {t.thread for t in found.threads if t.first is not None} == {"T_0_1", "T_0"}
    assert all(t.certain for t in found.threads)
    old, new = golden.output.split(), faulty.output.split()
    assert [int(b) - int(a) for a, b in zip(old, new, strict=True) if a != b] == [64]


@pytest.mark.slow
def test_a_campaign_replays_by_itself(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says what it needs. When it continues, it replays the golden run of the first part."""
    monkeypatch.chdir(tmp_path)
    command = ["epa", "campaign", str(program), "--faults", "bitflip,skipunlock", "-o", "r.jsonl", "--html", "p.html"]
    assert main([*command, "--runs", "4", "--", "locks"]) == 0
    said = capsys.readouterr()
    assert "needs replay: the order of lock lock" in said.out
    first = (tmp_path / "r.jsonl").read_text(encoding="utf-8").splitlines()
    order = identity_of_file(tmp_path / "r.jsonl.order")
    assert main([*command, "--runs", "6", "--json", "--csv", "r.csv", "--", "locks"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["summary"]["header"]["replay"] == order
    assert found["summary"]["needs"]
    assert len(found["results"]) == 6
    assert (tmp_path / "r.jsonl").read_text(encoding="utf-8").splitlines()[1:5] == first[1:5]
    ended = [r["replay"] for r in found["results"] if r["replay"]]
    assert len(ended) == found["summary"]["diverged"] + found["summary"]["stalled"] > 0
    assert "Needs replay" in _page(program, tmp_path)
    assert "Replay" in (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "replay_ended" in (tmp_path / "r.csv").read_text(encoding="utf-8")
    assert main([*command, "--runs", "6", "--replay", "never", "--", "locks"]) == 1


def _page(program: Path, folder: Path) -> str:
    run(program, ["locks"], folder / "shown")
    assert main(["epa", "reversible", str(folder / "shown"), "--replay", "--html", str(folder / "check.html")]) == 0
    return (folder / "check.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_campaign_without_need_does_not_replay(program: Path) -> None:
    campaign = Campaign(program, [""], types=["bitflip"], runs=1)
    assert (campaign.order, campaign.header.replay, campaign.check.needs) == (None, None, [])
    campaign.close()


@pytest.mark.slow
def test_run_with_replay(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, again = str(tmp_path / "a"), str(tmp_path / "b")
    assert main(["epa", "run", str(program), "-o", trace, "--", "locks"]) == 0
    assert main(["epa", "reversible", trace]) == 1
    assert "--replay; plait epa campaign does this by itself" in capsys.readouterr().err
    assert main(["epa", "reversible", trace, "--replay"]) == 0
    assert "pseudo-deterministic with replay" in capsys.readouterr().out
    assert main(["epa", "run", str(program), "-o", again, "--replay", trace, "--yields", "3", "--", "locks"]) == 0
    assert "replayed to the end" in capsys.readouterr().err
    assert main(["epa", "compare", trace, again, "--html", str(tmp_path / "c.html")]) == 0
    assert "the faulty run replayed the golden run to the end" in capsys.readouterr().out
    other = str(tmp_path / "c")
    assert main(["epa", "run", str(program), "-o", other, "--replay", trace, "--", "tries"]) == 0
    assert "replay ended at" in capsys.readouterr().err
    for wrong in (trace, str(Path(__file__))):
        assert main(["epa", "run", str(program), "-o", trace, "--replay", wrong, "--", "locks"]) == 2
        assert "hint:" in capsys.readouterr().err
    assert main(["epa", "run", str(program), "-o", other, "--replay", again, "--", "locks"]) == 2
    assert "is a replayed run" in capsys.readouterr().err


def _protected(trace: list[Event], *, only_own: bool) -> list[Event]:
    """The trace without accesses outside of critical sections. `only_own`: each lock protects an object of its own."""
    found, held = [], {step.thread: [0] for step in trace}
    for step in trace:
        locks = held[step.thread]
        if step.op in ("lock", "read lock", "write lock"):
            locks.append(step.object)
        elif step.op in ("unlock", "rw unlock"):
            locks.pop()
        if step.op != "access":
            found.append(step)
        elif len(locks) > 1:
            found.append(step._replace(object=locks[-1] if only_own else step.object))
    return found


def test_the_check_with_replay_agrees_with_all_permutations() -> None:
    """Random traces: no permutation that keeps the order of the sections of each lock reverses two dependent events."""
    answers, helped = [], 0
    given = traces(300, start=200_000)
    protected = [_protected(trace, only_own=i % 4 > 0) for i, trace in enumerate(given)]
    reversible = [trace for trace in protected if settle(fast_check(trace))]
    for trace in [*given[:50], *reversible[:50]]:
        expected = can_be_reversed(trace, replay=True)
        pairs = settle(fast_check(trace, replay=True))
        assert all(pair.schedule is not None for pair in pairs)
        assert bool(pairs) == expected, trace
        answers.append(expected)
        helped += bool(settle(fast_check(trace))) and not expected
    assert 10 < sum(answers) < 90, "both answers occur often"
    assert helped > 5, "replay makes a difference"


def test_ordered_operations_are_sections() -> None:
    def trace(*inside: Event) -> list[Event]:
        return [Event(0, "start"), Event(0, "create", 1), Event(1, "start"), *inside, Event(0, "end"), Event(1, "end")]

    both = [
        step for t in (0, 1) for step in (Event(t, "begin", 9), Event(t, "access", 3, writes=True), Event(t, "done", 9))
    ]
    assert not fast_check(trace(*both), replay=True).pairs
    assert fast_check(trace(*both)).pairs, "sections that replay does not order can swap"
    plain = [Event(0, "access", 3, writes=True), Event(1, "access", 3, writes=True)]
    assert fast_check(trace(*plain), replay=True).pairs


def test_endings(tmp_path: Path) -> None:
    assert ending(tmp_path) is None
    (tmp_path / "replay").write_text("T_0_1 12 7 stalled\n", encoding="utf-8")
    assert ending(tmp_path) == Ending("T_0_1", 12, 7, "stalled")
    (tmp_path / "replay").write_text("broken", encoding="utf-8")
    with pytest.raises(TraceError, match="cannot be read"):
        ending(tmp_path)
    (tmp_path / "order").write_bytes(b"no")
    with pytest.raises(UsageError, match="cannot be replayed"):
        identity_of_file(tmp_path / "order")

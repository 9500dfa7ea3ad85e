"""The commands on models whose size is known by construction: a counter to n has n + 1 states and n transitions."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from plait.cli.main import main
from tests.cli.endless import ENDLESS, PLAIT
from tests.cli.toggle import TOGGLE
from tests.support.patience import PATIENCE, started, until


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return code, captured.out, captured.err


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code, out, _ = run(capsys, *arguments, "--json")
    assert out.count("\n") == 1, "exactly one line, one object"
    return code, json.loads(out)


# -- check -----------------------------------------------------------------------------------------------------------


def test_a_model_that_holds(counter: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "check", "counter.py", "-p", "limit=5")
    assert code == 0
    assert "HOLDS" in out
    assert "replay:" not in out
    assert err == "", "no terminal, so no progress"
    assert not (counter.parent / ".plait").exists()


def test_a_violation_is_saved_and_replays(counter: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "check", "counter.py", "-p", "most=1")
    assert code == 1
    assert "VIOLATED small" in out
    assert "replay: plait replay .plait/counter-small-most=1.itf.json" in out.splitlines()
    code, out, _ = run(capsys, "replay", ".plait/counter-small-most=1.itf.json")
    assert code == 0
    assert out.splitlines()[-1] == "reproduced: property small is violated after 2 steps"
    assert "number: 0 → 1" in out
    assert "number: 1 → 2" in out


def test_the_json_of_a_verdict(counter: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, verdict = run_json(capsys, "check", "counter.py", "-p", "limit=5", "--workers", "1")
    assert code == 0
    types: dict[str, tuple[type, ...]] = {
        "verdict": (str,),
        "property": (str, type(None)),
        "states": (int,),
        "transitions": (int,),
        "depth": (int,),
        "seconds": (float,),
        "states_per_second": (float,),
        "python_calls": (int,),
        "native_answers": (int,),
        "native_compared": (int,),
        "native_share": (float,),
        "local_states": (int,),
        "bytes_per_local_state": (float,),
        "search": (str,),
        "workers": (int,),
        "stack_operations": (int,),
        "stack_operations_saved": (int,),
        "reductions": (list,),
        "collision_probability": (float,),
        "bound": (str, type(None)),
        "trace": (dict, type(None)),
    }
    for key, allowed in types.items():
        assert isinstance(verdict[key], allowed), key
    assert (verdict["verdict"], verdict["property"], verdict["bound"], verdict["trace"]) == ("holds", None, None, None)
    assert verdict["local_states"] == 6, "the states of one process, without messages"
    assert verdict["native_answers"] > 0
    _, verdict = run_json(capsys, "check", "counter.py", "-p", "limit=5", "--workers", "1", "--native", "off")
    assert (verdict["native_answers"], verdict["native_share"], verdict["local_states"]) == (0, 0.0, 6)
    assert (verdict["states"], verdict["transitions"], verdict["search"], verdict["workers"]) == (6, 5, "bfs", 1)
    assert [(p["name"], p["kind"], p["status"]) for p in verdict["properties"]] == [
        ("small", "always", "holds"),
        ("end", "reachable", "holds"),
    ]


def test_the_json_of_a_violation_has_the_trace(counter: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "check", "counter.py", "-p", "most=1", "--json")
    verdict = json.loads(out)
    assert code == 1
    assert (verdict["verdict"], verdict["property"]) == ("violated", "small")
    assert len(verdict["trace"]["events"]) == 2
    assert verdict["trace"]["target"] == "counter.py:counter"
    assert "replay: plait replay" in err, "what is not data goes to stderr"


@pytest.mark.parametrize(
    ("option", "value"),
    [("--max-states", "1e1"), ("--max-depth", "2"), ("--timeout", "0.3"), ("--memory", "20M")],
)
def test_a_limit_makes_the_verdict_inconclusive(
    workplace: Path, capsys: pytest.CaptureFixture[str], option: str, value: str
) -> None:
    (workplace / "endless.py").write_text(ENDLESS)
    code, verdict = run_json(capsys, "check", "endless.py", option, value)
    assert code == 3
    assert verdict["verdict"] == "inconclusive"
    assert option.strip("-").replace("max-", "").rstrip("s") in verdict["bound"].replace("_", "-")


@pytest.mark.parametrize("search", ["bfs", "dfs", "stateless"])
def test_every_exhaustive_search_agrees(counter: Path, capsys: pytest.CaptureFixture[str], search: str) -> None:
    code, verdict = run_json(capsys, "check", "counter.py", "--search", search)
    assert (code, verdict["search"], verdict["verdict"]) == (0, search, "holds")
    code, verdict = run_json(capsys, "check", "counter.py", "-p", "most=1", "--search", search)
    assert (code, verdict["property"]) == (1, "small")


def test_random_walks_find_what_every_walk_meets(counter: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, verdict = run_json(capsys, "check", "counter.py", "-p", "most=1", "--search", "random", "--walks", "5")
    assert (code, verdict["property"]) == (1, "small")


def test_keep_going_gives_every_property_its_verdict(counter: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, verdict = run_json(capsys, "check", "counter.py", "-p", "most=1", "--keep-going")
    assert code == 1
    assert {p["name"]: p["status"] for p in verdict["properties"]} == {"small": "violated", "end": "holds"}


def test_one_property_only(counter: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, verdict = run_json(capsys, "check", "counter.py", "-p", "most=1", "--property", "end")
    assert code == 0
    assert [p["name"] for p in verdict["properties"]] == ["end"]


def test_quiet_is_one_line_and_the_replay(counter: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "check", "counter.py", "-p", "most=1", "--quiet")
    assert code == 1
    assert out.splitlines() == ["VIOLATED small", "replay: plait replay .plait/counter-small-most=1.itf.json"]
    assert err == ""


def test_files_go_where_they_are_told(counter: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(
        capsys, "check", "counter.py", "-p", "most=1", "--trace", "my trace.json", "--html", "report.html"
    )
    assert code == 1
    assert "replay: plait replay 'my trace.json'" in out.splitlines()
    assert "report: report.html" in out.splitlines()
    assert not (counter.parent / ".plait").exists()
    assert "states" in json.loads((counter.parent / "my trace.json").read_text())
    assert (counter.parent / "report.html").read_text().lower().startswith("<!doctype html>")
    assert run(capsys, "replay", "my trace.json")[0] == 0


def test_no_counterexample_no_file(counter: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "check", "counter.py", "--trace", "t.json")
    assert code == 0
    assert "no counterexample" in err
    assert not (counter.parent / "t.json").exists()


@pytest.mark.slow
def test_the_zoo_is_checked_by_name(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, verdict = run_json(capsys, "check", "paxos", "-p", "proposers=1")
    assert (code, verdict["model"]) == (0, "paxos")
    code, out, _ = run(capsys, "check", "paxos", "-p", "faulty=acceptor")
    assert code == 1
    file = next(line for line in out.splitlines() if line.startswith("replay: ")).split()[-1]
    assert run(capsys, "replay", file, "--quiet")[0] == 0


# -- replay ----------------------------------------------------------------------------------------------------------


def test_replay_stops_at_a_step_and_shows_the_state(counter: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "check", "counter.py", "-p", "most=1", "--trace", "t.json")
    code, out, _ = run(capsys, "replay", "t.json", "--step", "1")
    assert code == 0
    assert "after step 1" in out
    assert "number=1" in out
    assert "reproduced" not in out


def test_replay_of_a_model_that_moved(counter: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "check", "counter.py", "-p", "most=1", "--trace", "t.json")
    counter.rename(counter.with_name("moved.py"))
    code, _, err = run(capsys, "replay", "t.json")
    assert code == 2
    assert "counter.py" in err
    assert "--target" in err
    assert run(capsys, "replay", "t.json", "--target", "moved.py:counter")[0] == 0


def test_replay_shows_the_loop_of_a_lasso(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("toggle.py").write_text(TOGGLE)
    assert run(capsys, "check", "toggle.py", "--trace", "t.json")[0] == 1
    code, out, _ = run(capsys, "replay", "t.json")
    assert code == 0
    lines = out.splitlines()
    assert [line for line in lines if line[2:4] in ("1.", "2.", "3.", "┌─", "└─")] == [
        "  1. Worker0  begin",
        "  ┌─ the loop starts here",
        "  2. Toggle0  flip",
        "  3. Toggle0  flip",
        "  └─ back to step 2: steps 2–3 repeat",
    ]
    assert lines[-1] == "reproduced: property finished is violated: steps 2 to 3 repeat for ever"
    assert run(capsys, "replay", "t.json", "-q")[1] == f"{lines[-1]}\n"
    code, out, _ = run(capsys, "replay", "t.json", "--step", "1")
    assert "after step 1\n" in out
    assert "loop" not in out
    code, out, _ = run(capsys, "replay", "t.json", "--step", "2")
    assert "┌─" in out
    assert "└─" not in out
    assert "after step 2, in the loop of steps 2 to 3\n" in out
    assert "└─ back to step 2" in run(capsys, "replay", "t.json", "--step", "3")[1]


def test_replay_of_a_lasso_that_is_not_fair_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("toggle.py").write_text(TOGGLE)
    assert run(capsys, "check", "toggle.py", "--trace", "t.json")[0] == 1
    Path("fixed.py").write_text(TOGGLE.replace("weak(Worker.begin)", "weak(Worker)"))
    code, out, err = run(capsys, "replay", "t.json", "-q", "--target", "fixed.py")
    assert code == 2
    assert "reproduced" not in out
    assert "not fair any more" in err
    assert "weak(Worker): Worker0 work is enabled in all states of the loop and never happens" in err


def test_replay_of_a_run_that_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("toggle.py").write_text(TOGGLE.replace("return s[Worker][0].done", "return False"))
    assert run(capsys, "check", "toggle.py", "-p", "toggles=0", "--trace", "t.json")[0] == 1
    code, out, _ = run(capsys, "replay", "t.json")
    assert code == 0
    assert "┌─" not in out
    assert out.splitlines()[-1] == "reproduced: property finished is violated after 2 steps, where the run ends"


# -- show, zoo, completion, help -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_show_lists_what_the_model_is_made_of(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "show", "paxos")
    assert (code, err) == (0, "")
    for expected in ("acceptors", "faulty", "'acceptor'", "promised", "@on(Read)", "majority", "agreement", "always"):
        assert expected in out
    code, facts = run_json(capsys, "show", "paxos", "-p", "acceptors=5")
    assert code == 0
    quorums = {h["name"]: h["quorum"] for p in facts["processes"] for h in p["handlers"]}
    assert quorums["read"] == 3, "a majority of five"
    assert facts["values"]["acceptors"] == 5
    assert {"name": "acceptors", "type": "int", "required": False, "default": 3} in facts["parameters"]


@pytest.mark.slow
def test_show_tells_which_fields_are_relevant(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "show", "paxos", "-p", "quorum=false", "--decomposition")
    assert (code, err) == (0, "")
    assert "process CountingProposer" in out
    assert re.search(r"count +relevant +a test in CountingProposer.read .*\n.*-> .*\n.*-> sends Write", out)
    code, facts = run_json(capsys, "show", "paxos", "--decomposition")
    learner = next(c for c in facts["decomposition"] if c["role"] == "Learner")
    (learned,) = learner["fields"]
    assert (learned["name"], learned["auxiliary"], learned["audited"]) == ("learned", False, False)
    assert learned["reason"][-1].startswith("property agreement reads it")


def test_show_looks_at_temporal_properties_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The fields that it calls auxiliary are those that a check leaves out."""
    monkeypatch.chdir(tmp_path)
    for name, reads, auxiliary in (("a.py", "s[Worker][0].done", ["Toggle.up"]), ("b.py", "s[Toggle][0].up", [])):
        Path(name).write_text(TOGGLE.replace("s[Worker][0].done", reads))
        _, facts = run_json(capsys, "show", name, "--decomposition")
        fields = {f"{c['role']}.{f['name']}": f for c in facts["decomposition"] for f in c["fields"]}
        assert [field for field, f in fields.items() if f["auxiliary"]] == auxiliary
        _, verdict = run_json(capsys, "check", name, "--reduce", "auto")
        (note,) = (r["reason"] for r in verdict["reduction_notes"] if r["name"] == "decomposition")
        assert note.startswith("auxiliary: Toggle.up" if auxiliary else "every field is relevant")
    assert fields["Toggle.up"]["reason"][-1].startswith("property finished reads it")


def test_show_tells_which_functions_need_python(counter: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "show", "counter.py", "--native")
    assert (code, err) == (0, "")
    assert out.splitlines()[0].endswith("functions, all native")
    assert re.search(r"^  property small +native$", out, re.MULTILINE)
    slow = counter.read_text().replace("self.number += 1", "try: self.number += 1\n        finally: pass")
    Path("slow.py").write_text(slow)
    line = 1 + next(i for i, text in enumerate(slow.splitlines()) if "try:" in text)
    out = run(capsys, "show", "slow.py", "--native")[1]
    assert out.startswith("counter: 4 functions, 3 of them native\n"), "the guard, the handler, two properties"
    assert re.search(rf"^  Counter\.tick +Python  try statement, slow.py:{line}$", out, re.MULTILINE)
    code, facts = run_json(capsys, "show", "slow.py", "--native")
    assert code == 0
    (refused,) = (f for f in facts["native"] if not f["native"])
    assert refused["reason"] == {"construct": "try statement", "file": refused["file"], "line": line}
    assert all(f["reason"] is None for f in facts["native"] if f["native"])


def test_show_does_not_list_what_runs_once(counter: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first state is always computed in Python. A model of nothing else has no functions."""
    Path("idle.py").write_text(
        "from plait import Process, System, init\n\n\nclass Idle(Process):\n    number: int = 0\n\n"
        "    @init\n    def begin(self):\n        self.number = 1\n\n\n"
        "def idle() -> System:\n    return System([Idle()])\n"
    )
    assert run(capsys, "show", "idle.py", "--native")[1] == "idle: no functions\n"


def test_show_of_a_model_with_a_required_parameter(counter: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counter.write_text(counter.read_text().replace("limit: int = 3", "limit: int"))
    code, out, _ = run(capsys, "show", "counter.py")
    assert code == 0
    assert "required" in out
    assert "-p limit=…" in out
    assert "properties" in run(capsys, "show", "counter.py", "-p", "limit=2")[1]


def test_zoo(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "zoo")
    assert code == 0
    assert any(line.split()[0] == "paxos" and len(line.split()) > 3 for line in out.splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    code, out, _ = run(capsys, "completion", shell)
    assert code == 0
    assert "max-states" in out


@pytest.mark.parametrize(
    "command",
    [
        "",
        "check",
        "show",
        "graph",
        "replay",
        "zoo",
        "bmc",
        "bench",
        "completion",
    ],
)
def test_help_has_examples_and_exit_codes(capsys: pytest.CaptureFixture[str], command: str) -> None:
    code, out, err = run(capsys, *command.split(), "--help")
    assert (code, err) == (0, "")
    assert "Examples:" in out
    assert "Exit codes:" in out


@pytest.mark.slow
def test_help_loads_only_what_it_needs() -> None:
    """Start-up is timed by `plait bench startup`; here, that nothing heavy comes along."""
    code = "import sys, plait.cli.main as m; sys.argv = ['plait', '--help']\ntry: m.main()\nexcept SystemExit: pass\n"
    code += "print([n for n in sys.modules if n.startswith(('plait.report', 'plait.protocols', 'plait.cli.check'))])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
    assert out.rstrip().endswith("[]")


# -- the process around it -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_ctrl_c_ends_with_what_was_found_so_far(workplace: Path) -> None:
    (workplace / "endless.py").write_text(ENDLESS)
    command = [*PLAIT, "check", "endless.py", "--json", "--memory", "1G"]
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        until(lambda: (workplace / "running").exists() or process.poll() is not None, "the search begins")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 3, err
    verdict = json.loads(out)
    assert (verdict["verdict"], verdict["bound"]) == ("inconclusive", "interrupted")
    assert verdict["states"] > 1
    assert "Traceback" not in err


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error(counter: Path) -> None:
    process = subprocess.Popen(
        [*PLAIT, "check", "counter.py", "-p", "most=1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    err = process.stderr.read()
    assert process.wait(timeout=PATIENCE) == 1
    process.stderr.close()
    assert "Traceback" not in err
    assert "BrokenPipe" not in err


@pytest.mark.slow
def test_progress_moves_on_a_terminal_only(workplace: Path) -> None:
    (workplace / "endless.py").write_text(ENDLESS)
    command = [*PLAIT, "check", "endless.py", "--memory", "1G"]
    plain = subprocess.run([*command, "--timeout", "1.5"], capture_output=True, text=True, check=False)
    assert plain.returncode == 3
    assert "\x1b" not in plain.stdout + plain.stderr

    controller, terminal = os.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
    words = ("states", "transitions", "/s", "depth", "frontier", "MiB", "Python calls")
    shown = ""
    with started(command, stdout=subprocess.PIPE, stderr=terminal, env=environment) as process:
        os.close(terminal)
        with suppress(OSError):  # EIO: the other end is closed
            while not all(word in shown for word in words) and (chunk := os.read(controller, 65536)):
                shown += chunk.decode(errors="replace")
            process.send_signal(signal.SIGINT)
            while os.read(controller, 65536):
                pass
        out, _ = process.communicate(timeout=PATIENCE)
    os.close(controller)
    assert process.returncode == 3
    assert "\x1b" not in out
    assert [word for word in words if word not in shown] == []


@pytest.mark.slow
def test_the_shell_completes_targets(counter: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "__complete", "check", "c")
    offered = [line.split("\t")[0] for line in out.splitlines()]
    assert code == 0
    assert {"chang-roberts", "counter.py"} <= set(offered)

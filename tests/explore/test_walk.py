"""Walk: from the initial states, step by step, through a real server."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from plait.model.loading.loader import load
from tests.explore.server import Served, explored
from tests.oracle.explorer import explore
from tests.support.patience import PATIENCE


@pytest.fixture(scope="module")
def paxos() -> Iterator[Served]:
    with explored("paxos") as served:
        yield served


def test_the_model(paxos: Served) -> None:
    model = paxos.get("/api/model")
    assert model["error"] is None
    assert [lane["name"] for lane in model["lanes"]] == [repr(pid) for pid in load("paxos", {}).pids]
    assert model["initial"] == 1
    start = next(h for h in model["handlers"] if (h["role"], h["name"]) == ("Proposer", "start"))
    assert "def start" in start["source"]
    assert Path(start["file"]).name == "paxos.py"
    assert "agreement" in {prop["name"] for prop in model["properties"]}


def test_a_walk_meets_the_states_of_the_oracle() -> None:
    """Every step that is offered is taken, from every state. The number of states is that of the slow checker."""
    truth = explore(load("ping_pong", {"maximum": "3"}))
    seen: set[str] = set()
    transitions = 0
    with explored("ping_pong", "-p", "maximum=3") as served:
        waiting: list[tuple[str, ...]] = [()]
        while waiting:
            run = waiting.pop()
            walked = served.walk(*run)
            assert walked["valid"] == len(run)
            messages = {m["id"]: (m["type"], m["fields"], m["sender"]) for m in walked["trace"]["messages"]}
            pending = {lane: sorted(str(messages[i]) for i in ids) for lane, ids in walked["state"]["pending"].items()}
            state = str((walked["state"]["fields"], pending, walked["state"]["budgets"], walked["state"]["status"]))
            if state not in seen:
                seen.add(state)
                transitions += len(walked["enabled"])
                waiting += [(*run, step["key"]) for step in walked["enabled"]]
    assert (len(seen), transitions) == (truth.states, truth.transitions)


def test_what_a_step_takes_sends_and_changes_is_what_it_then_does(paxos: Served) -> None:
    run: list[str] = []
    for _ in range(8):
        walked = paxos.walk(*run)
        step = walked["enabled"][0]
        after = paxos.walk(*run, step["key"])
        event = after["trace"]["events"][-1]
        messages = {m["id"]: m for m in after["trace"]["messages"]}
        assert (event["lane"], event["label"], event["kind"]) == (step["lane"], step["label"], step["kind"])
        assert event["consumed"] == [m["id"] for m in step["consumed"]]
        assert [messages[i] | {"id": None} for i in event["sent"]] == step["sent"]
        assert event["changed"] == step["changed"]
        run.append(step["key"])


def test_differences_are_what_the_step_changed(paxos: Served) -> None:
    walked = paxos.walk("start@Proposer0")
    assert walked["trace"]["events"][-1]["changed"].keys() == {"phase"}
    found = {d["path"]: (d["before"], d["after"]) for d in walked["differences"]}
    assert found["Proposer0.phase"] == ({"#enum": "Phase.IDLE"}, {"#enum": "Phase.READING"})
    assert len([path for path in found if path.startswith("Acceptor")]) == 3, "a message for each acceptor"
    other = {"initial": 0, "steps": ["start@Proposer1"]}
    found = {d["path"]: d["after"] for d in paxos.walk("start@Proposer0", compare=other)["differences"]}
    assert found["Proposer1.phase"] == {"#enum": "Phase.IDLE"}


def test_what_is_disabled_has_the_part_of_the_guard_that_is_false(paxos: Served) -> None:
    walked = paxos.walk("start@Proposer0")
    found = {(d["lane"], d["handler"]): d["reasons"] for d in walked["disabled"]}
    assert ("Proposer0", "start") in found
    assert ("Proposer1", "start") not in found, "it is possible"
    said = {r["text"]: r["value"] for r in found["Proposer0", "start"]}
    assert said["self.phase is Phase.IDLE"] == "False"
    assert any("no " in r["text"] and "pending" in r["text"] for r in found["Learner0", "learn"])
    assert not {(d["lane"], d["handler"]) for d in walked["disabled"]} & {
        (e["lane"], e["label"]) for e in walked["enabled"]
    }


def test_watches_are_evaluated_in_each_state(paxos: Served) -> None:
    watches = ["len(s.messages)", "{a.id: a.promised for a in s[Acceptor]}", "1 / 0", "open('x')", "s[", "s[Acceptor]"]
    before, after = (paxos.walk(*run, watches=watches)["watches"] for run in ((), ("start@Proposer0",)))
    assert [w["text"] for w in before] == watches
    assert (before[0]["value"], after[0]["value"]) == (0, 3)
    assert after[1]["value"] == {"#map": [[{"#pid": f"Acceptor{i}"}, 0] for i in range(3)]}
    assert "division by zero" in before[2]["error"]
    assert "open(…)" in before[3]["error"]
    assert all(w["error"] for w in before[2:])


def test_executed_lines_and_values(paxos: Served) -> None:
    walked = paxos.walk("start@Proposer0")
    step = next(e for e in walked["enabled"] if e["lane"] == "Acceptor0")
    (source,) = [s for s in paxos.walk("start@Proposer0", step["key"])["source"] if s["handler"].startswith("Acceptor")]
    lines = dict(enumerate(source["lines"], source["first"]))
    executed = {lines[number].strip() for number in source["executed"]}
    assert any("self.promised" in line for line in executed)
    assert not any(line.startswith("def ") for line in executed)
    assert any("m.ballot = 1" in said for said in source["values"].values())


def test_a_run_is_kept_as_far_as_it_exists(paxos: Served) -> None:
    walked = paxos.walk("start@Proposer0", "start@Proposer0", "start@Proposer1")
    assert walked["valid"] == 1
    assert walked["gone"] == {"step": 1, "reason": "start of Proposer0 is not possible here"}
    for key, reason in [
        ("start@Proposer9", "the model has no step 'start@Proposer9'"),
        ("nap@Proposer0", "Proposer0 has no handler 'nap'"),
        ("promise@Acceptor0:AAAA", "promise of Acceptor0 is possible, but with other messages or choices"),
    ]:
        assert paxos.walk("start@Proposer0", key)["gone"]["reason"] == reason
    far = paxos.post("/api/walk", {"run": {"initial": 7, "steps": ["a"]}})
    assert (far["valid"], far["gone"]["step"]) == (0, 0)


def test_only_later_events_are_sent_on_request(paxos: Served) -> None:
    run: list[str] = []
    for _ in range(6):
        run.append(paxos.walk(*run)["enabled"][0]["key"])
    whole, later = paxos.walk(*run)["trace"], paxos.walk(*run, have=4)["trace"]
    assert later["events"] == whole["events"][4:]
    sent = {i for event in whole["events"][4:] for i in event["sent"]}
    assert {m["id"] for m in later["messages"]} == sent
    assert later["messages"] == [m for m in whole["messages"] if m["id"] in sent]
    assert paxos.walk(*run, have=99)["trace"]["events"] == []


def test_properties_at_the_end_of_a_run() -> None:
    with explored("paxos", "-p", "faulty=acceptor") as served:
        start = {p["name"]: p["status"] for p in served.walk()["properties"]}
        assert start["agreement"] == "holds"
        found = served.searched(kind="check")
        assert found["status"] == "violated"
        walked = served.walk(*found["run"]["steps"])
        assert walked["gone"] is None
        end = {p["name"]: p for p in walked["properties"]}
        assert end["agreement"]["status"] == "violated"
        assert end["agreement"]["detail"]


def test_a_temporal_property_says_what_is_open(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        """
from plait import Process, System, action, eventually, ltl

class Counter(Process):
    n: int = 0
    @action(when=lambda self: self.n < 2)
    def up(self):
        self.n += 1

two = eventually(lambda s: s[Counter][0].n == 2, name="two")
low = ltl("G low", low=lambda s: s[Counter][0].n < 2, name="low")
model = System([Counter()], properties=[two, low])
"""
    )
    with explored("model.py", folder=tmp_path) as served:
        found = [
            {p["name"]: p["status"] for p in served.walk(*["up@Counter0"] * steps)["properties"]} for steps in range(3)
        ]
    assert found == [
        {"two": "open", "low": "open"},
        {"two": "open", "low": "open"},
        {"two": "satisfied", "low": "violated"},
    ]


def test_faults_are_steps(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        """
from plait import Message, Process, System, action, crash_stop, on, unordered

class Hello(Message):
    pass

class A(Process):
    sent: bool = False
    @action(when=lambda self: not self.sent)
    def greet(self):
        self.sent = True
        self.broadcast(B, Hello())

class B(Process):
    heard: int = 0
    @on(Hello)
    def hear(self, m):
        self.heard += 1
        assert self.heard < 1, "too loud"

model = System([A(), B()], network=unordered(lossy=True, losses=1), faults=[crash_stop(B, budget=1)])
"""
    )
    with explored("model.py", folder=tmp_path) as served:
        walked = served.walk("greet@A0")
        steps = {step["kind"]: step for step in walked["enabled"]}
        assert steps.keys() == {"step", "lose", "crash"}
        assert walked["state"]["budgets"] == {"losses": 1, "crashes": 1}
        assert "too loud" in steps["step"]["note"]
        lost = served.walk("greet@A0", steps["lose"]["key"])
        assert lost["state"]["budgets"] == {"losses": 0, "crashes": 1}
        crashed = served.walk("greet@A0", steps["crash"]["key"])
        assert crashed["state"]["status"] == {"B0": "crashed"}
        assert {"lane": "B0", "handler": None, "reasons": [{"text": "it is crashed", "value": ""}]} in crashed[
            "disabled"
        ]
        failed = served.walk("greet@A0", steps["step"]["key"])
        assert failed["enabled"] == []
        assert {"assertions"} == {p["name"] for p in failed["properties"] if p["status"] == "violated"}


def test_an_exported_test_passes_and_an_exported_trace_replays(paxos: Served, tmp_path: Path) -> None:
    run: list[str] = []
    for _ in range(5):
        run.append(paxos.walk(*run)["enabled"][-1]["key"])
    body = {"run": {"initial": 0, "steps": run}}
    test = paxos.ask("POST", "/api/export", {**body, "format": "pytest"})
    name = re.search(r'filename="(.*)"', test.headers["content-disposition"])
    assert name is not None
    (tmp_path / name[1]).write_bytes(test.body)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", name[1]]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout
    trace = tmp_path / "run.itf.json"
    trace.write_bytes(paxos.ask("POST", "/api/export", {**body, "format": "itf"}).body)
    command = [sys.executable, "-m", "plait.cli.main", "replay", str(trace)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"reproduced after {len(run)} steps", "no property is violated"
    plain = paxos.ask("POST", "/api/export", {**body, "format": "json"}).json
    assert [event["lane"] for event in plain["events"]] == [key.partition("@")[2].partition(":")[0] for key in run]


ODD = """
from plait import Message, Process, System, action, always, on

class Größe(Message):
    wert: str

class Zähler(Process):
    ß: str = "<img src=x onerror=alert(1)>"
    ключ: int = 0

    @action(when=lambda self: self.ключ < 2)
    def 上げる(self):
        self.ключ += 1
        self.send(self.ids(Zähler)[0], Größe("</script><svg/onload=alert(2)>"))

    @on(Größe)
    def nimm(self, m):
        raise ValueError("<i>kaputt</i>")

@always
def teilbar(s):
    return 1 / (s[Zähler][0].ключ - 2) < 10

model = System([Zähler()], properties=[teilbar])
"""


def test_names_and_values_of_any_kind(tmp_path: Path) -> None:
    """Names are not ASCII, values look like HTML, a handler and a property raise exceptions."""
    (tmp_path / "odd.py").write_text(ODD, encoding="utf-8")
    with explored("odd.py", folder=tmp_path) as served:
        first = served.walk()
        assert [step["key"] for step in first["enabled"]] == ["上げる@Zähler0"]
        assert first["state"]["fields"]["Zähler0"]["ß"] == "<img src=x onerror=alert(1)>"
        (fails,) = [step for step in served.walk("上げる@Zähler0")["enabled"] if step["label"] == "nimm"]
        assert "ValueError: <i>kaputt</i>" in fails["note"]
        failed = served.walk("上げる@Zähler0", fails["key"])
        assert {p["name"]: p["status"] for p in failed["properties"]}["no_exceptions"] == "violated"
        raised = served.walk("上げる@Zähler0", "上げる@Zähler0")["properties"]
        assert [(p["status"], "ZeroDivisionError" in p["detail"]) for p in raised] == [("violated", True)]
        assert served.post("/api/graph", {})["nodes"]
        assert served.get("/api/coverage")["files"]


def test_a_model_without_steps(tmp_path: Path) -> None:
    (tmp_path / "still.py").write_text(
        "from plait import Process, System\nclass Alone(Process):\n    n: int = 0\nmodel = System([Alone()])\n"
    )
    with explored("still.py", folder=tmp_path) as served:
        walked = served.walk()
        assert (walked["enabled"], walked["terminal"], walked["trace"]["loop"]) == ([], True, None)
        assert [one["reasons"][0]["text"] for one in walked["disabled"]] == ["it has no handlers"]
        assert len(served.post("/api/graph", {})["nodes"]) == 1


def test_a_run_that_comes_back_has_a_loop(tmp_path: Path) -> None:
    """A switch that is turned on and off: after two steps, the run is where it began; a longer loop can be wanted."""
    (tmp_path / "switch.py").write_text(
        """
from plait import Process, System, action

class Switch(Process):
    on: bool = False

    @action
    def turn(self):
        self.on = not self.on

model = System([Switch()])
"""
    )
    with explored("switch.py", folder=tmp_path) as served:
        turn = "turn@Switch0"
        assert [served.walk(*[turn] * n)["trace"]["loop"] for n in range(5)] == [None, None, 0, 1, 2]
        for wanted, loop in [(0, 0), (2, 2), (1, 2), (99, 2)]:
            body = {"run": {"steps": [turn] * 4, "loop": wanted}}
            assert served.post("/api/walk", body)["trace"]["loop"] == loop
        itf = served.ask("POST", "/api/export", {"run": {"steps": [turn] * 2}, "format": "itf"}).json
        assert itf["loop"] == 0

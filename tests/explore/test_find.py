"""Find, and see the whole: searches in the background, the collapsed state graph, coverage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from plait import check
from plait.model.loading.loader import load
from tests.explore.server import Served, explored
from tests.oracle.explorer import Exploration, explore


@pytest.fixture(scope="module")
def paxos() -> Iterator[Served]:
    with explored("paxos", "-p", "faulty=acceptor") as served:
        yield served


def test_a_violation_opens_as_a_run_that_can_be_forked(paxos: Served) -> None:
    found = paxos.searched(kind="check")
    assert found["status"] == "violated"
    steps = found["run"]["steps"]
    for count in (len(steps), len(steps) // 2):
        walked = paxos.walk(*steps[:count])
        assert (walked["valid"], walked["gone"]) == (count, None)
    here = {"initial": 0, "steps": steps[: len(steps) // 2]}
    again = paxos.searched(kind="check", **{"from": here})
    assert again["status"] == "violated"
    assert again["run"]["steps"][: len(here["steps"])] == here["steps"]
    end = paxos.walk(*again["run"]["steps"])
    assert {p["name"] for p in end["properties"] if p["status"] == "violated"} == {"agreement"}


def test_a_state_where_an_expression_is_true(paxos: Served) -> None:
    text = "any(l.learned for l in s[Learner])"
    found = paxos.searched(kind="find", expression=text)
    assert found["status"] == "found"
    *before, last = found["run"]["steps"]
    (there,) = paxos.walk(*before, last, watches=[text])["watches"]
    (short,) = paxos.walk(*before, watches=[text])["watches"]
    assert (there["value"], short["value"]) == (True, False)
    later = paxos.searched(kind="find", expression="len(s.messages) == 0", **{"from": found["run"]})
    assert later["status"] in ("found", "not found")
    assert paxos.searched(kind="find", expression="len(s.messages) > 99")["status"] == "not found"
    wrong = paxos.searched(kind="find", expression="s[Learner][0].nope")
    assert wrong["status"] == "error"
    assert "an attribute that is missing" in wrong["text"]


def test_a_limit_makes_a_search_inconclusive(paxos: Served) -> None:
    found = paxos.searched(kind="find", expression="False", options={"max_states": 10})
    assert found["status"] == "inconclusive"


def test_whether_a_process_can_still_act(paxos: Served) -> None:
    found = paxos.searched(kind="can", lane="Learner0", handler="learn")
    assert found["status"] == "found"
    assert found["run"]["steps"][-1].startswith("learn@Learner0")
    last = paxos.walk(*found["run"]["steps"])["trace"]["events"][-1]
    assert (last["lane"], last["label"]) == ("Learner0", "learn")
    started = {"initial": 0, "steps": ["start@Proposer0"]}
    assert paxos.searched(kind="can", lane="Proposer0", handler="start", **{"from": started})["status"] == "not found"
    assert paxos.searched(kind="can", lane="Nobody0", handler="start")["status"] == "error"


def test_how_many_ways_lead_to_a_state() -> None:
    """n counters up to 2: the ways to (2, …, 2) are the multinomial coefficient."""
    with explored(str(Path(__file__).parent / "counters.py")) as served:
        run = [f"up@Counter{i}" for i in range(3) for _ in range(2)]
        found = served.searched(kind="ways", **{"from": {"initial": 0, "steps": run}})
    assert found["count"] == 90  # 6! / (2! 2! 2!)


def test_the_graph_marks_violations(paxos: Served) -> None:
    graph = paxos.post("/api/graph", {"projection": {"fields": ["Learner.learned"]}})
    assert graph["states"] == sum(node["count"] for node in graph["nodes"]) > 0
    assert sum(node["violating"] for node in graph["nodes"]) > 0


def test_the_collapsed_graph() -> None:
    """Its counts are those of all states: of the oracle, and of a check."""
    setting = {"faulty": "acceptor", "acceptors": "2"}
    truth = explore(load("paxos", setting))
    with explored("paxos", *(word for name, value in setting.items() for word in ("-p", f"{name}={value}"))) as paxos:
        _compare_collapsed(paxos, truth)


def _compare_collapsed(paxos: Served, truth: Exploration) -> None:
    by_field = paxos.post("/api/graph", {"projection": {"fields": ["Proposer.phase"]}})
    by_text = paxos.post("/api/graph", {"projection": {"expression": "[p.phase for p in s[Proposer]]"}})
    for graph in (by_field, by_text):
        assert graph["complete"]
        assert graph["states"] == sum(node["count"] for node in graph["nodes"]) == truth.states
        assert sum(node["terminal"] for node in graph["nodes"]) == truth.terminal
        assert [node["id"] for node in graph["nodes"] if node["initial"]] == [0]
        assert all(
            edge["label"].partition(".")[0].endswith(("Proposer", "Acceptor", "Learner")) for edge in graph["edges"]
        )
    assert sorted(n["count"] for n in by_field["nodes"]) == sorted(n["count"] for n in by_text["nodes"])
    for node in by_text["nodes"]:
        walked = paxos.walk(*node["run"]["steps"], watches=["[p.phase for p in s[Proposer]]"])
        phases = [value["#enum"] for value in walked["watches"][0]["value"]]
        assert node["label"] == f"[{', '.join(phases)}]"


def test_the_whole_graph_of_a_small_model() -> None:
    with explored("ping_pong", "-p", "maximum=3") as served:
        graph = served.post("/api/graph", {})
        few = served.post("/api/graph", {"most": 3})
        here = served.post("/api/graph", {"from": graph["nodes"][-1]["run"]})
    truth = explore(load("ping_pong", {"maximum": "3"}))
    assert len(graph["nodes"]) == truth.states
    assert sum(edge["count"] for edge in graph["edges"]) == truth.transitions
    assert (len(few["nodes"]), few["complete"]) == (3, False)
    assert len(here["nodes"]) == 1


def test_coverage_on_the_source() -> None:
    with explored("paxos", "-p", "proposers=1") as served:
        found = served.get("/api/coverage")
    expected = check(load("paxos", {"proposers": "1"}), coverage=True, keep_going=True).coverage
    assert expected is not None
    assert found["over"] == expected.over
    steps = {f"{h.role}.{h.name}": h.steps for h in expected.handlers}
    for file in found["files"]:
        reached = {count for count in file["hits"].values() if count}
        assert reached <= {steps[file["handler"]]}
        assert all(file["first"] <= int(line) < file["first"] + len(file["lines"]) for line in file["hits"])
    assert dict(found["summary"]).keys() >= {"handlers", "guards", "bodies"}

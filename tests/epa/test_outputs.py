"""Files for other programs: Perfetto and pandas. What they say must be what the trace says."""

from __future__ import annotations

import copy
import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from plait.epa.campaign import Result
from plait.epa.faults import Fault, parse
from plait.epa.output.chrome import write_chrome
from plait.epa.output.rows import write_events, write_results
from plait.epa.recording import ENTER, LOAD, RETURN
from tests.epa.conftest import Record
from tests.epa.trace_events import wrong

FAULT = "bitflip:422:T_0_5:27:16384"


def table(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as given:
        return list(csv.DictReader(given))


@pytest.mark.slow
def test_perfetto(record: Record, tmp_path: Path) -> None:
    recording = record("kmeans.c", "2", "20", fault=parse(FAULT))
    count = write_chrome(recording, tmp_path / "t.json")
    file = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))
    assert wrong(file) == []
    events: list[dict[str, Any]] = file["traceEvents"]
    assert len(events) == count
    names = {e["tid"]: e["args"]["name"] for e in events if e["name" if "name" in e else "ph"] == "thread_name"}
    assert list(names.values()) == [t.name for t in recording.threads]
    calls = Counter(recording.threads[t].name for t, _, row in recording.merged() if row[1] == ENTER)
    assert Counter(names[e["tid"]] for e in events if e["ph"] == "B") == calls
    (fault,) = [e for e in events if e["ph"] == "i" and e["name"].startswith("fault")]
    assert names[fault["tid"]] == "T_0_5"
    assert "kmeans.c:21" in fault["name"]


@pytest.mark.slow
def test_perfetto_of_a_run_that_was_cut_off(record: Record, tmp_path: Path) -> None:
    """A crash leaves calls that never return. Their slices end where the trace ends."""
    crash = "#include <stdlib.h>\nstatic void f(int n) { if (n) f(n - 1); else abort(); }\nint main(void) { f(3); }\n"
    recording = record(crash, expect=None)
    kinds = Counter(row[1] for _, _, row in recording.merged())
    assert kinds[ENTER] > kinds[RETURN]
    write_chrome(recording, tmp_path / "t.json")
    assert wrong(json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))) == []


def test_the_rules_can_fail() -> None:
    event = {"ph": "B", "pid": 1, "tid": 2, "ts": 3, "name": "f"}
    end = {"ph": "E", "pid": 1, "tid": 2, "ts": 4}
    assert wrong({"traceEvents": [event, end]}) == []
    assert wrong([event, end]) != []
    for change in ({"ph": "Z"}, {"pid": None}, {"tid": "T_0"}, {"ts": -1}, {"name": None}, {"ts": 9}, {"args": 1}):
        assert wrong({"traceEvents": [{**copy.deepcopy(event), **change}, end]}) != [], change
    for events in ([event], [end], [event, {**end, "tid": 3}]):
        assert wrong({"traceEvents": events}) != []
    assert wrong({"traceEvents": [{**event, "ph": "M"}]}) != []
    assert wrong({"traceEvents": [{**event, "ph": "i", "s": "x"}]}) != []


@pytest.mark.slow
def test_events_as_a_table(record: Record, tmp_path: Path) -> None:
    recording = record("kmeans.c", "2", "20", fault=parse(FAULT))
    count = write_events(recording, tmp_path / "events.csv")
    rows = table(tmp_path / "events.csv")
    assert len(rows) == count == sum(1 for _ in recording.merged())
    assert [int(r["position"]) for r in rows] == list(range(count))
    for thread in recording.threads:
        mine = [int(r["index"]) for r in rows if r["thread"] == thread.name]
        assert mine == list(range(len(mine)))
    (struck,) = [r for r in rows if r["fault"] == "1"]
    shown = [struck[k] for k in ("thread", "site", "opcode", "function", "line", "value")]
    assert shown == ["T_0_5", "422", "sub", "distance", "21", "16466"]
    loads = sum(row[1] == LOAD for _, _, row in recording.merged())
    assert sum(r["opcode"] == "load" and r["address"] != "" for r in rows) == loads
    assert write_events(recording, tmp_path / "one.csv", "T_0_5") == sum(r["thread"] == "T_0_5" for r in rows)
    assert table(tmp_path / "one.csv") == [r for r in rows if r["thread"] == "T_0_5"]


def test_results_as_a_table(tmp_path: Path) -> None:
    results = [
        Result(i, Fault("bitflip", 7, "T_0_1", i, 1 << 63), "sdc", True, False, True, 0.5, 'a "b", c.c:3')
        for i in (1, 0)
    ]
    assert write_results(results, tmp_path / "r.csv") == 2
    first, second = table(tmp_path / "r.csv")
    assert (first["run"], second["run"]) == ("0", "1")
    assert (first["place"], first["value"], first["outcome"]) == ('a "b", c.c:3', str(1 << 63), "sdc")
    assert (first["deviates"], first["propagates"], first["seconds"]) == ("1", "0", "0.5")

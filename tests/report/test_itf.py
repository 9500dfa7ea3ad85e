"""Saved traces: nothing is lost, other tools see ITF, and a bad file is an error that says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from plait.kernel.errors import TraceError
from plait.kernel.trace import Event, Lane, Snapshot, Trace
from plait.report.itf import load_trace, save_trace
from tests.report import samples


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "saved.itf.json"
    save_trace(samples.paxos(), path)
    return path


@pytest.mark.parametrize("name", samples.SAMPLES)
def test_roundtrip_loses_nothing(name: str, tmp_path: Path) -> None:
    trace = samples.SAMPLES[name]()
    save_trace(trace, tmp_path / "t.itf.json")
    assert load_trace(tmp_path / "t.itf.json") == trace


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(samples.traces())
def test_roundtrip_of_any_trace(tmp_path_factory: pytest.TempPathFactory, trace: Trace) -> None:
    path = tmp_path_factory.mktemp("itf") / "t.itf.json"
    save_trace(trace, path)
    assert load_trace(path) == trace


def test_other_tools_see_an_itf_run(saved: Path) -> None:
    trace = samples.paxos()
    itf = json.loads(saved.read_text())
    assert itf["#meta"]["format"] == "ITF"
    assert "loop" not in itf
    assert len(itf["states"]) == len(trace.events) + 1
    for index, state in enumerate(itf["states"]):
        assert state["#meta"]["index"] == index
        assert set(state) == {"#meta", *itf["vars"]}
    assert {"Proposer0", "Acceptor2", "pending", "monitors"} <= set(itf["vars"])
    assert itf["states"][2]["Acceptor0"] == {"promised": 1, "accepted": None}


def test_loop_is_the_index_of_the_state_that_recurs(tmp_path: Path) -> None:
    trace = samples.lasso()
    save_trace(trace, tmp_path / "lasso.itf.json")
    itf = json.loads((tmp_path / "lasso.itf.json").read_text())
    again, last = itf["states"][itf["loop"]], itf["states"][-1]
    assert {v: again[v] for v in itf["vars"]} == {v: last[v] for v in itf["vars"]}


def test_lanes_named_like_the_other_variables(tmp_path: Path) -> None:
    names = ["pending", "pending'", "#meta", ""]
    snapshot = Snapshot(fields={name: {"x": i} for i, name in enumerate(names)})
    lanes = [Lane(name, "Odd") for name in names]
    trace = Trace(target="t", parameters={}, property=None, lanes=lanes, messages=[], initial=snapshot, events=[])
    save_trace(trace, tmp_path / "odd.itf.json")
    assert load_trace(tmp_path / "odd.itf.json") == trace


def refused(path: Path) -> str:
    """The error of a file that must not load: it names the file and the next act."""
    with pytest.raises(TraceError) as caught:
        load_trace(path)
    assert str(path) in caught.value.message
    assert caught.value.hint
    return caught.value.message


def test_missing_file(tmp_path: Path) -> None:
    assert "cannot be read" in refused(tmp_path / "none.itf.json")


def test_directory(tmp_path: Path) -> None:
    assert "cannot be read" in refused(tmp_path)


@pytest.mark.parametrize("content", [b"", b"not json", b"\xff\xfe\x00", b"[" * 5000, b'{"a": 1} trailing'])
def test_not_json(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    assert "JSON" in refused(path)


def test_truncated_anywhere(saved: Path) -> None:
    content = saved.read_bytes().rstrip()
    for end in range(0, len(content), 211):
        saved.write_bytes(content[:end])
        refused(saved)


def test_other_itf(tmp_path: Path) -> None:
    path = tmp_path / "apalache.itf.json"
    path.write_text(
        json.dumps({"#meta": {"format": "ITF"}, "vars": ["x"], "states": [{"#meta": {"index": 0}, "x": 1}]})
    )
    assert "another ITF file" in refused(path)


def test_other_json(tmp_path: Path) -> None:
    for i, other in enumerate(["[]", "1", "null", "{}", '{"#meta": 3, "vars": [], "states": []}']):
        path = tmp_path / f"{i}.json"
        path.write_text(other)
        refused(path)


def edited(path: Path, *steps: str | int, value: Any = None) -> Path:
    """Replace what is at a place of the document, or remove it."""
    document = json.loads(path.read_text())
    place = document
    for step in steps[:-1]:
        place = place[step]
    if value is None:
        del place[steps[-1]]
    else:
        place[steps[-1]] = value
    path.write_text(json.dumps(document))
    return path


def test_other_version(saved: Path) -> None:
    message = refused(edited(saved, "#meta", "plait", "version", value=99))
    assert "expected version 1" in message
    assert "99" in message


@pytest.mark.parametrize(
    "place",
    [
        ("#meta",),
        ("vars",),
        ("states",),
        ("#meta", "variables"),
        *(
            ("#meta", "plait", f)
            for f in ("format", "version", "target", "parameters", "lanes", "messages", "property")
        ),
        ("#meta", "plait", "messages", 0, "receiver"),
        ("states", 3, "#meta"),
        ("states", 3, "#meta", "event"),
        ("states", 3, "#meta", "event", "lane"),
        ("states", 3, "pending"),
        ("states", 3, "Acceptor0"),
    ],
    ids=str,
)
def test_missing_part(saved: Path, place: tuple[str | int, ...]) -> None:
    refused(edited(saved, *place))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("states",), []),
        (("states", 1, "pending"), {"Acceptor0": [999]}),
        (("states", 1, "pending"), ["Acceptor0"]),
        (("states", 1, "#meta", "event", "kind"), "explode"),
        (("states", 1, "#meta", "event", "sent"), [999]),
        (("states", 1, "#meta", "event", "changed"), {"x": [1]}),
        (("states", 1, "Acceptor0"), 7),
        (("states", 1, "Acceptor0"), {"x": {"#tup": 7}}),
        (("states", 1, "Acceptor0"), {"x": {"#map": [[1]]}}),
        (("#meta", "plait", "loop"), 99),
        (("#meta", "plait", "lanes"), "Acceptor0"),
    ],
    ids=str,
)
def test_wrong_part(saved: Path, place: tuple[str | int, ...], value: Any) -> None:
    refused(edited(saved, *place, value=value))


def test_cannot_write(tmp_path: Path) -> None:
    path = tmp_path / "no" / "such" / "directory" / "t.json"
    with pytest.raises(TraceError, match="cannot be written") as caught:
        save_trace(samples.lasso(), path)
    assert str(path) in caught.value.message


def test_a_value_that_json_cannot_hold(tmp_path: Path) -> None:
    trace = samples.Run({"Node0": {"x": object()}}).trace()
    with pytest.raises(TraceError, match="JSON cannot"):
        save_trace(trace, tmp_path / "t.json")


def test_the_two_entries_of_a_loop_must_agree(tmp_path: Path) -> None:
    """A viewer of ITF shows the one, a replay takes the other."""
    file = tmp_path / "run.itf.json"
    event = Event("A0", "step", "go", Snapshot({"A0": {}}))
    save_trace(Trace("m", {}, None, [Lane("A0", "A")], [], Snapshot({"A0": {}}), [event], loop=0), file)
    document = json.loads(file.read_text())
    assert load_trace(file).loop == document["loop"] == 0
    del document["loop"]
    file.write_text(json.dumps(document))
    with pytest.raises(TraceError, match=r'"loop" is None, and .* is 0'):
        load_trace(file)

"""Reading logs: the format, its schema, what is wrong with a line, the order of events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plait.conform.log import merged, of_records, read_lines, schema
from plait.conform.mapping import conforms, mapped
from plait.conform.opentelemetry import read_spans
from plait.conform.search import conform
from plait.kernel.errors import UsageError
from plait.kernel.verdict import Conformance
from plait.model.loading.loader import load

ROOT = Path(__file__).parents[2]
LOGS = ROOT / "examples" / "logs"
LEASE = "examples/lease.py"


def checked(*records: dict[str, Any], header: dict[str, Any] | None = None, **options: Any) -> Conformance:
    lines = [json.dumps({"plait": 1, **(header or {})}), *map(json.dumps, records)]
    return conform(load(str(ROOT / LEASE), {"fencing": "true"}), read_lines("a.jsonl", lines), **options)


def grant(token: int, client: str, **more: Any) -> dict[str, Any]:
    return {"at": "Lock0", "send": {"type": "Grant", "fields": {"token": token}, "to": client, **more}}


def test_the_schema_is_published() -> None:
    published = json.loads((ROOT / "docs" / "reference" / "conform-log.schema.json").read_text(encoding="utf-8"))
    assert published == schema(), "write it again: python -m plait.conform.log"
    record = published["$defs"]["Record"]
    assert record["required"] == ["at"]
    assert record["additionalProperties"] is False
    for log in LOGS.glob("*.jsonl"):
        for line in log.read_text(encoding="utf-8").splitlines()[1:]:
            assert json.loads(line).keys() <= record["properties"].keys()


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"step": "work"}, "a.jsonl:2: not an event: Object missing required field `at`"),
        ({"at": "Client0"}, "a.jsonl:2: the event says nothing"),
        ({"at": "Client9", "step": "work"}, "a.jsonl:2: the model has no process 'Client9'"),
        ({"at": "Client0", "step": "wrok"}, "a.jsonl:2: Client has no handler 'wrok'"),
        ({"at": "Client0", "stpe": "work"}, "a.jsonl:2: not an event: Object contains unknown field `stpe`"),
        ({"at": "Lock0", "state": {"tokens": 1}}, "a.jsonl:2: Lock has no field 'tokens'"),
        ({"at": "Lock0", "state": {"token": "1"}}, "a.jsonl:2: Lock.token: '1' is not int"),
        ({"at": "Lock0", "state": {"holder": "Lock7"}}, "a.jsonl:2: Lock.holder: 'Lock7' is not Pid or NoneType"),
        (grant(1, "Nobody"), "a.jsonl:2: there is no process 'Nobody'"),
        ({"at": "Lock0", "send": {"type": "Gratn"}}, "a.jsonl:2: there is no message 'Gratn'"),
        ({"at": "Lock0", "send": {"type": "Grant", "fields": {"to": 1}}}, "a.jsonl:2: Grant has no field 'to'"),
        ({"at": "Lock0", "send": {"fields": {"token": 1}}}, "a.jsonl:2: a message with fields has no type"),
    ],
)
def test_wrong_lines(record: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as error:
        checked(record)
    assert str(error.value).startswith(message)
    assert error.value.hint


def test_wrong_logs() -> None:
    with pytest.raises(UsageError, match="the message 1 is sent by another event, too"):
        checked(grant(1, "Client0", id=1), grant(2, "Client1", id=1))
    with pytest.raises(UsageError, match="there is no role 'Server'"):
        checked(grant(1, "Client0"), header={"complete": ["steps@Server"]})
    with pytest.raises(UsageError, match="'step' is no handler"):
        checked(grant(1, "Client0"), complete=["step"])
    with pytest.raises(UsageError, match="two events of Lock0 have the same number"):
        checked({**grant(1, "Client0"), "clock": {"Lock0": 1}}, {**grant(2, "Client1"), "clock": {"Lock0": 1}})
    with pytest.raises(UsageError, match="not an event"):
        read_lines("a", ["no json"])
    with pytest.raises(UsageError, match="not a header"):
        read_lines("a", ['{"plait": 2}'])
    clocks = [{"at": "Lock0", "step": "grant", "clock": {"Lock0": 1, "Client0": 1}}]
    clocks += [{"at": "Client0", "step": "work", "clock": {"Client0": 1, "Lock0": 1}}]
    with pytest.raises(UsageError, match="the event comes before itself"):
        checked(*clocks)
    both = merged([of_records(name, [(f"{name}:1", grant(1, "Client0"))]) for name in ("a", "b")])
    with pytest.raises(UsageError, match="in an order that is not known"):
        conform(load(str(ROOT / LEASE)), both)


def test_clocks_order_the_events_of_a_process() -> None:
    """Threads of a process may write their lines late."""
    events = [{**grant(2, "Client1"), "clock": {"Lock0": 2}}, {**grant(1, "Client0"), "clock": {"Lock0": 1}}]
    assert checked(*events).status == "conforms"
    assert checked(*({**e, "clock": {"Lock0": 3 - e["clock"]["Lock0"]}} for e in events)).status == "deviates"


def test_names_of_the_log() -> None:
    renamed = {"at": "lock", "send": {"type": "Grant", "fields": {"token": 1}, "to": "c1"}, "state": {"holder": "c1"}}
    header = {"processes": {"lock": "Lock0", "c1": "Client1"}}
    assert checked(renamed, header=header).status == "conforms"


def test_receives_come_after_sends() -> None:
    """With the same id: the client cannot work before the grant that it receives was sent."""
    events = [{"at": "Client0", "step": "work", "receive": {"type": "Grant", "id": 7}}, grant(1, "Client0", id=7)]
    assert checked(*events).status == "conforms"  # the order of lines of different processes means nothing
    wrong = [{"at": "Client0", "step": "work", "receive": {"type": "Grant", "id": 7}}, grant(1, "Client1", id=7)]
    assert checked(*wrong).status == "deviates"


def test_what_is_said_of_a_message_holds_at_both_ends() -> None:
    sent = {"at": "Lock0", "send": {"type": "Grant", "to": "Client0", "id": 7}}
    received = {"at": "Client0", "receive": {"type": "Grant", "fields": {"token": 2}, "id": 7}}
    assert checked(sent, received).status == "conforms"
    assert checked({**sent, "state": {"token": 1}}, received).status == "deviates"


def test_complete_and_open() -> None:
    grants = [grant(1, "Client0"), grant(2, "Client1")]
    assert checked(*grants).status == "conforms"
    assert checked(*grants, complete=["expire"]).status == "deviates"  # a lease must have expired between them
    assert checked(grants[0], {"at": "Lock0", "step": "expire"}, grants[1], complete=["expire"]).status == "conforms"
    held = {"at": "Client0", "receive": {"type": "Grant", "fields": {"token": 2}}}
    log = [grant(1, "Client1"), held]
    assert checked(*log, complete=["steps@Lock"]).status == "deviates"
    assert checked({**log[0], "step": "grant"}, held, complete=["steps@Lock"]).status == "deviates"
    assert checked({**log[0], "step": "grant"}, held, complete=["steps@Lock"], open=True).status == "conforms"


def test_limits() -> None:
    wrong = {"at": "Lock0", "state": {"token": 9}}
    assert checked(wrong).status == "deviates"
    found = checked(wrong, max_states=5)
    assert (found.status, found.bound, found.exit_code) == ("inconclusive", "states", 3)
    assert checked(wrong, timeout=0).bound == "timeout"


def test_mappings() -> None:
    @conforms(text=True)
    def event(line: str) -> Any:
        client, token = line.split()
        return [grant(int(token), client), {"at": client, "step": "work"}] if int(token) else None

    log = mapped("log.txt", ["Client0 1", "Client0 0", "Client1 2"], event)
    assert [e.place for e in log.events] == ["log.txt:1", "log.txt:1", "log.txt:3", "log.txt:3"]
    assert conform(load(str(ROOT / LEASE)), log).status == "conforms"
    with pytest.raises(UsageError, match=r"log\.txt:2: event raised ValueError"):
        mapped("log.txt", ["Client0 1", "x"], event)

    @conforms
    def together(lines: Any) -> Any:
        before = None
        for line in lines:
            if before is not None:
                yield {**before, **line}
            before = None if before is not None else line

    log = mapped("log", ['{"at": "Lock0"}', '{"step": "grant"}'], together)
    assert [(e.record.at, e.record.step) for e in log.events] == [("Lock0", "grant")]
    with pytest.raises(UsageError, match="log:1: not JSON"):
        mapped("log", ["{"], together)


def span(at: str, kind: int, start: int, name: str, parent: str = "", **said: Any) -> dict[str, Any]:
    def value(one: Any) -> dict[str, Any]:
        return {"intValue": str(one)} if isinstance(one, int) else {"stringValue": one}

    attributes = [{"key": f"plait.{key.replace('__', '.')}", "value": value(one)} for key, one in said.items()]
    attributes.append({"key": "plait.at", "value": {"stringValue": at}})
    return {
        "spanId": name,
        "parentSpanId": parent,
        "kind": kind,
        "startTimeUnixNano": str(start),
        "attributes": attributes,
    }


def test_spans() -> None:
    spans = [
        span("Client0", 5, 20, "b", "a", step="work", message="Grant"),
        span("Lock0", 4, 90, "c", message="Grant", field__token=2, to="Client1"),
        span("Lock0", 4, 10, "a", message="Grant", field__token=1, to="Client0"),
        {"spanId": "d", "kind": 1, "attributes": []},
    ]
    data = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
    log = read_spans("a.otlp.json", [data])
    assert [(e.record.at, e.record.step) for e in log.events] == [("Client0", "work"), ("Lock0", None), ("Lock0", None)]
    assert [m.fields for e in log.events for m in e.record.sent] == [{"token": 1}, {"token": 2}]
    found = conform(load(str(ROOT / LEASE)), log)
    assert (found.status, found.events) == ("conforms", 3)
    with pytest.raises(UsageError, match="not spans"):
        read_spans("a", ["[1]"])


def test_models_with_clocks_are_refused() -> None:
    with pytest.raises(UsageError, match="has clocks"):
        conform(load(str(ROOT / "examples" / "timed_lease.py")), read_lines("a", []))

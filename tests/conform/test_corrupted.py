"""A corrupted log of Raft is explained at the event that was corrupted; and the log without corruption conforms."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from plait.check.explain.tracing import label
from plait.check.runner import Runner
from plait.conform.log import read_lines
from plait.conform.search import conform
from plait.kernel.values import to_data
from plait.kernel.verdict import Conformance
from plait.model.system import System
from plait.protocols.raft import raft

Records = list[dict[str, Any]]


def model() -> System:
    return raft(servers=3, elections=",".join(["any"] * 6), entries=2, quorum=False)


def recorded(system: System, seed: int) -> Records:
    """All that can be recorded of a random run, with ids for messages."""
    chance, runner = random.Random(seed), Runner(system, native="auto")
    state, records, waiting = runner.initial[0][0], [], dict[tuple[int, int, bytes], list[int]]()
    decode, number = runner.tabulation.codec.decode, 0
    while steps := [t for t in runner.engine.successors(state) if t.failure is None]:
        t = chance.choice(steps)
        record: dict[str, Any] = {"at": runner.names[t.process], "step": label(system, t), "receive": [], "send": []}
        for _, sender, content in t.consumed:
            id_ = waiting[sender, t.process, content].pop(0)
            record["receive"].append({**said(decode(content)), "from": runner.names[sender], "id": id_})
        for to, _, content in t.sends:
            number += 1
            waiting.setdefault((t.process, to, content), []).append(number)
            record["send"].append({**said(decode(content)), "to": runner.names[to], "id": number})
        record["state"] = {**runner.data(t.process, runner.engine.components(t.state)[0][t.process])}
        records.append(record)
        state = t.state
    return records


def said(message: object) -> dict[str, Any]:
    data = to_data(message)
    return {"type": data.pop("#type"), "fields": data}


def checked(system: System, records: Records) -> Conformance:
    lines = ['{"plait": 1, "complete": ["steps"]}', *map(json.dumps, records)]
    return conform(system, read_lines("raft", lines), traced=False, max_states=100_000)


def corruptions(records: Records, chance: random.Random) -> Iterator[tuple[int, str, Records]]:
    """Some changes of one event each, with the number of the event."""
    for number in sorted(chance.sample(range(len(records)), 4)):
        for way in ("state", "receive", "send", "step"):
            changed = copy.deepcopy(records)
            event = changed[number]
            match way:
                case "state":
                    event["state"]["term"] += 1
                case "receive" if event["receive"]:
                    event["receive"][0]["fields"]["term"] += 1
                case "send" if event["send"]:
                    event["send"][-1]["fields"]["term"] += 1
                case "step" if event["step"] != "back_up":
                    event["step"] = "back_up"
                case _:
                    continue
            yield number, way, changed


@pytest.mark.slow
def test_a_corrupted_event_is_found() -> None:
    system = model()
    counts: dict[str, int] = {}
    for seed in range(2):
        records = recorded(system, seed)
        assert len(records) > 15
        found = checked(system, records)
        assert (found.status, found.steps, found.free) == ("conforms", len(records), 0)
        for number, way, changed in corruptions(records, random.Random(seed)):
            found = checked(system, changed)
            assert found.status == "deviates", (seed, number, way)
            assert found.unexplained[0].place == f"raft:{number + 2}", (seed, number, way)
            assert found.unexplained[0].candidates, "it says what forbids the event"
            counts[way] = counts.get(way, 0) + 1
    assert counts.keys() == {"state", "receive", "send", "step"}


@pytest.mark.slow
def test_a_log_of_a_mutant_deviates_or_violates() -> None:
    """A server that forgets its vote: the model explains its log until the second vote in a term."""
    mutant = raft(servers=3, elections="any,any", entries=1, quorum=False, faulty="vote")
    right = raft(servers=3, elections="any,any", entries=1, quorum=False)
    outcomes = set()
    for seed in range(6):
        records = recorded(mutant, seed)
        for record in records:  # the classes of the twins have names of their own
            replace(record)
        found = checked(right, records)
        voted = [(r["at"], r["receive"][0]["fields"]["term"]) for r in records if r["step"] == "vote" and r["send"]]
        twice = len(voted) > len(set(voted))
        if twice:
            assert found.status == "deviates"
        outcomes.add((twice, found.status))
    assert any(twice for twice, _ in outcomes)
    assert (False, "conforms") in outcomes


def replace(record: dict[str, Any]) -> None:
    text = json.dumps(record).replace("ForgetfulCountingServer", "CountingServer")
    record.clear()
    record.update(json.loads(text))

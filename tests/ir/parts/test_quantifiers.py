"""Each form of a quantified property has parts, and their values together are the value of the property."""

from __future__ import annotations

import itertools
import random
from itertools import combinations
from typing import Any

import pytest

from plait import Pid, Process, System, always, field
from plait._native import Codec, Machine
from plait.ir import nodes
from plait.ir.lower import lower
from plait.model.monitor import Monitor
from plait.model.view import View


class Server(Process):
    term: int = 0
    leader: bool = False
    log: tuple[int, ...] = ()
    seen: set[int] = field(default_factory=set)


class Client(Process):
    term: int = 0


class Spawned(Process):
    term: int = 0


class Audit(Monitor):
    count: int = 0

    def observe(self, process: Pid, event: Any) -> None:
        self.count += 1


# -- properties with parts -------------------------------------------------------------------------------------------


def for_each(s: Any) -> bool:
    return all(p.term < 2 or p.leader for p in s[Server] if p.log)


def for_each_and_its_entries(s: Any) -> bool:
    return all(entry <= p.term for p in s[Server] for entry in p.log)


def for_two_roles(s: Any) -> bool:
    return all(a.term >= b.term for a in s[Server] for b in s[Client])


def for_pairs(s: Any) -> bool:
    return all(a.log[:1] == b.log[:1] for a, b in combinations(s[Server], 2))


def for_ordered_pairs(s: Any) -> bool:
    return all(a.term <= b.term + 1 for a, b in itertools.permutations(s[Server], 2) if a.leader)


def for_products(s: Any) -> bool:
    return all(a.term + b.term < 4 for a, b in itertools.product(s[Server], s[Client]))


def by_a_loop(s: Any) -> bool:
    for p in s[Server]:
        if p.leader and p.term > 1:
            return False
        length = len(p.log)
        assert length < 3
    return True


def by_a_loop_in_a_loop(s: Any) -> bool:
    for p in s[Server]:
        for q in s[Client]:
            if p.term == q.term:
                return False
    return True


def conjunction(s: Any) -> bool:
    return for_each(s) and all(c.term < 3 for c in s[Client]) and not any(p.term > 2 for p in s[Server])


def set_of_logs(s: Any) -> bool:
    logs = {p.log for p in s[Server]}
    return all(one[: len(two)] == two[: len(one)] for one, two in combinations(logs, 2))


def list_of_leaders(s: Any) -> bool:
    leaders = [p for p in s[Server] if p.leader]
    return all(leader.log[:1] == p.log[:1] for leader in leaders for p in s[Server] if p.term <= leader.term)


def same_collection_twice(s: Any) -> bool:
    terms = [p.term for p in s[Server]]
    return all(a + b < 4 for a in terms for b in terms)


def one_value(s: Any) -> bool:
    return len({p.term for p in s[Server] if p.leader}) <= 1


def one_value_of_inner_loops(s: Any) -> bool:
    return len({entry for p in s[Server] for entry in p.log}) < 2


def all_different(s: Any) -> bool:
    terms = [p.term for p in s[Server] if p.leader]
    return len(terms) == len(set(terms))


def functional(s: Any) -> bool:
    pairs = {(p.term, p.log) for p in s[Server]}
    return len(pairs) == len({term for term, _ in pairs})


def at_most_one_leader(s: Any) -> bool:
    return sum(p.leader is True for p in s[Server]) <= 1


def at_most_one_in_a_list(s: Any) -> bool:
    return len([p for p in s[Server] if p.leader]) <= 1


def at_least_one(s: Any) -> bool:
    return any(p.leader and p.term for p in s[Server])


def at_least_one_by_a_loop(s: Any) -> bool:
    for p in s[Server]:  # noqa: SIM110 - the loop is what is tested
        if p.leader and p.term:
            return True
    return False


def nonempty(s: Any) -> bool:
    return bool({entry for p in s[Server] for entry in p.log})


def negated(s: Any) -> bool:
    return not all(p.term for p in s[Server])


def two_leaders(s: Any) -> bool:
    return len([p for p in s[Server] if p.leader]) > 1


def either(s: Any) -> bool:
    return any(p.term > 2 for p in s[Server]) or any(c.term > 2 for c in s[Client])


def fixed_process(s: Any) -> bool:
    (client,) = s[Client]
    return not client.term or not any(p.leader and p.term > client.term for p in s[Server])


def fixed_by_index(s: Any) -> bool:
    return s[Server][1].term <= 1 or all(p.log for p in s[Server])


def only_fixed(s: Any) -> bool:
    return s[Server][0].term == 1


def nested_quantifiers(s: Any) -> bool:
    return all(p.term < 3 and all(q.term <= p.term for q in s[Server] if q != p) for p in s[Server] if p.leader)


def size_of_a_role(s: Any) -> bool:
    return all(p.term < len(s[Server]) for p in s[Server])


def all_processes(s: Any) -> bool:
    return all(p.term < 3 for p in s)


def disjunction_of_conjunctions(s: Any) -> bool:
    return all(p.term < 2 for p in s[Server]) or all(c.term for c in s[Client])


# (property, how many parts, how many processes each; with three servers and one client)
SPLIT = [
    (for_each, 3, 1),
    (for_each_and_its_entries, 3, 1),
    (for_two_roles, 3, 2),
    (for_pairs, 3, 2),
    (for_ordered_pairs, 3, 2),
    (for_products, 3, 2),
    (by_a_loop, 3, 1),
    (by_a_loop_in_a_loop, 3, 2),
    (conjunction, 7, 1),
    (set_of_logs, 3, 2),
    (list_of_leaders, 9, 2),
    (same_collection_twice, 3, 2),
    (one_value, 3, 2),
    (one_value_of_inner_loops, 3, 2),
    (all_different, 3, 2),
    (functional, 3, 2),
    (at_most_one_leader, 3, 2),
    (at_most_one_in_a_list, 3, 2),
    (at_least_one, 3, 1),
    (at_least_one_by_a_loop, 3, 1),
    (nonempty, 3, 1),
    (negated, 3, 1),
    (two_leaders, 3, 2),
    (either, 4, 1),
    (fixed_process, 3, 2),
    (fixed_by_index, 3, 2),
    (only_fixed, 1, 1),
    (nested_quantifiers, 9, 2),
    (size_of_a_role, 3, 1),
    (all_processes, 4, 1),
    (disjunction_of_conjunctions, 3, 2),
]


# -- properties without parts ----------------------------------------------------------------------------------------


def mixed(s: Any) -> bool:
    return all(any(q.term > p.term for q in s[Client]) for p in s[Server])


def mixed_operands(s: Any) -> bool:
    return any(p.leader for p in s[Server]) and all(p.term for p in s[Server])


def carries_a_value(s: Any) -> bool:
    last = -1
    for p in s[Server]:
        assert last < p.term
        last = p.term
    return True


def carries_a_value_inside(s: Any) -> bool:
    for p in s[Server]:
        if p.leader:
            assert p.term < 9
        longest = p
    return longest.term < 2


def changes_a_dict(s: Any) -> bool:
    agreed: dict[int, Any] = {}
    return all(agreed.setdefault(p.term, p.log) == p.log for p in s[Server])


def exactly_one(s: Any) -> bool:
    return len({p.term for p in s[Server]}) == 1


def maximum(s: Any) -> bool:
    return max(p.term for p in s[Server]) < 3


def neighbours(s: Any) -> bool:
    return all(a.term <= b.term for a, b in itertools.pairwise(s[Server]))


def three_at_a_time(s: Any) -> bool:
    return all(a.term + b.term + c.term < 5 for a in s[Server] for b in s[Server] for c in s[Server])


def counts_numbers(s: Any) -> bool:
    return sum(p.term for p in s[Server]) <= 1


def not_a_bool(s: Any) -> Any:
    return all(p.term < 3 for p in s[Server]) and s[Server][0].leader


def of_a_monitor(s: Any) -> bool:
    return s[Audit].count < 3 and all(p.term < 2 for p in s[Server])


def of_spawned_processes(s: Any) -> bool:
    return all(p.term < 2 for p in s[Spawned])


WHOLE = [
    mixed,
    mixed_operands,
    carries_a_value,
    carries_a_value_inside,
    changes_a_dict,
    exactly_one,
    maximum,
    neighbours,
    three_at_a_time,
    counts_numbers,
    not_a_bool,
    of_a_monitor,
    of_spawned_processes,
]


def a_system(function: Any) -> System:
    return System(
        [Server(), Server(), Client(), Server()],
        monitors=[Audit()],
        spare={Spawned: 1},
        properties=[always(function)],
    )


def lowered(function: Any) -> tuple[nodes.Property, Machine]:
    found = lower(a_system(function), Codec(Pid).encode)
    assert found.functions[-1].reason is None
    prop = found.program.properties[0]
    assert prop is not None
    return prop, Machine(nodes.encoded(found.program))


@pytest.mark.parametrize(("function", "count", "size"), SPLIT, ids=lambda p: getattr(p, "__name__", ""))
def test_the_parts_together_are_the_property(function: Any, count: int, size: int) -> None:
    prop, machine = lowered(function)
    if function is all_processes:
        assert not prop.parts  # one of the processes may be spawned
        return
    assert len(prop.parts) == count
    assert {len(part.positions) for part in prop.parts} == {size}
    r, values = random.Random(function.__name__), set()
    encode = Codec(Pid).encode
    for _ in range(300):
        small = r.random() < 0.5
        fields = [
            {
                "term": r.choice([0, 1, 1] if small else [0, 1, 2, 3]),
                "leader": r.random() < 0.3,
                "log": tuple(r.choice([1] if small else [1, 2]) for _ in range(r.randint(0, 2))),
                "seen": {r.randint(0, 2)},
            }
            for _ in range(4)
        ]
        system = a_system(function)
        names = [c.__plait_fields__ for c in system.classes]
        values_of = [{n: fields[i][n] for n in names[i]} for i in range(4)]
        view = View(
            system,
            lambda i: ("up", values_of[i]) if i < 4 else ("unborn", {}),  # noqa: B023
            lambda i: (),
            lambda i: system.monitors[i],  # noqa: B023
        )
        try:
            expected = function(view)
        except AssertionError:
            expected = False
        values.add(expected)
        locals_ = [(0, [encode(v[n]) for n in v]) for v in values_of] + [(3, [])]
        state = (locals_, [[]] * 5, [[encode(0)]])
        parts = []
        for i in range(len(prop.parts)):
            try:
                parts.append(machine.property(0, *state, part=i)[0])
            except LookupError:  # a failed assertion
                parts.append(False)
        assert (all(parts) if prop.every else any(parts)) == expected, values_of
        try:
            assert machine.property(0, *state)[0] == expected
        except LookupError:
            assert not expected
    assert values == {True, False}, "the random states decide nothing"


@pytest.mark.parametrize("function", WHOLE, ids=lambda f: f.__name__)
def test_other_properties_have_no_parts(function: Any) -> None:
    prop, _ = lowered(function)
    assert prop.parts == []

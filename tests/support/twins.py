"""Each fault that the zoo can plant, in a setting in which it is noticed.

A new protocol with a parameter `faulty` gets a line in TWINS for each fault: a setting in which it is noticed, the property
that is violated, and the length of a shortest counterexample.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from plait import System


def model(name: str) -> Callable[..., System]:
    """The model function of a protocol."""
    function: Callable[..., System] = getattr(importlib.import_module(f"plait.protocols.{name}"), name)
    return function


@dataclass(frozen=True)
class Twin:
    """A setting in which a fault is noticed."""

    protocol: str
    parameters: dict[str, Any]
    violated: str
    length: int
    walks: int = 10_000
    """So many random walks find it, too; 0 if it takes too many."""
    shallow: bool = True
    """Whether breadth-first search gets there in a moment; where not, random walks must do."""

    def __str__(self) -> str:
        return " ".join([self.protocol, *(f"{name}={value}" for name, value in self.parameters.items())])

    def system(self) -> System:
        return model(self.protocol)(**self.parameters)


TWINS = [
    Twin("abd", {"faulty": "hasty", "clients": 1, "servers": 3}, "linearizable", 8),
    Twin("abd", {"faulty": "hasty", "clients": 1, "servers": 3, "quorum": True}, "linearizable", 8),
    Twin("atomic_register", {"faulty": "regular"}, "linearizable", 10),
    Twin("atomic_register", {"faulty": "regular", "readers": 2, "reads": 1}, "linearizable", 10),
    Twin("atomic_register", {"faulty": "regular", "quorum": False}, "linearizable", 12),
    Twin("ben_or", {"faulty": "estimate", "phases": 3}, "agreement", 11),
    Twin("ben_or", {"faulty": "impatient", "inputs": (0, 0), "f": 0, "phases": 3}, "agreement", 10),
    Twin("chang_roberts", {"faulty": "greedy"}, "correctness", 6),
    Twin("commit_rounds", {"faulty": "hasty"}, "validity", 4),
    Twin("commit_rounds", {"faulty": "doubt"}, "consistency", 6),
    Twin("distal_paxos", {"faulty": "early", "ballots": 4}, "agreement", 18, shallow=False),
    Twin("distal_paxos", {"faulty": "printed"}, "agreement", 13),
    Twin("hirschberg_sinclair", {"faulty": "meek", "nodes": 3}, "largest", 15),
    Twin("hirschberg_sinclair", {"faulty": "reversed", "nodes": 3}, "largest", 15),
    Twin("mcpaxos", {"faulty": "leader"}, "consistency", 12),
    Twin("one_third_rule", {"faulty": "half", "inputs": (0, 1, 1)}, "agreement", 10),
    Twin(
        "online_change",
        {"faulty": "eager", "before": 2, "after": 3, "orders": 0, "aborts": 0, "crashes": 0},
        "one_history",
        23,
        walks=0,
    ),
    Twin(
        "online_change",
        {"faulty": "unshipped", "before": 2, "after": 3, "orders": 0, "aborts": 0, "crashes": 0},
        "one_history",
        22,
        walks=0,
    ),
    Twin(
        "online_change",
        {"faulty": "hasty", "before": 2, "after": 3, "orders": 0, "aborts": 0, "crashes": 0, "keys": 2},
        "one_history",
        14,
    ),
    Twin(
        "online_change",
        {"faulty": "alone", "before": 2, "after": 3, "orders": 0, "aborts": 0, "crashes": 0},
        "one_state",
        25,
        walks=0,
    ),
    Twin(
        "online_change",
        {"faulty": "order", "before": 2, "after": 1, "aborts": 0, "crashes": 0},
        "one_history",
        27,
        walks=0,
    ),
    Twin(
        "online_change",
        {"faulty": "amnesia", "before": 2, "after": 1, "orders": 0, "aborts": 0},
        "one_history",
        23,
        walks=0,
    ),
    Twin(
        "online_change",
        {"faulty": "wilful", "before": 2, "after": 1, "orders": 0, "crashes": 0},
        "one_history",
        22,
        walks=0,
    ),
    Twin(
        "online_change",
        {"faulty": "ids", "before": 2, "after": 3, "orders": 0, "aborts": 0, "crashes": 0, "adds": 2},
        "unique_ids",
        29,
        walks=0,
    ),
    Twin("paxos", {"faulty": "acceptor"}, "agreement", 14),
    Twin("paxos", {"faulty": "acceptor", "quorum": False}, "agreement", 18),
    Twin("paxos", {"faulty": "learner"}, "agreement", 14),
    Twin("paxos", {"faulty": "learner", "quorum": False}, "agreement", 18),
    Twin("paxos", {"faulty": "memory", "proposers": 3}, "agreement", 19, walks=100_000),
    Twin("ping_pong", {"faulty": "ponger", "network": "duplicating"}, "in_step", 2),
    Twin("raft_membership", {"faulty": "early", "terms": 3}, "agreement", 18, shallow=False),
    Twin("register_paxos", {"faulty": "stubborn"}, "linearizable", 17),
    Twin("regular_register", {"specification": "wrong"}, "regularity", 8),
    Twin("regular_register", {"specification": "wrong", "quorum": False}, "regularity", 10),
    Twin("shipped_updates", {"faulty": "outbox", "orders": 0, "crashes": 1}, "nothing_lost", 7),
    Twin("shipped_updates", {"faulty": "hasty"}, "nothing_lost", 4),
    Twin("shipped_updates", {"faulty": "dirty"}, "nothing_lost", 5),
    Twin("shipped_updates", {"faulty": "late"}, "grounded", 3),
    Twin("shipped_updates", {"faulty": "fence"}, "nothing_lost", 6),
    Twin("shipped_updates", {"faulty": "peek"}, "nothing_lost", 6),
    Twin("shipped_updates", {"faulty": "stream first"}, "closed", 11),
    Twin("shipped_updates", {"faulty": "whole stream"}, "closed", 11),
    Twin("single_copy", {"servers": 2}, "linearizable", 4),
    Twin("split_log", {"faulty": "careless", "carts": 0, "crashes": 0}, "serializable", 18),
    Twin("split_log", {"faulty": "unmarked", "timeouts": 0}, "serializable", 18, walks=0),
    Twin("split_log", {"faulty": "blind", "timeouts": 0}, "serializable", 20, walks=0),
    Twin("split_log", {"faulty": "loser", "carts": 0}, "serializable", 30, walks=0),
    Twin("split_log", {"faulty": "first"}, "ordered", 4),
    Twin("split_log", {"faulty": "hopeful", "crashes": 0}, "serializable", 11),
    Twin("three_phase_commit", {"faulty": "slow", "crashes": 0}, "consistency", 11, walks=100_000),
    Twin("three_phase_commit", {"faulty": "slow", "crashes": 0, "quorum": False}, "consistency", 12, walks=100_000),
    Twin("three_phase_commit", {"faulty": "hasty"}, "consistency", 14, walks=500_000),
    Twin("three_phase_commit", {"faulty": "hasty", "quorum": False}, "consistency", 15, walks=500_000),
    Twin("three_phase_commit", {"faulty": "local", "crashes": 1}, "consistency", 12),
    Twin("three_phase_commit", {"faulty": "local", "crashes": 1, "quorum": False}, "consistency", 13),
    Twin("two_phase_commit", {"faulty": "hasty"}, "consistency", 3),
    Twin("two_phase_commit", {"faulty": "hasty", "quorum": True}, "consistency", 5),
    Twin("uniform_voting", {"faulty": "estimate", "phases": 3}, "agreement", 30, shallow=False),
    Twin("uniform_voting", {"faulty": "split"}, "agreement", 8),
    Twin("view_change", {"faulty": "quorum"}, "completeness", 3),
    Twin("chain", {"faulty": "any"}, "linearizable", 5),
    Twin("chain", {"faulty": "head"}, "linearizable", 9),
    Twin("chain", {"faulty": "resend"}, "answers", 11),
    Twin("conveyor_belt", {"faulty": "skip", "carts": 0}, "serializable", 7),
    Twin("conveyor_belt", {"faulty": "keep", "servers": 2}, "serializable", 7),
    Twin("conveyor_belt", {"faulty": "early", "carts": 0}, "serializable", 5),
    Twin("conveyor_belt", {"faulty": "fencing", "servers": 2, "carts": 0, "reissues": 1}, "serializable", 11),
    Twin("conveyor_belt", {"faulty": "carrier", "carts": 0, "reissues": 1}, "serializable", 12),
    Twin("conveyor_belt", {"faulty": "amnesia", "servers": 2, "reissues": 1, "crashes": 1}, "serializable", 9),
    Twin("conveyor_belt", {"faulty": "peek", "servers": 2, "reissues": 1, "crashes": 1}, "serializable", 11),
    Twin(
        "conveyor_belt",
        {"faulty": "stale", "servers": 2, "reissues": 1, "crashes": 1},
        "serializable",
        14,
        walks=100_000,
    ),
    Twin("dijkstra_scholten", {"faulty": "hasty"}, "nobody_active", 5),
    Twin("dijkstra_scholten", {"faulty": "fickle"}, "announced", 8),
    Twin("echo_multicast", {"faulty": "gullible", "honest_initiators": 0}, "agreement", 3),
    Twin("echo_multicast", {"faulty": "signer", "honest_initiators": 0, "attack": "both"}, "agreement", 11),
    Twin("gossip", {"faulty": "tie"}, "agreement", 10),
    Twin("gossip", {"faulty": "overwrite"}, "last_writer_wins", 12),
    Twin("lamport_mutex", {"faulty": "tie"}, "mutual_exclusion", 10),
    Twin("lamport_mutex", {"faulty": "acks"}, "mutual_exclusion", 4),
    Twin("pbft", {"faulty": "small"}, "agreement", 7),
    Twin("pbft", {"faulty": "small", "quorum": False}, "agreement", 9),
    Twin("raft", {"faulty": "vote"}, "election_safety", 6),
    Twin("raft", {"faulty": "log"}, "leader_completeness", 9),
    Twin("raft", {"faulty": "commit"}, "leader_completeness", 20),
    Twin("viewstamped", {"faulty": "order"}, "durability", 4),
    Twin("viewstamped", {"faulty": "hasty"}, "durability", 1),
    Twin("viewstamped", {"faulty": "table"}, "at_most_once", 6),
    Twin("zab", {"faulty": "hasty"}, "primary_integrity", 25),
    Twin("zab", {"faulty": "eager", "restless": 2}, "primary_integrity", 25),
    Twin("zab", {"faulty": "promise", "changes": 2}, "primary_integrity", 29, walks=300_000),
]

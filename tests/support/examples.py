"""The examples, with parameters, and the verdicts that their documentation promises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "examples"
CASES: list[tuple[str, dict[str, Any], str | None]] = [
    ("lease", {}, "no_stale_write"),
    ("lease", {"fencing": True}, None),
    ("lease", {"fencing": True, "clients": 3}, None),
    ("timed_lease", {}, "no_stale_write"),
    ("timed_lease", {"pauses": False}, None),
    ("timed_lease", {"fencing": True}, None),
    ("timed_lease", {"pauses": False, "drift": 1, "margin": 1}, "no_stale_write"),
    ("timed_lease", {"pauses": False, "drift": 1, "margin": 2}, None),
    ("election", {}, "at_most_one_leader"),
    ("election", {"crashes": 0}, None),
    ("election", {"persistent": True}, None),
    ("election", {"persistent": True, "crashes": 2}, None),
    ("traitor", {}, None),
    ("traitor", {"quorum": 2}, "consistency"),
    ("traitor", {"honest": 2, "quorum": 2}, "consistency"),
    ("weighted_votes", {}, None),
    ("weighted_votes", {"write": 2}, "reads_are_fresh"),
    ("weighted_votes", {"write": 2, "read": 3}, None),
    ("workers", {}, None),
    ("workers", {"faulty": True}, "everybody_has_its_square"),
    ("workers", {"faulty": True, "clients": 1}, None),
    ("stock", {}, None),
    ("stock", {"generous": True}, "one_owner"),
    ("job_queue", {}, "linearizable"),
    ("job_queue", {"copies": 0}, None),
    ("job_queue", {"deduplicate": True}, None),
    ("two_messages", {}, None),
    ("two_messages", {"hasty": True}, "acknowledged_means_received"),
    ("two_actors", {}, None),
    ("two_actors", {"forgetful": True}, "numbers_differ"),
    ("diamond", {}, None),
    ("endless_commit", {}, None),
    ("endless_commit", {"hasty": True}, "validity"),
    ("late_votes", {}, "no_late_hand"),
    ("late_votes", {"strict": True}, None),
    ("diamond", {"missing": 1}, "everybody_has_bread"),
    ("philosophers", {}, None),
    ("philosophers", {"polite": False}, "deadlock_free"),
    ("philosophers", {"fair": "weak"}, "the_first_one_eats"),
    ("philosophers", {"fair": "none"}, "the_first_one_eats"),
    ("philosophers", {"number": 4}, None),
    ("transaction_commit", {}, None),
    ("transaction_commit", {"faulty": "hasty"}, "refines_transaction_commit"),
    ("consensus", {}, None),
    ("consensus", {"faulty": True}, "refines_voting"),
    ("consensus", {"model": "voting"}, None),
    ("consensus", {"model": "voting", "faulty": True}, "refines_consensus"),
    ("register", {}, None),
    ("register", {"faulty": "regular"}, "refines_atomic_register"),
    ("courier", {}, None),
    ("courier", {"assume": "everybody,messages"}, "the_request_is_answered"),
    ("courier", {"assume": "processes,messages,loss"}, "the_request_is_answered"),
    ("courier", {"assume": "everybody,loss"}, "the_request_is_answered"),
    ("termination", {}, None),
    ("termination", {"stain": False}, "never_too_early"),
    ("alternating_bit", {}, None),
    ("alternating_bit", {"most": 1}, None),
    ("alternating_bit", {"careful": False}, "acknowledged_means_received"),
    ("pending_work", {}, None),
    ("pending_work", {"most": 1}, None),
    ("pending_work", {"patient": False}, "never_too_early"),
    ("shared/increment_lock", {}, None),
    ("shared/increment_lock", {"lock": False}, "every_increment_counts"),
    ("shared/peterson", {}, None),
    ("shared/peterson", {"hasty": True}, "mutual_exclusion"),
    ("shared/dekker", {}, None),
    ("shared/dekker", {"turns": False}, "deadlock_free"),
    ("shared/bakery", {}, None),
    ("shared/bakery", {"choosing": False}, "one_at_a_time"),
    ("shared/connection_pool", {}, None),
    ("shared/connection_pool", {"cleanup": False}, "everybody_is_served"),
    ("shared/connection_pool", {"atomic": False}, "within_the_limit"),
    ("shared/optimistic", {}, None),
    ("shared/optimistic", {"versions": False}, "no_money_is_lost"),
]
"""File, parameters, and the property that is violated, if one is."""
LARGE = {"consensus", "register"}
"""What takes the oracle too long."""


BOUNDS = {"timed_lease": {"lease": 2}}
"""The largest numbers that clocks are compared with, where examples leave this to the check."""


def name_of(case: tuple[str, dict[str, Any], str | None]) -> str:
    return " ".join([case[0], *(f"{k}={v}" for k, v in case[1].items())])

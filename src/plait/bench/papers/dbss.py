"""Table I of DBSS: decomposition-based stateful search, partial-order reduction, both, and both with symmetry."""

from __future__ import annotations

import re

from plait.bench.options import Options
from plait.bench.papers.search import LAST, TIMED, Setting, Way, conditions, fill, verdicts
from plait.bench.table import Plot, Table

STATELESS, STATEFUL, POR = "stateless", "stateful", "POR"
WITHOUT_SPOS, DBSS, BOTH, SYMMETRY = "DBSS without SPoS", "DBSS", "DBSS + POR", "DBSS + POR + symmetry"


WAYS = {
    STATELESS: Way({"search": "stateless"}),
    STATEFUL: Way(LAST, (STATELESS,)),
    WITHOUT_SPOS: Way(LAST | {"reduce": "decomposition", "spos": False}, (STATEFUL,)),
    DBSS: Way(LAST | {"reduce": "decomposition"}, (STATEFUL,)),
    POR: Way(LAST | {"reduce": "por"}, (STATEFUL,)),
    BOTH: Way(LAST | {"reduce": "decomposition,por"}, (STATEFUL, POR)),
    SYMMETRY: Way(LAST | {"reduce": "decomposition,por,symmetry"}, (STATEFUL, POR)),
}


def _published(stateful: int, dbss: int, por: int | None = None, both: int | None = None) -> dict[str, int]:
    found = {STATEFUL: stateful, DBSS: dbss, POR: por, BOTH: both}
    return {way: states for way, states in found.items() if states is not None}


def _seconds(stateful: str, dbss: str, por: str = "", both: str = "", without_spos: str = "") -> dict[str, float]:
    """The published times, as the table writes them: 22h19m, 1m5s."""
    written = {STATEFUL: stateful, DBSS: dbss, POR: por, BOTH: both, WITHOUT_SPOS: without_spos}
    units = {"h": 3600, "m": 60, "s": 1}
    return {
        way: float(sum(int(number) * units[unit] for number, unit in re.findall(r"(\d+)([hms])", time)))
        for way, time in written.items()
        if time
    }


_WRONG = {"specification": "wrong"}
_LIVE = {"followers": "3", "restless": "0", "specification": "live"}
_UNENDED = (STATEFUL, DBSS)
SETTINGS = {
    "Paxos (2, 3, 1)": Setting(
        "paxos",
        {"proposers": "2"},
        "holds",
        _published(13_044_613, 5_606_047, 191_081, 117_369) | {WITHOUT_SPOS: 5_606_047},
        seconds=_seconds("22h19m", "10h22m", "23m43s", "14m22s", "11h01m"),
    ),
    "Faulty-Paxos (2, 3, 1)": Setting(
        "paxos",
        {"proposers": "2", "faulty": "acceptor"},
        "violated",
        _published(96_802, 70_543, 3_050, 2_786),
        seconds=_seconds("10m3s", "8m20s", "36s", "31s"),
    ),
    "Faulty-Paxos2 (3, 3, 1)": Setting(
        "paxos",
        {"proposers": "3", "faulty": "memory"},
        "violated",
        _published(71_914_839, 66_651_310, 129_533, 124_976),
        _UNENDED,
        large=True,
        seconds=_seconds("192h", "192h", "21m18s", "19m29s"),
    ),
    "Register, 3 base objects": Setting(
        "regular_register",
        {"base_objects": "3"},
        "holds",
        _published(89_041, 59_306, 10_896, 8_590) | {WITHOUT_SPOS: 59_306},
        seconds=_seconds("7m31s", "5m39s", "1m5s", "53s", "6m20s"),
    ),
    "Register, 3, wrong regularity": Setting(
        "regular_register",
        {"base_objects": "3"} | _WRONG,
        "violated",
        _published(4_965, 3_376, 1_936, 1_483),
        seconds=_seconds("34s", "27s", "24s", "20s"),
    ),
    "Register, 4 base objects": Setting(
        "regular_register",
        {"base_objects": "4"},
        "holds",
        _published(2_269_797, 1_475_845, 96_641, 57_187) | {WITHOUT_SPOS: 1_475_845},
        seconds=_seconds("5h22m", "4h8m", "11m1s", "7m26s", "4h31m"),
    ),
    "Register, 4, wrong regularity": Setting(
        "regular_register",
        {"base_objects": "4"} | _WRONG,
        "violated",
        _published(94_348, 56_222, 4_642, 4_642),
        seconds=_seconds("10m49s", "8m14s", "51s", "48s"),
    ),
    "Register, 5 base objects": Setting(
        "regular_register",
        {"base_objects": "5"},
        "holds",
        _published(51_465_807, 35_692_316, 2_986_657, 1_656_212),
        _UNENDED,
        large=True,
        seconds=_seconds("192h", "192h", "8h21m", "6h3m"),
    ),
    "Zab (3, 3), liveness": Setting(
        "zab",
        {"leaders": "3"} | _LIVE,
        "violated",
        _published(4_580, 1_876),
        seconds=_seconds("54s", "26s"),
    ),
    "Zab (4, 3), liveness": Setting(
        "zab",
        {"leaders": "4"} | _LIVE,
        "violated",
        _published(8_198, 3_132),
        large=True,
        seconds=_seconds("2m4s", "38s"),
    ),
}


def measure(options: Options) -> Table:
    """Check every setting of the table with every reduction; compare with the states that DBSS reports."""
    table = Table(
        "dbss",
        "Decomposition-based stateful search (DBSS, Table I)",
        TIMED,
        "reduction",
        conditions("quorum transitions" if options.quorum else "single messages", options, stateless=True),
        plot=Plot("states", "states", also="time"),
    )
    with table.measuring():
        fill(table, SETTINGS, WAYS, options, lambda _: options.quorum)
    table.summary.append(verdicts(table.rows, "DBSS"))
    return table

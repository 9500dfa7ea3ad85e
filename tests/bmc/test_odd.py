"""Odd programs, in every encoding: atomic blocks that fail halfway, indices of indices, free values, what nobody reads."""

from __future__ import annotations

from typing import Any

import pytest

from plait.bmc import check, parse_program
from plait.kernel.errors import UsageError

WAYS: list[dict[str, Any]] = [
    {"encoding": encoding, "projection": projection, "order": projection == "on"}
    for encoding in ("steps", "clock")
    for projection in ("on", "off")
]

ODD = {
    "an index that fails where nobody comes": (
        "int x = 0; int a[1] = 5; process p { int j = 0; int l[2] = 0; while (j < 1) { j = j + 1; } "
        "if (j < 1) { l[a[0]] = 1; x = l[a[0]]; } } reachable end: done(p); always zero: x == 0;"
    ),
    "a local that no location sees": (
        "int x in 0..2; process p { int t = 0; atomic { t = x - 1; assert(false); t = 0; } } "
        "reachable low: p.t == -1; reachable high: p.t == 1;"
    ),
    "a local before an index that fails": (
        "int x in 0..2; int a[2] = 0; process p { int t = 0; atomic { t = x * 3; a[x] = 1; t = 1; } } "
        "reachable six: p.t == 6; always one: p.t <= 1;"
    ),
    "lock array by variable": (
        "lock m[3]; int k in 0..2; int c = 0; process p[i in 0..1] { lock(m[k]); c = c + 1; c = c - 1; "
        "unlock(m[k]); } always one: c < 2; reachable zero: done && c == 0;"
    ),
    "lock same twice": "lock m; int x = 0; process p { lock(m); lock(m); x = 1; } reachable r: x == 1;",
    "unlock by other": (
        "lock m; int x = 0; process p { lock(m); lock(m); x = 1; } process q { unlock(m); } reachable r: x == 1;"
    ),
    "atomic writes same cell twice": (
        "int a[2] = 0; int i in 0..1, j in 0..1; process p { atomic { a[i] = 1; a[j] = 2; a[i] = a[j] + 1; } "
        "} reachable r: a[0] == 3 && a[1] == 0; reachable s: a[0] == 3 && a[1] == 2; reachable t: a[0] == 3 "
        "&& a[1] == 1;"
    ),
    "atomic assume in middle": (
        "int x = 0, y = 0; process p { atomic { y = 1; assume(x == 1); y = 2; } } process q { x = 1; } always "
        "a: y != 1; reachable r: y == 2;"
    ),
    "atomic stuck in middle keeps writes": (
        "int x = 0; int a[2] = 0; int k in 0..3; process p { atomic { x = 1; a[k] = 1; x = 2; } } reachable "
        "r: x == 1; reachable s: x == 2;"
    ),
    "atomic assert in middle": (
        "int x = 0; process p { atomic { x = 1; assert(x == 2); x = 3; } } reachable r: x == 1; always n: x != 3;"
    ),
    "choice in atomic with assume": (
        "int x = 0; process p { atomic { choose { assume(false); x = 1; } or { x = 2; } } } reachable one: x "
        "== 1; reachable two: x == 2;"
    ),
    "nested array": (
        "int a[3] = {1, 2, 0}; int x = 0; process p { x = a[a[a[0]]]; } process q { a[a[0]] = 0; } reachable "
        "r0: x == 0; reachable r1: x == 1; reachable r2: x == 2;"
    ),
    "havoc then assume": (
        "int x = 0; process p { havoc x; assume(x > 3 && x < 5); } reachable r: x == 4; always a: x == 0 || "
        "done(p) || x != 77 || true;"
    ),
    "havoc any": "int x = 0; process p { havoc x; } reachable r: x == -123456; reachable s: x * x == 144;",
    "free bool array": (
        "bool f[3]; int c = 0; process p { if (f[0]) { c = c + 1; } if (f[1] && !f[2]) { c = c + 2; } } "
        "reachable r: c == 3; reachable i: c == 4;"
    ),
    "while on shared": (
        "int x = 0, n = 0; process p { while (x < 2) { n = n + 1; x = x + 1; } } process q { x = 0; } "
        "reachable three: n == 3; always four: n < 5;"
    ),
    "init relation": (
        "int x, y; init x * 2 == y && y > 9 && y < 13; process p { x = y - x; } reachable r: x == 6; "
        "reachable s: x == 4; always t: x >= 5 && x <= 6;"
    ),
    "negative mod": (
        "int x in -4..4; int y = 0; process p { y = x % 3 + 10 * (x / 3); } reachable r: y == 2 + 10 * -1; "
        "always a: y >= -20 && y <= 11;"
    ),
    "conditional lazy index": (
        "int a[2] = {5, 6}; int k in -1..2; int x = 0; process p { x = (k >= 0 && k < 2) ? a[k] : 9; } "
        "reachable r5: x == 5; reachable r9: x == 9; always b: x != 6;"
    ),
    "lazy and": (
        "int a[2] = {0, 1}; int k in 0..2; bool b = false; process p { b = k < 2 && a[k] == 1; } reachable r: b;"
    ),
    "lazy implies": (
        "int a[2] = {0, 1}; int k in 0..2; bool b = false; process p { b = k < 2 ==> a[k] == 1; } reachable r: b;"
    ),
    "final with deadlock": (
        "lock m; int x = 0; process p { lock(m); x = 1; } process q { lock(m); x = 2; } final f: x == 0; "
        "reachable d: done;"
    ),
    "final holds": "int x = 0; process p { x = x + 1; } process q { x = x + 1; } final f: x == 2;",
    "done only": "process p { skip; skip; } process q { skip; } reachable d: done(q) && !done(p); always n: !done;",
    "property on two locals": (
        "int x = 0; process p[i in 0..1] { int t = 0; t = x; x = t + 1; } always a: !(p[0].t == 1 && p[1].t "
        "== 1); reachable r: p[0].t == 1 && x == 2;"
    ),
    "overwritten unread": (
        "int x = 0, y = 0; process p { x = 1; x = 2; x = 3; } process q { y = x; y = x * 10 + y; } reachable "
        "r: y == 31 + 0; reachable s: y == 12; reachable t: y == 21; reachable u: y == 11 * 2;"
    ),
    "write same value": (
        "int x = 1, y = 0; process p { x = 1; } process q { assume(x == 1); y = 1; x = 2; } reachable r: y == "
        "1 && x == 1;"
    ),
    "private array": (
        "int x = 0; process p { int l[3] = {2, 0, 1}; int k = 0; k = l[k]; k = l[k]; x = l[l[k]] + l[x]; } "
        "reachable r: x == 3 || x == 2 || x == 4; always a: x == 0;"
    ),
    "only flag": "int a[1] = 0; int k in 0..1; process p { if (a[k] == 0) { skip; } } reachable r: done;",
    "skip forever tail": (
        "int x = 0; process p { x = 1; skip; skip; skip; skip; } process q { skip; skip; } reachable r: x == "
        "1; final f: x == 1;"
    ),
    "empty process": (
        "int x = 0; process p { } process q { x = 1; } reachable r: done && x == 1; reachable s: done(p) && x == 0;"
    ),
    "constant branches": (
        "const c = true; int x = 0; process p { if (c) { x = 1; } else { x = 2; } while (!c) { x = 9; } } "
        "reachable r: x == 1; always n: x != 2 && x != 9;"
    ),
    "bool arithmetic": (
        "bool a = false, b; process p { a = a == b; b = a != b; } reachable r: a && b; reachable s: !a && !b; "
        "reachable t: a && !b;"
    ),
    "width wrap": (
        "int x = 7; process p { x = x + 1; x = x * 2; } reachable r: x == -8; reachable s: x == 0; reachable "
        "t: x == 16;"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ODD)
def test_odd_programs(name: str) -> None:
    """The enumeration of all states says the same; where there are too many, the encodings agree with each other."""
    program = parse_program(ODD[name])
    ways: list[dict[str, Any]] = list(WAYS)
    try:
        found = [check(program, encoding="explicit")]
    except UsageError:
        found = []
    found += [check(program, **way) for way in ways]
    statuses = [{p.name: p.status for p in verdict.properties} for verdict in found]
    assert all(status == statuses[0] for status in statuses), statuses
    assert "inconclusive" not in statuses[0].values()

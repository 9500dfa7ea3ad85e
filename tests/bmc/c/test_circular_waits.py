"""Threads that wait for each other's locks while other threads run: against a simulation of the locks alone."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.bmc import check
from plait.bmc.c.load import load_c
from plait.bmc.options import Encoding

Operation = tuple[str, int]
"""Lock or unlock a mutex."""
MUTEXES = 3


@st.composite
def operations(draw: st.DrawFn) -> list[Operation]:
    """What a thread does: it unlocks only what it holds, and may lock a mutex again."""
    found: list[Operation] = []
    held: set[int] = set()
    for _ in range(draw(st.integers(1, 4))):
        if held and draw(st.booleans()):
            mutex = draw(st.sampled_from(sorted(held)))
            held.remove(mutex)
            found.append(("unlock", mutex))
        else:
            mutex = draw(st.integers(0, MUTEXES - 1))
            held.add(mutex)
            found.append(("lock", mutex))
    return found


def source(threads: list[list[Operation]], *, endless: bool) -> str:
    """The program; `endless`: one more thread never ends and takes no lock."""
    lines = ["#include <pthread.h>", "int beat;"]
    lines += [f"pthread_mutex_t m{n} = PTHREAD_MUTEX_INITIALIZER;" for n in range(MUTEXES)]
    for number, thread in enumerate(threads):
        body = " ".join(f"pthread_mutex_{name}(&m{mutex});" for name, mutex in thread)
        lines.append(f"void *t{number}(void *arg) {{ {body} return 0; }}")
    lines.append("void *endless(void *arg) { for (;;) beat = !beat; return 0; }")
    names = [f"t{n}" for n in range(len(threads))]
    creates = [f"pthread_create(&i{n}, 0, {name}, 0);" for n, name in enumerate(names)]
    if endless:
        creates.append("pthread_create(&e, 0, endless, 0);")
    joins = [f"pthread_join(i{n}, 0);" for n in range(len(names))]
    ids = ", ".join(["e", *(f"i{n}" for n in range(len(names)))])
    lines.append(f"int main(void) {{ pthread_t {ids}; {' '.join(creates + joins)} return 0; }}")
    return "\n".join(lines)


def deadlocks(threads: list[list[Operation]], *, endless: bool) -> bool:
    """Whether a deadlock is reachable: all threads wait, or some wait for each other in a circle."""
    start = ((0,) * len(threads), (-1,) * MUTEXES)
    seen, todo = {start}, [start]
    while todo:
        places, owners = todo.pop()
        waits_for: dict[int, int] = {}
        moved = False
        for t, thread in enumerate(threads):
            if places[t] == len(thread):
                continue
            name, mutex = thread[places[t]]
            if name == "lock" and owners[mutex] >= 0:
                waits_for[t] = owners[mutex]
                continue
            moved = True
            owner = t if name == "lock" else -1
            after = (
                (*places[:t], places[t] + 1, *places[t + 1 :]),
                (*owners[:mutex], owner, *owners[mutex + 1 :]),
            )
            if after not in seen:
                seen.add(after)
                todo.append(after)
        for t in waits_for:
            passed = [t]
            while passed[-1] in waits_for and len(passed) <= len(threads):
                passed.append(waits_for[passed[-1]])
                if passed[-1] == t:
                    return True
        if waits_for and not moved and not endless:
            return True
    return False


def found(text: str, encoding: Encoding) -> bool:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "program.c"
        file.write_text(text, encoding="utf-8")
        verdict = check(
            load_c(file), encoding=encoding, properties=["deadlock"], depth=None if encoding == "explicit" else 24
        )
    return verdict.properties[0].status == "violated"


@settings(deadline=None)
@given(st.lists(operations(), min_size=2, max_size=3), st.booleans())
def test_enumeration(threads: list[list[Operation]], endless: bool) -> None:
    assert found(source(threads, endless=endless), "explicit") == deadlocks(threads, endless=endless)


AB_BA = [[("lock", 0), ("lock", 1)], [("lock", 1), ("lock", 0)]]
SAME_ORDER = [[("lock", 0), ("lock", 1), ("unlock", 1), ("unlock", 0)]] * 2
CIRCLE = [[("lock", 0), ("lock", 1)], [("lock", 1), ("lock", 2)], [("lock", 2), ("lock", 0)]]
ITSELF = [[("lock", 0), ("lock", 0)], [("lock", 1)]]


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["explicit", "clock", "steps"])
@pytest.mark.parametrize(
    "threads", [AB_BA, SAME_ORDER, CIRCLE, ITSELF], ids=["ab-ba", "same order", "circle of three", "itself"]
)
def test_programs(threads: list[list[Operation]], encoding: Encoding) -> None:
    assert found(source(threads, endless=True), encoding) == deadlocks(threads, endless=True)

"""C programs with known verdicts: many have the shape and the verdict of a program of SV-COMP; the text is our own.

The first lines of a program say what is expected: `// verdict: true` if no assertion can fail; `// violated: deadlock`
lists all other properties that are violated (`limits`: a run exceeds a bound); `// options: overflow=true` gives options
of the translation.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.bmc import check
from plait.bmc.c.load import load_c
from plait.bmc.load import Reading, load
from plait.bmc.verdict import UNDEFINED
from plait.kernel.errors import UsageError
from tests.bmc.c.expectations import PROGRAMS, SILENT, options, said


def test_there_are_enough_programs() -> None:
    assert len(PROGRAMS) >= 60
    assert {said(path, "verdict") for path in PROGRAMS} == {"true", "false"}


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_the_verdict_of_a_program(path: Path) -> None:
    program = load_c(path, **options(path))
    verdict = check(program, encoding="explicit", timeout=120)
    status = {p.name: p.status for p in verdict.properties}
    expected = {name for name in (said(path, "violated") or "").split(", ") if name}
    if "limits" in expected:
        assert set(status.values()) == {"inconclusive"}, "nothing holds if a run exceeds a bound"
        return
    violated = {name for name, s in status.items() if s == "violated"} - (SILENT - expected)
    others = {s for s in status.values() if s != "violated"}
    assert others <= ({"inconclusive"} if violated & UNDEFINED else {"holds"}), status
    assert violated - {"assertions"} == expected
    assert ("assertions" in violated) == (said(path, "verdict") == "false")


@pytest.mark.parametrize(("condition", "expected"), [("argc != 3", "violated"), ("argc >= 1", "holds")])
def test_main_gets_any_number_of_words(condition: str, expected: str, tmp_path: Path) -> None:
    file = tmp_path / "words.c"
    text = f"int main(int argc, char **argv) {{ (void)argv; assert({condition}); return 0; }}\n"
    file.write_text(f"#include <assert.h>\n{text}", encoding="utf-8")
    verdict = check(load_c(file), properties=["assertions"], timeout=120)
    assert [p.status for p in verdict.properties] == [expected]


WORDS = """
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#ifndef LIMIT
#define LIMIT 1
#endif
int main(int argc, char *argv[]) {
  int count = 2, more;
  short small;
  if (argc > 2) { fprintf(stderr, "usage: %s [count]\\n", argv[0]); exit(1); }
  if (argc == 2) count = atoi(argv[1]);
  assert(scanf("%d %hd", &more, &small) == 2);
  assert(CONDITION);
  return 0;
}
"""


@pytest.mark.parametrize(
    ("condition", "expected"),
    [("small <= 32767 * LIMIT", "holds"), ("count != more - 77", "violated"), ("argc != 2 || count > 9", "violated")],
)
def test_what_a_program_reads_is_any_number(condition: str, expected: str, tmp_path: Path) -> None:
    file = tmp_path / "input.c"
    file.write_text(WORDS.replace("CONDITION", condition), encoding="utf-8")
    verdict = check(load_c(file), properties=["assertions"], timeout=120)
    assert [p.status for p in verdict.properties] == [expected]


def test_parameters_of_a_c_program_are_macros(tmp_path: Path) -> None:
    file = tmp_path / "input.c"
    file.write_text(WORDS.replace("CONDITION", "small <= 100 * LIMIT"), encoding="utf-8")
    for limit, expected in ((1, "violated"), (328, "holds")):
        verdict = check(load(str(file), {"LIMIT": limit}), properties=["assertions"], timeout=120)
        assert [p.status for p in verdict.properties] == [expected]
    with pytest.raises(UsageError, match="has no macro OTHER"):
        load(str(file), {"OTHER": 1})


SIGNALLED = """
#include <assert.h>
#include <pthread.h>
#include <signal.h>
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
int ready;
void *worker(void *arg) {
  pthread_mutex_lock(&lock);
  ready = 1;
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&lock);
  return 0;
}
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, worker, 0);
  pthread_mutex_lock(&lock);
  UNTIL (!ready) pthread_cond_wait(&changed, &lock);
  assert(ready);
  pthread_mutex_unlock(&lock);
  pthread_join(t, 0);
  return 0;
}
"""


@pytest.mark.parametrize(
    ("until", "spurious", "expected"), [("if", False, "holds"), ("if", True, "violated"), ("while", True, "holds")]
)
def test_a_thread_may_wake_up_without_a_signal(until: str, spurious: bool, expected: str, tmp_path: Path) -> None:
    file = tmp_path / "signalled.c"
    file.write_text(SIGNALLED, encoding="utf-8")
    program = load(str(file), {"UNTIL": until}, Reading(spurious=spurious))
    verdict = check(program, encoding="explicit", properties=["assertions"])
    assert [p.status for p in verdict.properties] == [expected]


RACES = {
    # All accesses are ordered by locks, atomics, barriers or joins.
    "holds": "barrier buffer_ok list once_and_spin rwlock_ok semaphores stateful02 test_and_set ticket_lock",
    # Ordinary variables as flags; readers that write; a lock that is not the one of the variable; no lock at all.
    "violated": "dekker fib_bench peterson rwlock_bad singleton twostage_3 use_after_free cas_counter",
}


@pytest.mark.parametrize(("name", "expected"), [(n, s) for s, names in RACES.items() for n in names.split()])
def test_data_races(name: str, expected: str) -> None:
    path = next(p for p in PROGRAMS if p.stem == name)
    verdict = check(load_c(path, **options(path)), encoding="explicit", races=True, properties=["races"], timeout=120)
    assert [p.status for p in verdict.properties] == [expected]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("left(1)", "violated"),
        ("left(5)", "holds"),
        ("skipped(1)", "violated"),
        ("skipped(2)", "holds"),
        ("before()", "violated"),
        ("short_of_one()", "violated"),
    ],
)
def test_only_a_loop_that_fills_an_array_sets_all_of_it(call: str, expected: str, tmp_path: Path) -> None:
    text = next(p for p in PROGRAMS if p.stem == "unset_filled").read_text(encoding="utf-8")
    file = tmp_path / "one.c"
    file.write_text(text[: text.index("int main")] + f"int main(void) {{ return {call}; }}\n", encoding="utf-8")
    verdict = check(load_c(file), encoding="explicit")
    assert [p.status for p in verdict.properties if p.name == "memory"] == [expected]

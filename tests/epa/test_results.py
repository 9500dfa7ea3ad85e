"""The results file of a campaign: continuation, extension, repair; parallel runs; standard input; allowed functions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from plait.epa.campaign import Campaign, Header, NotDeterministic, Result, load, perform
from plait.kernel.errors import UsageError
from tests.epa.conftest import Build
from tests.support.command import plait

SUMS = """#include <stdio.h>
int main(void) {
    int value, sum = 0;
    while (scanf("%d", &value) == 1) sum += value;
    printf("%d\\n", sum);
    return 0;
}
"""
SAME = """#include <pthread.h>
#include <stdio.h>
static int flag;
static void *work(void *given) { flag = 1; return given; }
int main(void) {
    pthread_t ids[2];
    for (long i = 0; i < 2; i++) pthread_create(&ids[i], NULL, work, NULL);
    for (int i = 0; i < 2; i++) pthread_join(ids[i], NULL);
    printf("%d\\n", flag);
    return 0;
}
"""


def facts(found: list[Result]) -> list[tuple[object, ...]]:
    """Results without durations, in the order of the runs."""
    rows = [(r.index, r.fault, r.outcome, r.deviates, r.propagates, tuple(r.differences)) for r in found]
    return sorted(rows, key=lambda row: row[0])  # type: ignore[arg-type,return-value]


def performed(make: Callable[[], Campaign], file: Path) -> list[Result]:
    campaign = make()
    try:
        return list(perform(campaign, file))
    finally:
        campaign.close()


@pytest.mark.slow
def test_parallel_runs_have_the_same_results(built: Build, tmp_path: Path) -> None:
    """And so has a campaign that is extended, from a file that a crash has cut."""
    program = built("kmeans.c")

    def campaign(runs: int, jobs: int) -> Callable[[], Campaign]:
        types = ["callcorr", "mallsize"]
        return lambda: Campaign(program, ["2", "8"], types=types, runs=runs, seed=5, jobs=jobs, timeout=60)

    alone = performed(campaign(12, 1), tmp_path / "alone.jsonl")
    together = performed(campaign(12, 3), tmp_path / "together.jsonl")
    assert facts(alone) == facts(together)
    file = tmp_path / "extended.jsonl"
    first = performed(campaign(5, 2), file)
    assert facts(first) == facts(alone)[:5]
    file.write_bytes(file.read_bytes()[:-40])
    assert facts(performed(campaign(12, 2), file)) == facts(alone)
    lines = [json.loads(line) for line in file.read_bytes().splitlines()]
    assert (lines[0]["runs"], len(lines)) == (12, 13)
    assert facts(performed(campaign(3, 1), file)) == facts(alone)[:3], "fewer runs are a part of it"
    assert len(file.read_bytes().splitlines()) == 13


HEADER = Header("a.epa", "00", [], ["bitflip"], 4, 0)


def test_a_cut_line_is_removed(tmp_path: Path) -> None:
    """Whatever a crash leaves of the last line, the file has only whole lines after it was loaded."""
    whole = msgspec.json.encode(HEADER) + b"\n"
    for index in range(2):
        fault = {"type": "bitflip", "site": 1, "thread": "T_0", "nth": 0, "value": 1}
        whole += json.dumps({"index": index, "fault": fault, "outcome": "sdc", "deviates": True, "propagates": True,
                             "struck": True, "seconds": 0.1, "place": "a.c:1"}).encode() + b"\n"  # fmt: skip
    ends = [i + 1 for i, byte in enumerate(whole) if byte == 10]
    file = tmp_path / "results.jsonl"
    for cut in range(len(whole)):
        file.write_bytes(whole[:cut])
        expected = 1 if ends[1] - 1 <= cut < ends[2] - 1 else 2 if cut >= ends[2] - 1 else 0
        if 0 < cut < 9:
            with pytest.raises(UsageError, match="not a results file"):
                load(file, HEADER)
            continue
        assert len(load(file, HEADER)) == expected
        lines = file.read_bytes().splitlines()
        assert json.loads(lines[0])["runs"] == 4
        assert len(lines) == 1 + expected


def test_another_campaign_is_not_continued(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    load(file, HEADER)
    for other in ({"seed": 1}, {"tolerance": 0.1}, {"allow": ["rand"]}, {"input": "00"}):
        with pytest.raises(UsageError, match="another campaign"):
            load(file, msgspec.structs.replace(HEADER, **other))


@pytest.mark.slow
def test_standard_input(built: Build, tmp_path: Path) -> None:
    """From a pipe, a file or `--stdin`: all runs of a campaign get the same input."""
    program, given = built(SUMS), tmp_path / "numbers"
    given.write_text("1 2\n30 400\n", encoding="utf-8")
    assert plait(["epa", "run", str(program), "-o", "a"], tmp_path, stdin="1 2 3").stdout == "6\n"
    assert plait(["epa", "run", str(program), "-o", "b", "--stdin", str(given)], tmp_path).stdout == "433\n"
    assert plait(["epa", "run", str(program), "-o", "c"], tmp_path, stdin="").stdout == "0\n"
    said = plait(["epa", "compare", "a", "b"], tmp_path)
    assert said.returncode == 3
    assert "different standard inputs" in said.stdout
    campaign = Campaign(program, [], types=["bitflip"], runs=10, stdin=given, allow=["__isoc99_scanf"], jobs=2)
    try:
        assert campaign.results.stdout == b"433\n"
        assert {r.outcome for r in map(campaign.inject, range(10))} >= {"sdc"}
    finally:
        campaign.close()


@pytest.mark.slow
def test_options_of_the_check(built: Build, tmp_path: Path) -> None:
    """`--benign-same-value` and `--allow` make a campaign possible that is refused without them."""
    program = built(SAME)
    with pytest.raises(NotDeterministic):
        Campaign(program, [], types=["bitflip"], runs=1)
    Campaign(program, [], types=["bitflip"], runs=1, benign_same_value=True).close()
    seeded = built('#include <stdio.h>\n#include <stdlib.h>\nint main(void) { srand(3); printf("%d\\n", rand()); }\n')
    with pytest.raises(NotDeterministic):
        Campaign(seeded, [], types=["bitflip"], runs=1, allow=["srand"], replay="never")
    Campaign(seeded, [], types=["bitflip"], runs=1, allow=["rand", "srand"]).close()


@pytest.mark.slow
def test_an_allowed_function_that_differs_is_noticed(built: Build) -> None:
    """A second run without a fault notices if --allow names too much."""
    source = '#include <stdio.h>\n#include <unistd.h>\nint main(void) { printf("%d\\n", (int)getpid()); }\n'
    with pytest.raises(UsageError, match="a second run without a fault deviates"):
        Campaign(built(source), [], types=["bitflip"], runs=1, allow=["getpid"])

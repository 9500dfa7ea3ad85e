"""Comparison of faulty runs, and campaigns: outcomes, propagation, resumption."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest

from plait.epa.campaign import Campaign, NotDeterministic, Result, load, perform, summarize, wilson
from plait.epa.comparison import compare, path_to_output
from plait.epa.faults import TYPES, Fault, draw, parse, targets
from plait.epa.output.html import comparison_html
from plait.epa.output.plot import campaign_svg
from plait.epa.recording import Recording
from plait.kernel.errors import UsageError
from tests.epa.conftest import EXAMPLES, Build, Record
from tests.support.patience import PATIENCE

LOCKED = """#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int parts[2];
static void *work(void *given) {
    long me = (long)given;
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&lock);
        parts[me] += i;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}
int main(void) {
    pthread_t ids[2];
    for (long i = 0; i < 2; i++) pthread_create(&ids[i], NULL, work, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(ids[i], NULL);
    printf("%d %d\\n", parts[0], parts[1]);
    return 0;
}
"""


def site_of(recording: Recording, op: str, line: int, function: str) -> int:
    table = recording.table
    return next(
        i for i in range(1, len(table.sites) + 1)
        if table.site(i).op == op and table.site(i).line == line and table.site(i).function == function
    )  # fmt: skip


@pytest.mark.slow
def test_one_flipped_bit(record: Record) -> None:
    """3 + 1 becomes 5 in T_0_0: it reaches main through arr, and the output. T_0_1 does not notice."""
    golden = record("listing4.c")
    site = site_of(golden, "add", 8, "inc")
    faulty = record("listing4.c", fault=Fault("bitflip", site, "T_0_0", 0, 1))
    assert faulty.output == b"Result: 10\n"
    assert faulty.native.faults() == [(1, 4, site, 4, 5)]
    found = compare(golden, faulty)
    assert (found.verdict.status, found.output_differs, found.equal) == ("violated", True, False)
    threads = {t.thread: t for t in found.threads}
    assert threads["T_0_1"].first is None
    first = threads["T_0_0"].first
    assert first is not None
    assert (first.golden, first.faulty) == ("add 4", "add 5")
    assert not any(t.parted for t in found.threads)
    roots = [s for s in found.spots if s.root]
    assert [(s.thread, s.what, s.place.rsplit("/", 1)[-1]) for s in roots] == [("T_0_0", "add", "listing4.c:8")]
    across = [link for link in found.links if link.across]
    assert [(link.via, link.object) for link in across] == [("memory", "arr")]
    path = [found.spots[i] for i in path_to_output(found)]
    assert [s.what for s in path] == ["add", "store", "load", "add", "argument 1 of printf"]
    assert [s.thread for s in path] == ["T_0_0", "T_0_0", "T_0", "T_0", "T_0"]
    page = comparison_html(found)
    assert "add 4" in page
    assert "add 5" in page
    assert found.verdict.trace is not None
    assert [m.type for m in found.verdict.trace.messages] == ["memory"]
    assert msgspec.json.decode(msgspec.json.encode(found))["equal"] is False


@pytest.mark.slow
def test_a_masked_bit_leads_nowhere(record: Record) -> None:
    """A value that nobody uses deviates, is stored and read, and that is all."""
    source = LOCKED.replace("parts[me] += i;", "int unused = i + 1; (void)unused; parts[me] += i;")
    golden = record(source)
    site = site_of(golden, "add", 10, "work")
    faulty = record(source, fault=Fault("bitflip", site, "T_0_0", 1, 8))
    assert faulty.output == golden.output
    found = compare(golden, faulty)
    assert {(s.thread, s.what) for s in found.spots} == {("T_0_0", "add"), ("T_0_0", "store"), ("T_0_0", "load")}
    assert golden.native.outcome(faulty.native) == (False, True)


@pytest.mark.slow
def test_a_crash_ends_a_thread_early(record: Record) -> None:
    golden = record("kmeans.c", "2", "8")
    site = site_of(golden, "getelementptr", 28, "assign")
    faulty = record("kmeans.c", "2", "8", fault=Fault("bitflip", site, "T_0_1", 0, 1 << 46), expect=-11)
    found = compare(golden, faulty)
    assert found.ending == "killed by SIGSEGV"
    threads = {t.thread: t for t in found.threads}
    assert threads["T_0_1"].missing > 0
    assert not found.equal


@pytest.mark.slow
def test_other_paths_are_brought_together(record: Record) -> None:
    """A flipped comparison takes another path; what comes after it is compared again."""
    golden = record("quicksort.c", "1", "12")
    text = (EXAMPLES / "quicksort.c").read_text(encoding="utf-8").splitlines()
    line = next(i for i, part in enumerate(text, 1) if "if (i >= j)" in part)
    site = site_of(golden, "icmp", line, "partition")
    faulty = record("quicksort.c", "1", "12", fault=Fault("bitflip", site, "T_0", 2, 1), expect=None)
    main = compare(golden, faulty).threads[0]
    assert main.parted
    assert main.missing + main.extra < golden.threads[0].events


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "outcomes", "timeout"),
    [
        ("skipunlock", {"hang", "none"}, 2.0),
        ("droplock", {"none", "masked", "sdc"}, PATIENCE),
        ("killthread", {"sdc", "hang", "masked"}, 2.0),
    ],
)
def test_faults_of_concurrency(kind: str, outcomes: set[str], timeout: float, built: Build) -> None:
    campaign = Campaign(built(LOCKED), [], types=[kind], runs=2, seed=1, timeout=timeout)
    try:
        results = [campaign.inject(i) for i in range(2)]
    finally:
        campaign.close()
    assert {r.outcome for r in results} <= outcomes
    assert all(r.struck for r in results)


@pytest.mark.slow
def test_a_lock_that_is_not_released(record: Record) -> None:
    """The thread itself waits for it next, for ever."""
    golden = record(LOCKED)
    line = next(i for i, text in enumerate(LOCKED.splitlines(), 1) if "mutex_unlock" in text)
    site = site_of(golden, "call", line, "work")
    faulty = record(LOCKED, fault=Fault("skipunlock", site, "T_0_0", 0, 0), expect=None, timeout=2.0)
    assert faulty.run is not None
    assert faulty.run.timed_out
    assert "T_0_0" in str(faulty.cuts)


@pytest.mark.slow
def test_a_campaign(built: Build, tmp_path: Path) -> None:
    """Crashes and corruptions all deviate; what was interrupted goes on; the seed repeats."""
    program, file = built("kmeans.c"), tmp_path / "results.jsonl"
    types = ["bitflip", "mallsize", "callcorr", "invalptr"]
    campaign = Campaign(program, ["2", "8"], types=types, runs=48, seed=5)
    try:
        part = perform(campaign, file)
        some = [next(part) for _ in range(10)]
        part.close()
        with file.open("ab") as out:
            out.write(b'{"index":10,"fau')  # killed while it was writing
        results = list(perform(campaign, file))
        assert results[:10] == some
        assert sorted(r.index for r in results) == list(range(48))
        again = campaign.inject(3)
        assert (again.fault, again.deviates) == (results[3].fault, results[3].deviates)
    finally:
        campaign.close()
    assert not campaign.folder.exists()
    summary = summarize(campaign.header, results)
    assert (summary.complete, summary.missed) == (True, 0)
    assert summary.failures > 10
    assert {s.type for s in summary.shares} == set(types)
    for share in summary.shares:
        assert sum(share.outcomes.values()) == share.runs == 12
        assert 0 <= share.low <= share.coverage <= share.high <= 1
    assert all(r.struck for r in results)
    assert campaign_svg(summary).count("<rect") > 4 * 4
    other = msgspec.structs.replace(campaign.header, seed=6)
    with pytest.raises(UsageError, match="another campaign"):
        load(file, other)


@pytest.mark.slow
def test_what_cannot_be_compared_with_is_not_injected(built: Build) -> None:
    with pytest.raises(NotDeterministic) as error:
        Campaign(built("racy_counter.c"), [], types=["bitflip"], runs=1)
    assert error.value.found.witnesses
    with pytest.raises(UsageError, match="not a type"):
        Campaign(built("listing4.c"), [], types=["bitflop"], runs=1)
    with pytest.raises(UsageError, match="no place for a fault of type filesize"):
        Campaign(built("listing4.c"), [], types=["filesize"], runs=1)


@pytest.mark.slow
def test_faults_strike_where_they_should(record: Record) -> None:
    """Each type is drawn only where it fits, and every execution of the golden run can be drawn."""
    golden = record("kmeans.c", "2", "8")
    executions = golden.executions()
    for kind in TYPES:
        choices = targets(golden.table, executions, kind)
        if kind in ("filesize", "shortread", "skipunlock", "droplock", "doublelock", "doubleunlock"):
            assert choices == []
            continue
        for seed in range(20):
            fault = draw(golden.table, choices, kind, random.Random(seed))
            site = golden.table.site(fault.site)
            if kind == "invalptr":
                assert site.name == "malloc"
            if kind == "mallsize":
                assert (site.op, site.name, site.index) == ("argument", "malloc", 0)
            if kind in ("bitflip", "callcorr", "invalptr"):
                assert fault.value.bit_count() == 1
                assert fault.value < 1 << site.bits
            assert parse(fault.text) == fault


@pytest.mark.slow
def test_a_size_of_a_file(built: Build) -> None:
    """fwrite is told to write more than there is to be written: another output, and nothing else deviates."""
    source = """#include <stdio.h>
#include <stdlib.h>
int main(void) {
    char *text = calloc(256, 1);
    for (int i = 0; i < 16; i++) text[i] = 'a' + i;
    fwrite(text, 1, 16, stdout);
    free(text);
    return 0;
}
"""
    campaign = Campaign(built(source), [], types=["filesize"], runs=4, seed=2)
    try:
        results = [campaign.inject(i) for i in range(4)]
    finally:
        campaign.close()
    assert {r.outcome for r in results} <= {"sdc", "crash"}
    assert all(r.deviates for r in results)


READS = """#include <stdio.h>
int main(void) {
    int numbers[64], total = 0;
    FILE *file = tmpfile();
    for (int i = 0; i < 64; i++) numbers[i] = i + 1;
    fwrite(numbers, sizeof *numbers, 16, file);
    rewind(file);
    for (int i = 0; i < 64; i++) numbers[i] = 0;
    size_t got = fread(numbers, sizeof *numbers, 8, file);
    for (size_t i = 0; i < got; i++) total += numbers[i];
    got = fread(numbers, sizeof *numbers, 8, file);
    printf("%d %zu\\n", total, got);
    fclose(file);
    return 0;
}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("index", "more", "output"),
    [
        (2, 4, b"78 4\n"),  # twelve numbers, then the four that are left
        (2, 100, b"136 0\n"),  # all sixteen
        (1, 4, b"36 0\n"),  # eight numbers of eight bytes: the file ends there
    ],
)
def test_a_size_given_to_fread(index: int, more: int, output: bytes, record: Record) -> None:
    """fread reads as much more as the fault says, up to the end of the file; the argument and what was read deviate."""
    golden = record(READS)
    assert golden.output == b"36 8\n"
    table = golden.table
    targets_ = targets(table, golden.executions(), "filesize")
    names = sorted((table.site(t.site).name, table.site(t.site).index) for t in targets_)
    assert names == [("fread", 1)] * 2 + [("fread", 2)] * 2 + [("fwrite", 1), ("fwrite", 2)]
    site = next(t.site for t in targets_ if (table.site(t.site).name, table.site(t.site).index) == ("fread", index))
    faulty = record(READS, fault=Fault("filesize", site, "T_0", 0, more))
    assert faulty.output == output
    given = 8 if index == 2 else 4
    assert [row[3:] for row in faulty.native.faults()] == [(given, given + more)]
    found = compare(golden, faulty)
    first = found.threads[0].first
    assert first is not None
    assert (first.golden, first.faulty) == (f"argument {index}: {given}", f"argument {index}: {given + more}")
    assert [s.what for s in found.spots if s.root] == [f"argument {index} of fread"]
    assert any("fread" in s.what and not s.root for s in found.spots), "what it returns, or what it wrote to"


@pytest.mark.slow
def test_a_size_beyond_the_end_of_a_file_is_masked(built: Build) -> None:
    """The second fread gets all that is left, whatever it asks for."""
    campaign = Campaign(built(READS), [], types=["filesize"], runs=30, seed=3)
    try:
        table = campaign.golden.table
        sites = [t.site for t in targets(table, campaign.golden.executions(), "filesize")]
        last = max(s for s in sites if table.site(s).name == "fread" and table.site(s).index == 2)
        results = [campaign.inject(i) for i in range(30)]
    finally:
        campaign.close()
    assert {r.outcome for r in results if r.fault.site == last} == {"masked"}
    assert "sdc" in {r.outcome for r in results}
    assert all(r.struck and r.deviates for r in results)


def test_wilson() -> None:
    """Against the published example of Newcombe (1998): 81 of 263."""
    low, high = wilson(81, 263)
    assert (round(low, 4), round(high, 4)) == (0.2553, 0.3662)


def test_results_are_plain_data() -> None:
    result = Result(0, Fault("bitflip", 1, "T_0", 0, 1), "sdc", True, True, True, 0.1, "a.c:1")
    assert msgspec.json.decode(msgspec.json.encode(result), type=Result) == result

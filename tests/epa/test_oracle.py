"""The oracle of campaigns: wrong files, wrong standard error, tolerance, checkers; and the state of files after runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.epa.campaign import Campaign, Result
from plait.epa.comparison import compare
from plait.epa.oracle import Oracle, Results, close, results
from plait.epa.recording import Recording
from plait.epa.run import run
from plait.kernel.errors import UsageError
from tests.epa.conftest import Build

TO_A_FILE = """#include <stdio.h>
int main(int count, char **given) {
    double sum = 0, product = 1;
    for (int i = 1; i <= 20; i++) { sum += 1.0 / i; product *= 1 + 1.0 / (i * i); }
    FILE *out = fopen(count > 1 ? given[1] : "result.txt", "w");
    fprintf(out, "%.12f %.12f\\n", sum, product);
    fclose(out);
    return 0;
}
"""
APPENDS = """#include <stdio.h>
int main(void) {
    int values[8], n = 0;
    FILE *log = fopen("log.txt", "a+");
    rewind(log);
    while (n < 8 && fscanf(log, "%d", &values[n]) == 1) n++;
    fseek(log, 0, SEEK_END);
    fprintf(log, "%d\\n", n * 10);
    fclose(log);
    return 0;
}
"""
COMPLAINS = """#include <stdio.h>
int main(void) {
    int sum = 0;
    for (int i = 0; i < 30; i++) sum += i * i;
    fprintf(stderr, "sum %d\\n", sum);
    return 0;
}
"""


def outcomes(program: Path, arguments: list[str], runs: int, **options: object) -> list[Result]:
    campaign = Campaign(program, arguments, types=["bitflip"], runs=runs, seed=3, **options)  # type: ignore[arg-type]
    try:
        return [campaign.inject(i) for i in range(runs)]
    finally:
        campaign.close()


@pytest.mark.slow
def test_a_wrong_file_is_silent_data_corruption(built: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The result goes only to a file. The oracle is the program itself, run alone with the same fault."""
    monkeypatch.chdir(tmp_path)
    program = built(TO_A_FILE)
    found = outcomes(program, [], 30, allow=["fprintf"])
    assert list(tmp_path.iterdir()) == [], "a campaign leaves no file behind"
    assert sum(r.outcome == "sdc" for r in found) >= 10
    run(program, [], tmp_path / "golden")
    golden = (tmp_path / "result.txt").read_bytes()
    for result in found:
        if result.outcome in ("sdc", "masked", "none"):
            (tmp_path / "result.txt").unlink()
            run(program, [], tmp_path / "faulty", fault=result.fault)
            wrong = (tmp_path / "result.txt").read_bytes() != golden
            assert (result.outcome == "sdc") == wrong
            assert (result.differences == ["file result.txt"]) == wrong
    assert results(tmp_path / "golden").files == {"result.txt": golden}


@pytest.mark.slow
def test_small_errors_can_be_tolerated(built: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A larger tolerance accepts at least the same runs, and a checker that does the same decides the same."""
    monkeypatch.chdir(tmp_path)
    program = built(TO_A_FILE)
    (tmp_path / "checker.py").write_text(
        "def check(golden, faulty):\n"
        "    if set(faulty.files) != {'result.txt'} or faulty.files['result.txt'] is None: return 'no result'\n"
        "    ours, theirs = ([float(x) for x in r.files['result.txt'].split()] for r in (golden, faulty))\n"
        "    return len(ours) == len(theirs) and all(abs(a - b) <= 1e-2 * abs(a) for a, b in zip(ours, theirs))\n",
        encoding="utf-8",
    )
    exact = outcomes(program, [], 30)
    loose = outcomes(program, [], 30, oracle=Oracle(tolerance=1e-2))
    asked = outcomes(program, [], 30, oracle=Oracle(checker=tmp_path / "checker.py"))
    wrong = [{r.index for r in found if r.outcome == "sdc"} for found in (exact, loose, asked)]
    assert wrong[1] < wrong[0]
    assert wrong[1] == wrong[2]


@pytest.mark.slow
def test_old_content_is_the_input_of_each_run(built: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that appends to a file gets the same file in each run, and the file is as before at the end."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.txt").write_text("1\n2\n", encoding="utf-8")
    for jobs in (1, 2):
        allow = ["fscanf", "fseek"]
        campaign = Campaign(built(APPENDS), [], types=["bitflip"], runs=6, jobs=jobs, allow=allow)
        try:
            assert campaign.results.files == {"log.txt": b"1\n2\n20\n"}
            assert {r.index for r in map(campaign.inject, range(6))} == set(range(6))
        finally:
            campaign.close()
        assert (tmp_path / "log.txt").read_text(encoding="utf-8") == "1\n2\n"
        assert [p.name for p in tmp_path.iterdir()] == ["log.txt"]


@pytest.mark.slow
def test_standard_error_is_a_result(built: Build) -> None:
    found = outcomes(built(COMPLAINS), [], 12)
    assert {tuple(r.differences) for r in found if r.outcome == "sdc"} == {("stderr",)}
    ignored = outcomes(built(COMPLAINS), [], 12, oracle=Oracle(ignore=["stderr"]))
    assert not any(r.outcome == "sdc" for r in ignored)


@pytest.mark.slow
def test_comparisons_name_the_wrong_results(built: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = built(TO_A_FILE)
    fault = next(r.fault for r in outcomes(program, [], 30) if r.outcome == "sdc")
    run(program, [], tmp_path / "golden")
    run(program, [], tmp_path / "faulty", fault=fault)
    found = compare(Recording(tmp_path / "golden"), Recording(tmp_path / "faulty"))
    assert (found.output_differs, found.differences) == (True, ["file result.txt"])


@pytest.mark.slow
def test_parallel_runs_do_not_share_a_file(built: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="parallel runs would write the same file"):
        outcomes(built(TO_A_FILE), [str(tmp_path.parent / "elsewhere.txt")], 2, jobs=2)


@pytest.mark.parametrize(
    ("golden", "other", "equal"),
    [
        (b"a 1.000000 b", b"a 1.0000001 b", True),
        (b"a 1.0 b", b"a 1.1 b", False),
        (b"0", b"1e-300", False),
        (b"nan", b"nan", True),
        (b"nan", b"1", False),
        (b"1 2", b"1 2 3", False),
        (b"x1", b"y1", False),
        (b"-5", b"5", False),
        (b"inf", b"1e308", False),
    ],
)
def test_tolerance(golden: bytes, other: bytes, equal: bool) -> None:
    assert close(golden, other, 1e-6) == equal


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no function check"),
        ("def check(:", "cannot be loaded"),
        ("def check(golden, faulty): return 1 / 0", "ZeroDivisionError"),
        ("def check(golden, faulty): return 7", "returned 7"),
    ],
)
def test_wrong_checkers(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "checker.py"
    file.write_text(text, encoding="utf-8")
    nothing = Results(0, b"", b"", {})
    with pytest.raises(UsageError, match=said):
        Oracle(checker=file).differences(nothing, nothing)

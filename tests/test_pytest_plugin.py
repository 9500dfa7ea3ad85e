"""The pytest plugin, run by pytest on test files of its own."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest

pytestmark = pytest.mark.slow

MODEL = """
import pytest
from plait import Process, System, action, always, reachable

class Counter(Process):
    limit: int = 3
    number: int = 0

    @action(when=lambda self: self.number < self.limit)
    def tick(self):
        self.number += 1

@always
def small(s):
    return all(c.number <= 1 for c in s[Counter])

@always
def positive(s):
    return all(c.number >= 0 for c in s[Counter])

@reachable
def three(s):
    return any(c.number == 3 for c in s[Counter])

@reachable
def nine(s):
    return any(c.number == 9 for c in s[Counter])
"""


QUICK = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest")


def outcomes(pytester: pytest.Pytester, body: str, *arguments: str) -> pytest.RunResult:
    pytester.makepyfile(test_models=MODEL + body)
    return pytester.runpytest("-v", *QUICK, *arguments)


def test_one_test_per_property(pytester: pytest.Pytester) -> None:
    result = outcomes(
        pytester,
        """
@pytest.mark.plait(workers=1)
def test_counter() -> System:
    return System([Counter()], properties=[positive, small, three, nine])
""",
    )
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(
        [
            "*test_counter?positive? PASSED*",
            "*test_counter?small? FAILED*",
            "*test_counter?three? PASSED*",
            "*test_counter?nine? FAILED*",
        ]
    )


def test_a_failure_is_the_counterexample_and_its_replay(pytester: pytest.Pytester) -> None:
    result = outcomes(
        pytester,
        """
@pytest.mark.plait
def test_counter() -> System:
    return System([Counter()], properties=[small])
""",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "property small is violated",
            "Counterexample to small: 2 steps",
            "*Counter0*tick*",
            "*number: 0 → 1*",
            "*number: 1 → 2*",
            "replay: plait replay .plait/test_models-test_counter-small.itf.json",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*_plait_pytest.py*")
    replayed = subprocess.run(
        [sys.executable, "-m", "plait.cli.main", "replay", ".plait/test_models-test_counter-small.itf.json"],
        capture_output=True,
        text=True,
        check=False,
        cwd=pytester.path,
    )
    assert replayed.returncode == 0, replayed.stderr
    assert "reproduced: property small is violated after 2 steps" in replayed.stdout


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_the_summary_in_ci_has_one_line_for_each_failure(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    """In CI, pytest does not cut the text of a failure that it repeats in the summary."""
    monkeypatch.setenv("CI", "true")
    model = "test_small = System([Counter()], properties=[small])\n"
    result = outcomes(pytester, model, *workers)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["replay: plait replay *"])
    summary = result.outlines[next(i for i, line in enumerate(result.outlines) if "short test summary" in line) :]
    assert len(summary) == 3, summary
    assert summary[1].endswith("test_small[small] - property small is violated")


def test_what_is_never_reached_has_no_trace_but_a_reason(pytester: pytest.Pytester) -> None:
    result = outcomes(pytester, "\ntest_counter = System([Counter()], properties=[nine])\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["property nine is violated", "*all 4 reachable states*"])
    result.stdout.no_fnmatch_line("replay:*")


def test_inconclusive_fails_and_says_the_bound(pytester: pytest.Pytester) -> None:
    result = outcomes(
        pytester,
        """
@pytest.mark.plait(max_states=2)
def test_counter() -> System:
    return System([Counter(limit=100)], properties=[positive])
""",
    )
    result.assert_outcomes(failed=1)
    said = "the search is not complete (stopped: max-states limit reached)"
    result.stdout.fnmatch_lines(["property positive is inconclusive", said])


def test_the_model_is_checked_once(pytester: pytest.Pytester) -> None:
    result = outcomes(
        pytester,
        """
import importlib
import plait
from plait.check.options import Options

api = importlib.import_module("plait.check.api")
calls = []
real = api.check

def counting(system, options):
    calls.append(options)
    return real(system, options)

api.check = counting

@pytest.mark.plait(search="dfs", workers=1)
def test_counter() -> System:
    return System([Counter()], properties=[positive, three])

def test_calls():
    assert calls == [Options(keep_going=True, search="dfs", workers=1)]
    api.check = real
""",
    )
    result.assert_outcomes(passed=3)


def test_module_level_systems(pytester: pytest.Pytester) -> None:
    result = outcomes(
        pytester,
        """
test_counter = System([Counter()], properties=[positive])
other = System([Counter()], properties=[small])
""",
    )
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*test_counter?positive? PASSED*"])


def test_a_marked_module(pytester: pytest.Pytester) -> None:
    result = outcomes(
        pytester,
        """
pytestmark = pytest.mark.plait(workers=1)
counter = System([Counter()], properties=[positive])
_hidden = System([Counter()], properties=[small])

def test_model() -> System:
    return System([Counter()], properties=[three])

def test_ordinary():
    assert True
""",
    )
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["*counter?positive? PASSED*", "*test_model?three? PASSED*", "*test_ordinary PASSED*"])


def test_parametrized_models(pytester: pytest.Pytester) -> None:
    result = outcomes(
        pytester,
        """
@pytest.mark.plait
@pytest.mark.parametrize("limit", [1, 2])
def test_counter(limit: int) -> System:
    return System([Counter(limit=limit)], properties=[small])
""",
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*test_counter?1-small? PASSED*",
            "*test_counter?2-small? FAILED*",
            "replay: plait replay .plait/test_models-test_counter-2-small.itf.json",
        ]
    )
    saved = pytester.path / ".plait" / "test_models-test_counter-2-small.itf.json"
    replayed = pytester.run(sys.executable, "-m", "plait.cli.main", "replay", "--quiet", str(saved))
    assert replayed.ret == 0


def test_marks_selection_and_skips_work_as_ever(pytester: pytest.Pytester) -> None:
    body = """
@pytest.mark.plait
@pytest.mark.xfail(strict=True, reason="known")
def test_broken() -> System:
    return System([Counter()], properties=[small])

@pytest.mark.plait
@pytest.mark.skip(reason="not now")
def test_later() -> System:
    return System([Counter()], properties=[small])

@pytest.mark.plait(properties=["positive"])
def test_chosen() -> System:
    return System([Counter()], properties=[small, positive])
"""
    outcomes(pytester, body).assert_outcomes(xfailed=1, skipped=1, passed=1)
    pytester.runpytest("test_models.py::test_chosen[positive]", *QUICK).assert_outcomes(passed=1)
    pytester.runpytest("test_models.py::test_chosen", *QUICK).assert_outcomes(passed=1)
    pytester.runpytest("-k", "positive", *QUICK).assert_outcomes(passed=1, deselected=2)
    pytester.runpytest("-m", "not plait", *QUICK).assert_outcomes(deselected=3)


def test_junit_xml(pytester: pytest.Pytester) -> None:
    outcomes(
        pytester,
        """
@pytest.mark.plait
def test_counter() -> System:
    return System([Counter()], properties=[positive, small])
""",
        "--junitxml=report.xml",
    )
    suite = ElementTree.parse(pytester.path / "report.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    assert set(cases) == {"test_counter[positive]", "test_counter[small]"}
    assert cases["test_counter[small]"].get("classname") == "test_models"
    failure = cases["test_counter[small]"].find("failure")
    assert failure is not None
    assert "replay: plait replay" in (failure.text or "")


def test_warnings_of_the_model_are_pytest_warnings(pytester: pytest.Pytester) -> None:
    result = outcomes(
        pytester,
        """
from plait import Message, on

class Ping(Message):
    pass

class Deaf(Counter):
    @on(Ping)
    def ping(self, m):
        pass

@pytest.mark.plait
def test_deaf() -> System:
    return System([Deaf()], properties=[positive, three])
""",
        "-W",
        "default",  # else the filters of this run apply to the inner one
    )
    result.assert_outcomes(passed=2, warnings=1)
    result.stdout.fnmatch_lines(["*PlaitWarning: test_deaf: Deaf.ping never ran*Ping*"])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("def test_it():\n    return None", "*returned None, not a System*"),
        ("def test_it():\n    return 1 // 0", "*raised ZeroDivisionError*"),
        ("def test_it() -> System:\n    return System([])", "*at least one process*"),
        (
            "def test_it(tmp_path) -> System:\n    return System([Counter()])",
            "*has the parameter 'tmp_path', but models cannot use fixtures*",
        ),
        (
            "class TestIt:\n    @pytest.mark.plait\n    def test_it(self):\n        return System([Counter()])",
            "*is a method*",
        ),
    ],
    ids=["nothing", "raises", "no process", "fixture", "method"],
)
def test_a_model_that_cannot_be_built_fails_alone(pytester: pytest.Pytester, body: str, expected: str) -> None:
    mark = "" if body.startswith("class") else "@pytest.mark.plait\n"
    result = outcomes(pytester, f"\n{mark}{body}\n\ndef test_other():\n    assert True\n")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["error: " + expected, "hint: *"])
    result.stdout.no_fnmatch_line("*Traceback*")


@pytest.mark.parametrize(
    ("mark", "expected"),
    [
        ("plait(serach='dfs')", "*no option serach*"),
        ("plait('dfs')", "*no option 'dfs'*"),
        ("plait(properties=['no'])", "*no property 'no'*"),
        ("plait(search='best')", "*best*"),
    ],
)
def test_a_wrong_mark(pytester: pytest.Pytester, mark: str, expected: str) -> None:
    body = f"\n@pytest.mark.{mark}\ndef test_it() -> System:\n    return System([Counter()], properties=[positive])\n"
    result = outcomes(pytester, body)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["error: " + expected, "hint: *"])


def test_a_model_error_while_searching_names_the_handler(pytester: pytest.Pytester) -> None:
    result = outcomes(
        pytester,
        """
class Raising(Counter):
    def tick(self):
        raise KeyError("oops")

@pytest.mark.plait
def test_it() -> System:
    return System([Raising()], properties=[positive, three])
""",
    )
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*Raising*tick*"])
    result.stdout.no_fnmatch_line("*_plait_pytest.py*")


def test_an_assertion_in_a_handler_fails_every_property(pytester: pytest.Pytester) -> None:
    result = outcomes(
        pytester,
        """
class Careful(Counter):
    def tick(self):
        self.number += 1
        assert self.number < 2, "too many"

@pytest.mark.plait
def test_it() -> System:
    return System([Careful()], properties=[positive])
""",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*too many*"])


def test_an_exception_fails_every_property_with_the_run(pytester: pytest.Pytester) -> None:
    result = outcomes(
        pytester,
        """
class Fragile(Process):
    number: int = 0

    @action(when=lambda self: self.number < 3)
    def tick(self):
        self.number += 1
        {1: 0}[self.number]

@pytest.mark.plait
def test_it() -> System:
    return System([Fragile()], properties=[always(lambda s: True)])
""",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "property no_exceptions is violated",
            "Counterexample to no_exceptions: 2 steps",
            "*Fragile.tick raised KeyError: 2*",
            "*{1: 0}[[]self.number]",
            "replay: plait replay .plait/*no_exceptions.itf.json",
        ]
    )


def test_what_checks_nothing_fails(pytester: pytest.Pytester) -> None:
    result = outcomes(
        pytester,
        """
@pytest.mark.plait
def test_no_property() -> System:
    return System([Counter()])

@pytest.mark.plait
def test_no_step() -> System:
    return System([Counter(limit=0)], properties=[positive])

@pytest.mark.plait(explore=True)
def test_explored() -> System:
    return System([Counter(limit=0)])
""",
        "-Wdefault",
    )
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["nothing was checked: no property was given", "no process can ever take a step"])
    result.stdout.no_fnmatch_line("*raise the limit*")


def test_a_long_counterexample_is_abridged(pytester: pytest.Pytester) -> None:
    body = """
@pytest.mark.plait
def test_it() -> System:
    return System([Counter(limit=90)], properties=[always(lambda s: s[Counter][0].number < 90, name="low")])
"""
    result = outcomes(pytester, body)
    result.stdout.fnmatch_lines(
        ["*steps 4 to 78 are not shown*", "property low is violated (90 steps)", "replay: plait replay .plait/*"],
    )
    result.stdout.no_fnmatch_line("*40. Counter0*")
    outcomes(pytester, body, "-v").stdout.fnmatch_lines(["*40. Counter0*"])


def test_the_plugin_does_not_import_plait_until_it_is_used(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import sys\n\ndef test_it():\n    assert 'plait' not in sys.modules\n")
    result = pytester.runpytest_subprocess(*QUICK)
    result.assert_outcomes(passed=1)


def test_the_mark_is_documented(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_subprocess("--markers")
    result.stdout.fnmatch_lines(["@pytest.mark.plait(search=*"])


OPTIONS = """
@pytest.mark.plait(workers=1, coverage=True)
def test_counter() -> System:
    return System([Counter(limit=1)], properties=[positive, small])
"""


def test_coverage_and_reports_are_written_on_request(pytester: pytest.Pytester) -> None:
    result = outcomes(pytester, OPTIONS, "--plait-html=reports", "--plait-workers=2", "--plait-timeout=5m")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*coverage of a model*", "test_counter", "*handlers*"])
    (report,) = pytester.path.joinpath("reports").iterdir()
    page = report.read_text(encoding="utf-8")
    assert report.name == "test_models-test_counter.html"
    assert "<dt>workers</dt><dd>2</dd>" in page


@pytest.mark.parametrize("option", ["--plait-workers=none", "--plait-timeout=soon"])
def test_wrong_options_are_named(pytester: pytest.Pytester, option: str) -> None:
    result = outcomes(pytester, OPTIONS, option)
    assert result.ret != 0
    result.stdout.fnmatch_lines([f"*error: *{option.replace('=', ' ')}*", "hint: expected *"])


def test_a_timeout_of_the_command_line_ends_a_search(pytester: pytest.Pytester) -> None:
    result = outcomes(pytester, OPTIONS.replace("limit=1", "limit=10**9").replace(", small", ""), "--plait-timeout=0.2")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*positive is inconclusive*"])

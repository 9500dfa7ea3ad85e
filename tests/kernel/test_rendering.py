"""Values of the kernel show themselves, although the kernel imports no report."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from plait import UsageError, check
from plait.kernel.rendering import renderer
from plait.protocols.ping_pong import ping_pong
from plait.report.html import report
from plait.report.itf import load_trace
from plait.report.notebook import verdict_fragment
from plait.report.text import trace_text, verdict_text


def test_a_verdict_and_its_trace_show_themselves() -> None:
    verdict = check(ping_pong(network="duplicating", faulty="ponger"))
    assert str(verdict) == verdict_text(verdict)
    assert verdict._repr_html_() == verdict_fragment(verdict)
    assert verdict.trace is not None
    assert str(verdict.trace) == trace_text(verdict.trace)


def test_repr_is_one_line() -> None:
    verdict = check(ping_pong(network="duplicating", faulty="ponger"))
    assert verdict.trace is not None
    steps = len(verdict.trace)
    assert repr(verdict).startswith("<Verdict VIOLATED ")
    assert f"counterexample of {steps} steps" in repr(verdict)
    assert repr(verdict.trace).endswith(f": {steps} steps>")
    assert repr(check(ping_pong())).startswith("<Verdict HOLDS in ")
    strange = msgspec.structs.replace(verdict.trace, property="a\nb", target="c\rd")
    assert len(repr(strange).splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "begins"),
    [("run.svg", "<svg"), ("run.html", "<!DOCTYPE html>"), ("run.txt", "Trace for "), ("RUN.SVG", "<svg")],
)
def test_a_trace_is_saved_in_the_format_of_its_suffix(tmp_path: Path, name: str, begins: str) -> None:
    trace = check(ping_pong(network="duplicating", faulty="ponger")).trace
    assert trace is not None
    trace.save(tmp_path / name)
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(begins)


@pytest.mark.parametrize("name", ["run.itf.json", "run.json"])
def test_a_saved_trace_is_loaded_again(tmp_path: Path, name: str) -> None:
    trace = check(ping_pong(network="duplicating", faulty="ponger")).trace
    assert trace is not None
    trace.save(str(tmp_path / name))
    assert load_trace(tmp_path / name) == trace


def test_a_verdict_is_saved_in_the_format_of_its_suffix(tmp_path: Path) -> None:
    verdict = check(ping_pong(network="duplicating", faulty="ponger"))
    for name in ("report.html", "verdict.json", "verdict.txt"):
        verdict.save(tmp_path / name)
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == report(verdict)
    assert json.loads((tmp_path / "verdict.json").read_bytes()) == json.loads(msgspec.json.encode(verdict.to_json()))
    assert (tmp_path / "verdict.txt").read_text(encoding="utf-8").startswith("VIOLATED")


def test_other_suffixes_are_refused(tmp_path: Path) -> None:
    verdict = check(ping_pong(network="duplicating", faulty="ponger"))
    assert verdict.trace is not None
    with pytest.raises(UsageError, match=r"has the suffix \.pdf: expected one of \.html, \.json, \.txt"):
        verdict.save(tmp_path / "report.pdf")
    with pytest.raises(UsageError, match=r"no suffix: expected one of \.itf\.json, \.json, \.svg, \.html, \.txt"):
        verdict.trace.save(tmp_path / "run")
    for name in ("run.svg", "run.itf.json"):
        with pytest.raises(UsageError, match="a trace is saved like this, not a verdict") as error:
            verdict.save(tmp_path / name)
        assert error.value.hint is not None
        assert "verdict.trace.save" in error.value.hint
    with pytest.raises(UsageError, match="cannot be written"):
        verdict.save(tmp_path / "nowhere" / "report.html")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_report_is_loaded_when_it_is_first_needed() -> None:
    code = """
import sys
from plait.kernel.trace import Snapshot, Trace
assert not [name for name in sys.modules if name.startswith("plait.report")]
str(Trace("paxos", {}, None, [], [], Snapshot({}), []))
assert "plait.report.text" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_other_values_have_no_form() -> None:
    with pytest.raises(TypeError, match="int has no text form"):
        renderer().text(3)
    with pytest.raises(TypeError, match="int has no HTML form"):
        renderer().html(3)
    with pytest.raises(TypeError, match="int cannot be saved"):
        renderer().save(3, "three.txt")

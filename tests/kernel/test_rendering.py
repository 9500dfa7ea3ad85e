"""Values of the kernel show themselves, although the kernel imports no report."""

from __future__ import annotations

import subprocess
import sys

import pytest

from plait import check
from plait.kernel.rendering import renderer
from plait.protocols.ping_pong import ping_pong
from plait.report.html import verdict_fragment
from plait.report.text import trace_text, verdict_text


def test_a_verdict_and_its_trace_show_themselves() -> None:
    verdict = check(ping_pong(network="duplicating", faulty="ponger"))
    assert str(verdict) == verdict_text(verdict)
    assert verdict._repr_html_() == verdict_fragment(verdict)
    assert verdict.trace is not None
    assert str(verdict.trace) == trace_text(verdict.trace)


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

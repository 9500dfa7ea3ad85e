"""The HTML report without a browser: self-contained, complete without its script, and safe whatever a model says."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from plait.kernel.trace import Clause, Read, Trace, Why
from plait.kernel.verdict import PropertyResult
from plait.report.html import report, trace_page
from plait.report.markup import asset
from plait.report.notebook import trace_fragment, verdict_fragment
from plait.report.viewer import GONE
from tests.report import samples

VOID = {"meta", "link", "input", "br", "img"}
PICTURE = "data:image/svg+xml;base64,"


class Page(HTMLParser):
    """Checks the nesting while parsing, and collects elements, texts and the embedded data."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.data: list[Any] = []
        self.feed(html)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script" and self.elements[-1][1].get("type") == "application/json":
            self.data.append(json.loads(data))
        elif self.open and self.open[-1] not in ("script", "style"):
            self.text += data


def everything(name: str) -> list[str]:
    trace = samples.SAMPLES[name]()
    verdict = samples.verdict(trace)
    return [report(verdict), trace_page(trace), trace_fragment(trace), verdict_fragment(verdict)]


@pytest.mark.slow
@pytest.mark.parametrize("name", samples.SAMPLES)
def test_nothing_is_loaded_from_elsewhere(name: str) -> None:
    for html in everything(name):
        page = Page(html)
        for tag, attributes in page.elements:
            assert attributes.get("src", PICTURE).startswith(PICTURE), tag  # type: ignore[union-attr]
            assert attributes.get("href", "data:,") == "data:,", tag
            assert not [a for a in attributes if a.startswith("on")], "no inline handlers"
        html = re.sub(rf'src="{re.escape(PICTURE)}[^"]*"', "", html)
        # The script of the viewer has names of namespaces. That it asks no host, tests in a browser see.
        html = html.replace(asset("viewer.js"), "")
        if name != "hostile":
            assert not re.search(r"https?:|//\w+\.|@import|url\(|\bsrc\s*=", html)


def test_hostile_strings_stay_text() -> None:
    harmless = {tag for html in everything("paxos") for tag, _ in Page(html).elements}
    for html in everything("hostile"):
        page = Page(html)
        assert {tag for tag, _ in page.elements} <= harmless
        assert all(a["src"].startswith(PICTURE) for tag, a in page.elements if tag == "img")  # type: ignore[union-attr]
        assert samples.HOSTILE not in html
        assert samples.HOSTILE in page.text
        assert "\x00" not in html
        assert "\x1b" not in html


def test_embedded_data_cannot_end_its_element() -> None:
    html = report(samples.verdict(samples.hostile()))
    (embedded,) = re.findall(r'<script type="application/json" class="data">(.*?)</script>', html, re.S)
    assert not set(embedded) & set("<>&")
    assert [lane["name"] for lane in json.loads(embedded)["trace"]["lanes"]] == [samples.HOSTILE]


def test_hostile_verdict() -> None:
    evil = samples.HOSTILE
    html = report(samples.verdict(status="inconclusive", bound=evil, model=evil, warnings=[evil], message=evil))
    assert evil not in html
    assert "img" not in {tag for tag, _ in Page(html).elements}


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(samples.traces())
def test_any_trace_makes_a_well_formed_page(trace: Trace) -> None:
    Page(report(samples.verdict(trace)))
    Page(trace_fragment(trace))


def test_every_step_is_written_out() -> None:
    trace = samples.paxos()
    page = Page(report(samples.verdict(trace)))
    steps = [a["data-step"] for tag, a in page.elements if tag == "li" and "data-step" in a]
    assert steps == [str(i) for i in range(len(trace.events) + 1)]
    for said in (
        "→ Acceptor0, Acceptor1, Acceptor2: Read(ballot=1)",
        "#4 Promise(ballot=1, accepted=None) from Acceptor0",
        "promised: 0 → 1",
        "promised, accepted",
        "Learned(value='a')",
        "agreement is violated: Learner0.learned = {'a', 'b'}",
    ):
        assert said in page.text


@settings(max_examples=40, deadline=None)
@given(samples.traces())
def test_embedded_data_holds_every_state(trace: Trace) -> None:
    """Each state is embedded as its changes. Together, they give all states again."""
    (data,) = Page(report(samples.verdict(trace))).data
    embedded = data["trace"]
    state = embedded["initial"]
    assert len(embedded["events"]) == len(trace.events)
    for event, real in zip(embedded["events"], trace.events, strict=True):
        for part, changes in event["state"].items():
            state[part] = {k: v for k, v in {**state[part], **changes}.items() if v != GONE}
        assert state == msgspec.to_builtins(real.state)


def test_the_page_may_ask_no_host() -> None:
    page = Page(report(samples.verdict(samples.paxos())))
    (policy,) = [a["content"] for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    assert not re.search(r"\*|https?:|connect-src", policy)


def test_without_a_trace() -> None:
    html = report(samples.verdict(warnings=["a field is never read"]))
    page = Page(html)
    assert "<script" not in html
    for said in ("HOLDS", "All 12,345 reachable states were searched", "agreement", "a field is never read", "49,380"):
        assert said in page.text


def test_each_trace_has_one_viewer() -> None:
    first, second = samples.paxos(), samples.lasso()
    verdict = samples.verdict(first)
    example = type(verdict.properties[0])("progress", "reachable", "holds", None, second)
    html = report(samples.verdict(first, properties=[*verdict.properties, example]))
    assert html.count('<section class="viewer"') == 2
    assert "Counterexample to agreement" in html
    assert "Example for progress" in html


def test_the_report_opens_at_the_violation_with_its_reason() -> None:
    trace = samples.paxos()
    why = Why([Clause("len(learned) <= 1", "False")], [Read("Learner0", "learned", {"#set": ["a", "b"]}, 16)], [16])
    page = Page(report(samples.verdict(msgspec.structs.replace(trace, why=why))))
    assert [a["data-current"] for tag, a in page.elements if tag == "section"] == [str(len(trace.events))]
    (unfolded,) = [a for tag, a in page.elements if tag == "details" and a.get("class") == "why"]
    assert "open" in unfolded


def test_only_a_violation_is_red() -> None:
    example = samples.lasso()
    found = PropertyResult("progress", "reachable", "holds", None, example)
    for html in (
        report(samples.verdict(status="holds", properties=[found], trace=example, message="done")),
        verdict_fragment(samples.verdict(status="holds", properties=[found], trace=example, message="done")),
    ):
        body = html[html.index("</style>") :] if "</style>" in html else html
        body = body.replace(asset("viewer.js"), "")
        assert "violated" not in body
        assert "#a8201a" not in body
    assert 'class="explanation violated"' in report(samples.verdict(samples.paxos()))

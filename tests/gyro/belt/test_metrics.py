"""Metrics are valid for Prometheus and true; the dashboard uses only metrics that exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from plait.gyro.belt.http import ask
from plait.gyro.belt.metrics import BOUNDS, Histogram, Metrics
from tests.gyro.belt.processes import Processes, processes

DASHBOARD = Path(__file__).parents[3] / "deploy" / "gyro" / "grafana.json"
GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "gyro-operating.md"
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def parsed(text: str) -> tuple[dict[str, Metric], Samples]:
    families = {family.name: family for family in text_string_to_metric_families(text)}
    samples = {(s.name, tuple(sorted(s.labels.items()))): s.value for f in families.values() for s in f.samples}
    return families, samples


@pytest.fixture(scope="module")
def servers() -> Iterator[Processes]:
    with processes(2) as found:
        yield found


def scraped(servers: Processes, server: int = 0) -> tuple[dict[str, Metric], Samples]:
    status, body = ask(servers.settings.urls[server], "/metrics")
    assert status == 200
    return parsed(body.decode())


@given(st.lists(st.floats(0, 100), max_size=50))
def test_a_histogram_counts_what_is_below_each_bound(durations: list[float]) -> None:
    histogram = Histogram()
    for each in durations:
        histogram.observe(each)
    _, samples = parsed("# TYPE x histogram\n" + "\n".join(histogram.samples("x", 'a="b"')) + "\n")
    for bound in BOUNDS:
        assert samples["x_bucket", (("a", "b"), ("le", str(bound)))] == sum(each <= bound for each in durations)
    assert samples["x_bucket", (("a", "b"), ("le", "+Inf"))] == samples["x_count", (("a", "b"),)] == len(durations)
    assert samples["x_sum", (("a", "b"),)] == pytest.approx(sum(durations))


def test_the_append_is_the_time_between_two_steps() -> None:
    metrics, steps = Metrics(), []
    step = metrics.timed(steps.append)
    for at in ("captured", "prepared", "appended", "committed", "captured", "appended"):
        step(at)
    assert steps == ["captured", "prepared", "appended", "committed", "captured", "appended"]
    _, samples = parsed(metrics.text(3, {}))
    mine = (("server", "3"),)
    assert (samples["plait_gyro_log_append_seconds_count", mine], samples["plait_gyro_commit_seconds_count", mine]) == (
        2,
        1,
    )


@pytest.mark.slow
def test_metrics_of_a_server(servers: Processes) -> None:
    """The numbers are those of the requests that were sent."""
    _, before = scraped(servers)
    for number in range(3):
        servers.client.call("notes", owner=0)
        servers.client.call("note", owner=0, value=number)
    for number in range(2):
        servers.client.send("move", {"source": 0, "target": 0, "value": number}, at=0)
    servers.settle()
    families, after = scraped(servers)
    for family in families.values():
        assert family.documentation.endswith("."), family.name
        assert family.samples, family.name
        assert all(sample.labels["server"] == "0" for sample in family.samples)

    def more(name: str, **labels: str) -> float:
        key = (name, tuple(sorted({"server": "0", **labels}.items())))
        return after[key] - before[key]

    for kind, count in (("read", 3), ("local", 3), ("global", 2)):
        assert more("plait_gyro_operations_total", **{"class": kind}) == count
        assert more("plait_gyro_request_seconds_count", **{"class": kind}) == count
        assert more("plait_gyro_request_seconds_bucket", le="+Inf", **{"class": kind}) == count
        assert more("plait_gyro_request_seconds_sum", **{"class": kind}) > 0
    assert more("plait_gyro_queue_seconds_count") == 2
    assert 1 <= more("plait_gyro_log_append_seconds_count") <= 2, "operations of one visit are appended together"
    assert more("plait_gyro_visits_total") > 0
    assert after["plait_gyro_ready", (("server", "0"),)] == 1


@pytest.mark.slow
def test_every_expression_of_the_dashboard_uses_metrics_that_exist(servers: Processes) -> None:
    _, samples = scraped(servers)
    labels: dict[str, set[str]] = {}
    for name, given_ in samples:
        labels.setdefault(name, set()).update(label for label, _ in given_)
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    expressions += [each["query"] for each in dashboard["templating"]["list"] if each["type"] == "query"]
    assert len(expressions) > 15
    used: set[str] = set()
    for expression in expressions:
        names = set(re.findall(r"\bplait_gyro_\w+", expression))
        assert names, expression
        assert names <= labels.keys(), expression
        wanted = {label for group in re.findall(r"by \(([^)]*)\)", expression) for label in group.split(", ")}
        wanted |= set(re.findall(r"[{,](\w+)=~?\"", expression))
        assert all(wanted <= labels[name] for name in names), expression
        used |= {re.sub(r"_(bucket|sum|count)$", "", name) for name in names}
    histograms = {name.removesuffix("_bucket") for name in labels if name.endswith("_bucket")}
    assert histograms <= used, "each histogram has a panel"
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


@pytest.mark.slow
def test_the_guide_lists_every_metric(servers: Processes) -> None:
    families, _ = scraped(servers)
    text = GUIDE.read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `plait_gyro_(\w+)`", text, re.MULTILINE))
    assert listed == {
        family.name.removeprefix("plait_gyro_") + ("_total" if family.type == "counter" else "")
        for family in families.values()
    }

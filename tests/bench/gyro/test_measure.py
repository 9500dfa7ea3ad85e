"""The measurements' parts: workloads that the applications accept, distances, and how results are shown."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

from plait.bench.gyro.deployment import SITES, Sample, ring, routed, trip
from plait.bench.gyro.table import COLUMNS, Run, add
from plait.bench.gyro.workloads import Session, Workload
from plait.bench.report.markdown import table_markdown
from plait.bench.report.svg import table_svg
from plait.bench.report.text import table_text
from plait.bench.table import Plot, Table
from plait.cli.main import main
from plait.gyro.analysis import analyze
from plait.gyro.belt.application import Application, load
from plait.gyro.belt.databases.sqlite.database import SqliteDatabase
from plait.gyro.belt.routing import routes
from tests.bench.gyro.studies import WORKLOADS


@pytest.mark.slow
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.name)
def test_the_applications_accept_what_clients_do(workload: Workload, tmp_path: Path) -> None:
    module = load(workload.application)
    known = routes(analyze(workload.application))
    application = Application(module, known)
    database = SqliteDatabase(tmp_path / "x.db", server=1, servers=3, schema=module.SCHEMA + workload.data)
    called: dict[str, int] = {}

    def send(operation: str, parameters: dict[str, Any]) -> Any:
        called[operation] = called.get(operation, 0) + 1
        call = application.call(f"r{sum(called.values())}", operation, parameters)
        run = database.read if known[operation].read_only else database.write
        return msgspec.json.decode(run(call).reply)

    session = Session(1, 3, random.Random(3))
    for _ in range(600):
        workload.page(session, send)
    database.close()
    assert len(called) >= len(known) - 5
    writes = sum(n for name, n in called.items() if not known[name].read_only) / sum(called.values())
    assert 0.05 < writes < 0.3


def test_the_distances_are_those_of_the_thesis() -> None:
    assert trip(SITES.index("Germany"), SITES.index("Japan")) == 0.253
    assert trip(SITES.index("Australia"), SITES.index("Brazil")) == trip(3, 4) == 0.322
    assert trip(2, 2) == 0
    around = [SITES[s] for s in ring(5)]
    assert around == ["Germany", "United States", "Japan", "Australia", "Brazil"]
    assert [sorted(ring(n)) for n in range(1, 6)] == [list(range(n)) for n in range(1, 6)]


@pytest.mark.slow
def test_the_baselines() -> None:
    known = routes(analyze(WORKLOADS[0].application))
    assert {r.classed for r in routed(known, "central").values()} == {"local"}
    replicated = routed(known, "read-only")
    assert all(r.classed == ("local" if r.read_only else "global") and not r.keys for r in replicated.values())
    assert sum(r.read_only for r in replicated.values()) == 13
    assert routed(known, "gyro") == known


def test_results_are_shown() -> None:
    table = Table(
        "gyro", "Title <1>", COLUMNS, "configuration", summary=["a line"], plot=Plot("mean", "ms", "throughput")
    )
    far = [Sample(0.17, 0.001, False)] * 4
    near = [Sample(0.0025, 0.0008, False)] * 24 + [Sample(0.2525, 0.25, True)]
    add(table, "TPC-W", "central", 1, 1, Run(far, 30.0), 170.0)
    add(table, "TPC-W", "gyro", 5, 1, Run(near, 300.0), 170.0)
    text = table_text(table, width=120, color=False)
    assert "14 x       48 x" in text  # 170 ms against 12.5 ms; published: 1,390 ms against 29 ms
    assert "a line" in text
    assert (
        "| TPC-W | gyro, 5 | 5 | 5 | 300/s | 12.5 ms | 2.50 ms | 0.80 ms | 2.50 ms | 252.5 ms | 4.0% |"
        in table_markdown(table)
    )
    drawing = ElementTree.fromstring(table_svg(table))
    bars = [float(r.attrib["width"]) for r in drawing.iter() if r.attrib.get("class") == "bar"]
    assert bars[0] > bars[1] > 0
    assert any(e.text == "12.5 ms, 300/s" for e in drawing.iter())


def test_the_benchmark_needs_its_examples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "gyro", "--examples", str(tmp_path)]) == 2
    assert "tpcw.py does not exist" in capsys.readouterr().err

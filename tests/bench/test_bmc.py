"""`plait bench bmc`: the settings of Saissi 2019, chapter 4, with each encoding."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from plait.bench.papers import bmc as tables
from plait.bench.papers import projections
from plait.cli.main import main


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return code, captured.out, captured.err


@pytest.mark.slow
def test_bench(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: dict[str, Any] = {n: tables.SETTINGS[n] for n in ("Indexer 2, depth 10", "DPhil 5, depth 10")}
    monkeypatch.setattr(tables, "SETTINGS", chosen)
    monkeypatch.setattr(tables, "_SEEDS", 3)
    monkeypatch.setattr(tables, "WAYS", {w: tables.WAYS[w] for w in (tables.BMC, tables.PBMC, tables.EXPLICIT)})
    monkeypatch.setattr(projections, "SHAPES", [projections.Shape(projections.separate, "other threads", 1, 1)])
    plot = tmp_path / "bmc.svg"
    code, out, _ = run(capsys, "bench", "bmc", "--json", "-q", "--plot", str(plot))
    rows = json.loads(out)["tables"][0]["rows"]
    assert code == 0
    assert len(rows) == 2 * len(tables.WAYS) + len(projections.WAYS)
    shapes = [r["cells"]["found"]["value"] for r in rows[2 * len(tables.WAYS) :]]
    assert shapes == ["unsat"] * len(projections.WAYS)
    rows = rows[: 2 * len(tables.WAYS)]
    assert {(r["setting"][:5], r["cells"]["found"]["value"]) for r in rows} == {("Index", "unsat"), ("DPhil", "sat")}
    assert rows[0]["cells"]["solving"]["published"] == 19.531
    assert ET.fromstring(plot.read_text(encoding="utf-8")).tag.endswith("svg")
    code, out, _ = run(capsys, "bench", "bmc", "-q", "--markdown")
    assert "| Indexer 2, depth 10 | steps (BMC) |" in out
    code, out, _ = run(capsys, "bench", "bmc", "-q")
    assert "The best encoding decides every setting" in out

"""`plait rounds format`: one layout for all texts that differ in spaces only, and the same meaning."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from plait import ModelError
from plait.cli.main import main
from plait.rounds.distal.layout import formatted
from plait.rounds.distal.translation import translate
from tests.rounds.distal_texts import AUCTION, FIELD, FIGURE_1, NESTED, PROTOCOLS, SHIPPED, TIES

WILD = """\
// Asks.

type   Ask=struct{phase int ballot;}
type Answer = struct { phase int ballot;[ text ] log;{pid} from ; int ? best; }
parameter [int]  xs=[ 1,2 ]


init:
     ballot=0;log=ε
     if primary( ballot+1 )then
         // the first
         send Ask(-1+ballot) to ALL   // everyone
     else
         skip
while true do
   upon Ask with m.ballot>ballot∧¬seen times n / 2 do
        seen = xs[ 0 ]≥1 and not (2 in xs) ► Ask
        best = max(a.ballot for a in mbox with a.ballot>-1)
        send Answer(ballot,log,{self},none) to m.sender
always fine : forall p,q : p.ballot<=q.ballot
  // the end
"""
TIDY = """\
// Asks.

type Ask    = struct { phase int ballot; }
type Answer = struct { phase int ballot; [text] log; {pid} from; int? best; }
parameter [int] xs = [1, 2];

init:
  ballot = 0; log = ε;
  if primary(ballot + 1) then
    // the first
    send Ask(-1 + ballot) to ALL;           // everyone
  else
    skip;
while true do
  upon Ask with m.ballot > ballot ∧ ¬seen times n/2 do
    seen = xs[0] ≥ 1 and not (2 in xs);     ► Ask
    best = max(a.ballot for a in mbox with a.ballot > -1);
    send Answer(ballot, log, {self}, none) to m.sender;
always fine: forall p, q: p.ballot <= q.ballot;
// the end
"""


def test_a_wild_text() -> None:
    found = formatted(WILD, "wild.distal")
    assert [re.sub(r"  +(//|►)", r" \1", line) for line in found.splitlines()] == [
        re.sub(r"  +(//|►)", r" \1", line) for line in TIDY.splitlines()
    ]
    columns = {line.index(mark) for line in found.splitlines() for mark in ("// everyone", "► Ask") if mark in line}
    assert len(columns) == 1
    assert formatted(found, "wild.distal") == found


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_texts_have_the_layout(name: str) -> None:
    text = (PROTOCOLS / f"{name}.distal").read_text(encoding="utf-8")
    assert formatted(text, name) == text
    assert max(map(len, text.splitlines())) <= 130


def code(text: str) -> str:
    """What a text means: the translation without the documentation and the marks of lines."""
    return re.sub(r'(?s)""".*?"""|\n', "", translate(text, "a.distal", "a")[0])


@pytest.mark.parametrize(
    "text", [FIGURE_1, AUCTION, TIES, NESTED, FIELD], ids=["1", "auction", "ties", "nested", "field"]
)
def test_the_meaning_stays_and_spaces_do_not_matter(text: str) -> None:
    once = formatted(text, "a.distal")
    assert formatted(once, "a.distal") == once
    assert code(once) == code(text)
    draw = random.Random(1)
    for _ in range(5):
        wild = re.sub(
            r"(//.*|►.*)|(?<=[^\s\w\"]) | (?=[^\s\w\"])", lambda m: m[1] or draw.choice(["", " ", "   "]), once
        )
        wild = "\n".join(
            line[: len(line) - len(line.lstrip())] + re.sub("^ *", "", line) + draw.choice(["", " "])
            for line in _same_indentation(once, wild)
        )
        assert formatted(wild, "a.distal") == once


def _same_indentation(text: str, wild: str) -> list[str]:
    """The lines of a text whose spaces were changed, with the indentation that they had, three times as wide."""
    return [
        " " * 3 * (len(line) - len(line.lstrip())) + other.lstrip()
        for line, other in zip(text.splitlines(), wild.splitlines(), strict=True)
    ]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, other = tmp_path / "wild.distal", tmp_path / "tidy.distal"
    file.write_text(WILD, encoding="utf-8")
    assert main(["rounds", "format", str(file), "--check"]) == 1
    assert file.read_text(encoding="utf-8") == WILD
    assert main(["rounds", "format", str(file), "-o", str(other)]) == 0
    assert file.read_text(encoding="utf-8") == WILD
    assert main(["rounds", "format", str(file)]) == 0
    assert file.read_text(encoding="utf-8") == other.read_text(encoding="utf-8") == formatted(WILD, "wild.distal")
    assert main(["rounds", "format", str(file), "--check"]) == 0
    assert main(["rounds", "format", str(file)]) == 0
    assert "nothing to change" in capsys.readouterr().err
    file.write_text("init\n  x = \n", encoding="utf-8")
    assert main(["rounds", "format", str(file)]) == 2
    assert "expected an expression" in capsys.readouterr().err
    with pytest.raises(ModelError):
        formatted("", "empty.distal")

"""The gallery of the zoo shows what Plait finds and draws now, for every protocol."""

from __future__ import annotations

import doctest
import json
from typing import Any

import pytest

from docs._site import gallery
from plait.model.loading.loader import zoo

FACTS: dict[str, dict[str, Any]] = json.loads(gallery.FACTS.read_text(encoding="utf-8"))
ANEW = "after a change of a protocol or of the drawing, run python docs/_site/gallery.py"


def test_every_protocol_is_shown_once() -> None:
    names = [name for family in gallery.FAMILIES for name in family.protocols]
    assert sorted(names) == sorted(zoo()), "add it to FAMILIES in docs/_site/gallery.py, with a faulty twin"
    assert list(FACTS) == names
    assert {file.stem for file in gallery.GALLERY.glob("*.svg")} == set(names)


@pytest.mark.slow
@pytest.mark.parametrize("name", gallery.TWINS)
def test_sizes_and_pictures_are_right(name: str) -> None:
    facts, picture = gallery.measure(name)
    assert facts == FACTS[name], ANEW
    assert picture == (gallery.GALLERY / f"{name}.svg").read_text(encoding="utf-8"), ANEW


@pytest.mark.slow
@pytest.mark.parametrize("name", gallery.TWINS)
def test_a_page_says_how_to_run_it(name: str) -> None:
    text = gallery.page(name, FACTS[name])
    assert gallery.command(name, {}) in text
    assert gallery.command(name, gallery.TWINS[name]) in text
    assert f"{FACTS[name]['states']:,} states" in text
    assert f"({name}.svg)" in text


def test_examples() -> None:
    assert doctest.testmod(gallery).failed == 0

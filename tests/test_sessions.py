"""Pages that show a terminal session can be followed: tests/support/session.py says how.

After a change of the drawing, write the pictures anew: PLAIT_WRITE=1 pytest tests/test_sessions.py
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.markdown import ROOT
from tests.support.session import Command, Listing, Session, definitions, edited, follow, parts

DOCS = ROOT / "docs"
PAGES = sorted([*(DOCS / "tutorial").glob("*.md"), *(DOCS / "guides").glob("*.md")])
ELSEWHERE = {"epa.md", "epa-tutorial.md", "bmc.md", "gyro.md", "gyro-serving.md", "gyro-operating.md", "gyro-web.md"}
"""Guides whose commands have tests of their own, or need a compiler or servers."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.name not in ELSEWHERE and any(parts(page))],
    ids=lambda page: f"{page.parent.name}/{page.name}",
)
def test_the_page_can_be_followed(page: Path, tmp_path: Path) -> None:
    follow(page, tmp_path)


def test_listings_with_a_title_are_followed() -> None:
    """A listing that is a file of its own is run by no other test."""
    for page in (DOCS).rglob("*.md"):
        if any(isinstance(part, Listing) for part in parts(page)):
            assert page in PAGES, page
            assert page.name not in ELSEWHERE, page


def test_a_listing_replaces_what_has_its_name() -> None:
    file = "import a\n\n\nclass A: ...\n\n\n@a.b\ndef f():\n    return 1\n"
    listing = "import a\nimport c\n\n\nclass B: ...\n\n\n@a.d\ndef f():\n    return 2\n\n\nclass C: ...\n"
    assert list(definitions(edited(file, listing))) == ["import", "A", "B", "f", "C"]
    assert definitions(edited(file, listing))["f"] == "@a.d\ndef f():\n    return 2"
    assert edited(file, file) == file


def test_a_command_must_print_what_is_shown(tmp_path: Path) -> None:
    session = Session(tmp_path)
    session.run(Command("printf 'one\\ntwo\\n'; false", ["one", "…"]))
    session.run(Command("echo $?", ["1"]))
    with pytest.raises(pytest.fail.Exception, match="prints\none\n"):
        session.run(Command("echo one", ["two"]))

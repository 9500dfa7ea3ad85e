"""The documentation site builds: no broken link or anchor, no public name without a docstring, nothing from the network."""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.markdown import ROOT
from tests.support.once import made_once

pytestmark = pytest.mark.slow

LOADED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"([^\"]+)\"|<link\b[^>]*\brel=\"(?:stylesheet|preload|preconnect|icon)\"[^>]*\bhref=\"([^\"]+)\""
)
"""What a browser loads when it shows a page."""


def build(root: Path, site: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(site)],
        cwd=root,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it."""

    def make(folder: Path) -> None:
        result = build(ROOT, folder)
        assert result.returncode == 0, result.stderr
        assert "WARNING" not in result.stderr

    return made_once(tmp_path_factory, "site", make)


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    """A reader without a network sees all of it: scripts, styles, fonts and pictures are part of the site."""
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        for match in LOADED.finditer(page.read_text(encoding="utf-8")):
            address = match[1] or match[2]
            assert not re.match(r"(?:https?:)?//", address), f"{page.name} loads {address}"


def test_pages_have_no_diagram_that_a_script_would_have_to_fetch(site: Path) -> None:
    """Material for MkDocs fetches Mermaid from the network when a page has such a diagram."""
    for page in site.rglob("*.html"):
        assert 'class="mermaid"' not in page.read_text(encoding="utf-8"), page.name


def test_search_knows_the_reference(site: Path) -> None:
    index = (site / "search" / "search_index.json").read_text(encoding="utf-8")
    for name in ("crash_recovery", "always_eventually", "Table I", "llms.txt"):
        assert name in index


def test_language_models_get_the_skill_as_it_is(site: Path) -> None:
    skill = ROOT / "docs" / "agents" / "plait" / "SKILL.md"
    assert (site / "agents" / "plait" / "SKILL.md").read_text(encoding="utf-8") == skill.read_text(encoding="utf-8")
    assert (site / "llms.txt").exists()


def test_language_models_get_all_pages(site: Path) -> None:
    full = (site / "llms-full.txt").read_text(encoding="utf-8")
    for page in ("index.md", "reference/cli.md", "internals/architecture.md"):
        assert f"<!-- {page} -->" in full


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A site of two pages with our settings, to break. It has no reference of the API, which takes seconds to make."""
    root = tmp_path / "clone"
    (root / "docs").mkdir(parents=True)
    shutil.copytree(ROOT / "docs" / "_site", root / "docs" / "_site", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", root)
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:")[0]
    settings = re.sub(r"  - mkdocstrings:\n(?: {6}.*\n)*", "", settings).replace("  - docs/_site/docstrings.py\n", "")
    (root / "mkdocs.yml").write_text(settings, encoding="utf-8")
    (root / "docs" / "index.md").write_text("# Index\n\n[errors](other.md#errors)\n", encoding="utf-8")
    (root / "docs" / "other.md").write_text("# Other\n\n## Errors\n", encoding="utf-8")
    return root


@pytest.mark.parametrize(
    ("target", "said"),
    [
        pytest.param("other.md#errors", None, id="nothing is wrong"),
        pytest.param("other.md#nonsense", "#nonsense", id="anchor"),
        pytest.param("none.md", "none.md", id="page"),
        pytest.param("../examples/none.py", "none.py", id="file"),
    ],
)
def test_a_broken_link_fails_the_build(small: Path, tmp_path: Path, target: str, said: str | None) -> None:
    (small / "docs" / "index.md").write_text(f"# Index\n\n[a link]({target})\n", encoding="utf-8")
    result = build(small, tmp_path / "out")
    if said is None:
        assert result.returncode == 0, result.stderr
    else:
        assert result.returncode != 0
        assert said in result.stderr


def test_a_name_that_is_not_in_the_reference_fails_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mkdocs.exceptions import PluginError

    import plait.check.runner  # noqa: F401 - `plait.check` is now the room, whatever other tests imported
    from docs._site import docstrings

    docstrings.on_pre_build(None)
    page = tmp_path / "api.md"
    page.write_text(docstrings.REFERENCE.read_text(encoding="utf-8").replace("::: plait.on\n", ""), encoding="utf-8")
    monkeypatch.setattr(docstrings, "REFERENCE", page)
    with pytest.raises(PluginError, match=r"plait\.on is not in docs/reference/api\.md"):
        docstrings.on_pre_build(None)


def test_examples_of_the_hooks() -> None:
    from docs._site import links, navigation
    from docs._site.doctests import fenced

    for hook in (links, navigation):
        assert doctest.testmod(hook).failed == 0
    assert fenced("Add.\n\n>>> 1 + 1\n2\n\nDone.") == "Add.\n\n```pycon\n>>> 1 + 1\n2\n```\n\nDone."


def test_a_missing_docstring_is_noticed() -> None:
    from docs._site.docstrings import documented, undocumented, undocumented_members

    class Bare:
        def method(self) -> None: ...

        def _private(self) -> None: ...

    assert not documented(Bare)
    assert undocumented_members(Bare) == ["method"]
    assert undocumented() == []

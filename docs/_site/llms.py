"""A hook of the site: llms-full.txt has the text of all pages in the order of the navigation, for language models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_pages: list[tuple[str, str, str]] = []


def on_nav(nav: Any, **_: Any) -> None:
    """Begin anew, with each build."""
    _pages.clear()


def on_page_markdown(markdown: str, page: Any, **_: Any) -> None:
    """Remember the text of a page."""
    _pages.append((page.file.src_uri, page.file.url, markdown))


def on_post_build(config: Any) -> None:
    """Write the file beside llms.txt."""
    parts = [f"<!-- {name} -->\n\n{text.strip()}\n" for name, _, text in _pages]
    Path(config.site_dir, "llms-full.txt").write_text("\n\n".join(parts), encoding="utf-8")

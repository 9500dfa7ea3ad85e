"""A hook of the site: what language models read.

llms.txt links to pages as Markdown, so each page is also there as Markdown, next to its HTML. llms-full.txt has the text of
all pages in the order of the navigation.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

_pages: list[tuple[str, str]] = []


def on_nav(nav: Any, **_: Any) -> None:
    """Forget the pages of the build before."""
    _pages.clear()


def on_page_markdown(markdown: str, page: Any, **_: Any) -> None:
    """Remember the text of a page; the head of a skill (its name and description) is part of it."""
    _pages.append((page.file.src_uri, page.file.content_string if page.meta else markdown))


def on_post_build(config: Any) -> None:
    """Write the files."""
    site = Path(config.site_dir)
    for name, text in _pages:
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text, encoding="utf-8")
    parts = [f"<!-- {name} -->\n\n{text.strip()}\n" for name, text in _pages]
    (site / "llms-full.txt").write_text("\n\n".join(parts), encoding="utf-8")

"""A hook of the site: `folder/*` in the navigation stands for the pages of a folder that are not listed by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1]


def on_config(config: Any) -> Any:
    """Expand the patterns, before the navigation is read."""
    if config.nav is not None:
        config.nav = expanded(config.nav, set(listed(config.nav)), Path(config.docs_dir))
    return config


def listed(nav: Any) -> Iterator[str]:
    """All pages that the navigation names.

    >>> list(listed(["index.md", {"Guides": ["a/b.md", "a/*"]}]))
    ['index.md', 'a/b.md', 'a/*']
    """
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict):
        for value in nav.values():
            yield from listed(value)
    else:
        for item in nav:
            yield from listed(item)


def expanded(nav: Any, known: set[str], docs: Path = DOCS) -> Any:
    """The navigation with the pages of each `folder/*`, sorted by name."""
    if isinstance(nav, dict):
        return {name: expanded(value, known, docs) for name, value in nav.items()}
    if isinstance(nav, str):
        return nav
    result = []
    for item in nav:
        if isinstance(item, str) and item.endswith("/*"):
            pages = sorted(p.relative_to(docs).as_posix() for p in (docs / item[:-2]).glob("*.md"))
            result += [page for page in pages if page not in known]
        else:
            result.append(expanded(item, known, docs))
    return result

"""A hook of the site: links from a page into the repository, outside of docs/, lead to the repository's own pages.

In the repository such a link is a path (`../../examples/lease.py`), which works in an editor and where the repository is
hosted. The site has no such file. The address comes from `[project.urls]` in pyproject.toml; without one, the text of the
link stays and the link goes. A link to a file that does not exist stays as it is, and the strict build reports it.
"""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

_LINK = re.compile(r"\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^)\s#]+)(?:#[^)\s]*)?\)")
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def repository() -> str | None:
    """The address of the repository, if the project has one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    urls = {name.lower(): address for name, address in project.get("urls", {}).items()}
    address = next((urls[name] for name in ("repository", "source", "homepage") if name in urls), None)
    return address.rstrip("/") if address else None


def on_config(config: Any) -> Any:
    """Show the repository in the head of each page."""
    config.repo_url = config.repo_url or repository()
    return config


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Replace links that lead out of docs/."""
    parts = _FENCE.split(markdown)
    parts[::2] = [rewritten(part, page.file.src_uri, config.repo_url) for part in parts[::2]]
    return "".join(parts)


def rewritten(text: str, page: str, address: str | None) -> str:
    """The text of a page, with links for the site.

    >>> rewritten("[a](b.md) and [lease](../../examples/lease.py)", "guides/x.md", "https://host/plait")
    '[a](b.md) and [lease](https://host/plait/blob/main/examples/lease.py)'
    >>> rewritten("[lease](../../examples/lease.py)", "guides/x.md", None)
    'lease'
    """

    def replace(match: re.Match[str]) -> str:
        if "://" in match["target"]:
            return match[0]
        path = os.path.normpath(os.path.join("docs", os.path.dirname(page), match["target"]))  # noqa: PTH118, PTH120
        if Path(path).parts[0] == "docs" or not (ROOT / path).exists():
            return match[0]
        if address is None:
            return match["text"]
        kind = "tree" if (ROOT / path).is_dir() else "blob"
        return f"[{match['text']}]({address}/{kind}/main/{Path(path).as_posix()})"

    return _LINK.sub(replace, text)

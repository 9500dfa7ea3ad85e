"""Adds the project URLs to pyproject.toml before a release is built: python scripts/project_urls.py URL.

The URL names the repository that builds the release. So a wheel always points to a repository of its maintainers. All other
data of a release is in the source.
"""

from __future__ import annotations

import sys
from pathlib import Path

PATHS = {
    "Repository": "",
    "Documentation": "/blob/main/README.md",
    "Changelog": "/blob/main/CHANGELOG.md",
    "Issues": "/issues",
}


def with_urls(project: str, repository: str) -> str:
    """The text of pyproject.toml with a table of URLs."""
    if not repository.startswith("https://") or "[project.urls]" in project:
        raise SystemExit(
            f"error: expected an https URL and a pyproject.toml without [project.urls], got {repository!r}"
        )
    urls = "".join(f'{name} = "{repository.rstrip("/")}{path}"\n' for name, path in PATHS.items())
    return project.replace("\n[project.scripts]\n", f"\n[project.urls]\n{urls}\n[project.scripts]\n")


if __name__ == "__main__":
    file = Path(__file__).parents[1] / "pyproject.toml"
    file.write_text(with_urls(file.read_text(encoding="utf-8"), *sys.argv[1:]), encoding="utf-8")

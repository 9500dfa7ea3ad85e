"""The files of the viewer: what a page needs is in the package, and what is missing is said."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from plait.kernel.errors import UsageError
from plait.report.markup import asset
from plait.report.viewer import FILES, explorer_page

ROOT = Path(__file__).parents[2]


def test_the_page_of_the_explorer_loads_its_own_files_only() -> None:
    page = explorer_page()
    assert set(re.findall(r'(?:src|href)="([^"]*)"', page)) - {"data:,"} <= FILES.keys()
    assert not re.search(r"<style|style=|<script>|\son\w+=", page), "its content security policy forbids inline code"


@pytest.mark.parametrize("name", [*FILES, "viewer-widget.js"])
def test_the_package_has_the_files(name: str) -> None:
    assert len(asset(name)) > 5000
    include = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["maturin"]["include"]
    assert any(Path("src/plait/report/assets", name).match(entry["path"]) for entry in include)
    assert all(entry["format"] == ["sdist", "wheel"] for entry in include)


def test_a_script_cannot_end_its_element() -> None:
    assert not re.search(r"</script|<!--", asset("viewer.js"), re.IGNORECASE)
    assert asset("viewer.js").isascii()


def test_the_styles_of_a_widget_stay_in_its_shadow_root() -> None:
    """A shadow root has neither `:root` nor a body. Pictures are images, so their own style sheet has a root."""
    script = asset("viewer-widget.js").replace(asset("picture.css"), "")
    assert ":host{" in script
    assert not re.search(r":root\b|[{},]body[ .{,]", script)


def test_a_file_that_is_not_built() -> None:
    with pytest.raises(UsageError, match=r"none\.js is not built") as error:
        asset("none.js")
    assert error.value.hint == "run `make setup`"


def test_the_lock_file_names_no_host() -> None:
    assert "://" not in re.sub(r'"url": "[^"]*"', "", (ROOT / "viewer" / "package-lock.json").read_text())

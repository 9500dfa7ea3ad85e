"""The options of a search: one description for `check()`, the command line, the pytest mark and the engine."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from plait import UsageError, check
from plait.check.options import Changes, Options, options_from
from plait.cli.main import main
from plait.cli.options import flag, flags
from plait.kernel.errors import Argument
from plait.protocols.ping_pong import ping_pong

FIELDS = {field.name: field for field in dataclasses.fields(Options)}


def test_keyword_arguments_are_the_fields_of_options() -> None:
    """Type checkers read the TypedDict, everything else reads the dataclass."""
    assert get_type_hints(Changes) == get_type_hints(Options)
    assert list(get_type_hints(Changes)) == list(FIELDS)


@pytest.mark.slow
def test_each_option_has_a_help_text() -> None:
    for name, hint in get_type_hints(flags(Options), include_extras=True).items():
        (parameter,) = hint.__metadata__
        assert parameter.help, name
        assert parameter.name == (flag(Argument(name)),)


def test_options_and_keyword_arguments() -> None:
    depth_first = Options(search="dfs", workers=1)
    assert check(ping_pong(), depth_first).statistics.search == "dfs"
    verdict = check(ping_pong(), depth_first, search="bfs", properties=["in_step"])
    assert (verdict.statistics.search, verdict.statistics.workers) == ("bfs", 1)
    assert [p.name for p in verdict.properties] == ["in_step"]


def test_an_option_that_does_not_exist() -> None:
    with pytest.raises(UsageError, match=r"check\(\) has no option serach\nhint: did you mean search\?"):
        check(ping_pong(), serach="dfs")  # type: ignore[call-arg]
    with pytest.raises(UsageError, match="is not an Options"):
        check(ping_pong(), {"search": "dfs"})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "message", "hint"),
    [
        ({"search": "best"}, "search='best'", "choose one of: bfs, dfs, random, stateless"),
        ({"workers": 0}, "workers=0", "give a whole number, 1 or more"),
        ({"workers": True}, "workers=True", "give a whole number, 1 or more"),
        ({"timeout": -1}, "timeout=-1", "give a number, 0 or more"),
        ({"walks": None}, "walks=None", "give a whole number, 1 or more"),
        ({"spos": 1}, "spos=1", "give True or False"),
        ({"properties": "agreement"}, "properties='agreement'", 'give names, as in ["one", "another"]'),
        ({"reduce": 3}, "reduce=3", 'give names, as in ["one", "another"] or "one,another"'),
        ({"reduce": "pro"}, "reduce='pro': there is no such reduction", "did you mean por?"),
        ({"reduce": "auto,por"}, "reduce='auto,por': auto cannot be combined", "give auto without other names"),
    ],
)
def test_a_value_that_does_not_fit(changes: dict[str, Any], message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        options_from(changes)
    assert message in caught.value.message
    assert caught.value.hint == hint


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--workers", "0"], "error: --workers: '0' is too small\nhint: give 1 or more\n"),
        (["--reduce", "pro"], "error: --reduce pro: there is no such reduction\nhint: did you mean por?\n"),
        (
            ["--reduce", "por", "--search", "random"],
            "error: --reduce por: cannot be used with the random search: its cycle proviso needs the visited set; "
            "the stateless search has dpor instead\nhint: leave it out, or use --reduce auto\n",
        ),
        (
            ["-p", "maximum=x"],
            "error: ping_pong: maximum='x' does not fit: expected an int\nhint: for example -p maximum=3\n",
        ),
    ],
)
def test_the_command_line_shows_flags(capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str) -> None:
    assert main(["check", "ping-pong", *arguments]) == 2
    assert capsys.readouterr().err == expected


def test_options_are_light_to_import(tmp_path: Path) -> None:
    """The command line reads them for `--help`, and the pytest plugin when it collects."""
    script = "import sys, plait.check.options; print([n for n in ('plait._native', 'cyclopts') if n in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert ran.stdout.strip() == "[]"

"""The file of `plait gyro serve --config FILE`: TOML, with the names of the options as keys.

An option of the command line wins over the file. An option that can be given several times is a list. Relative paths in
the file are relative to the folder of the file.
"""

from __future__ import annotations

import difflib
import tomllib
from pathlib import Path
from typing import Any, get_args

from cyclopts import Token
from cyclopts.argument import Argument, ArgumentCollection

from plait.kernel.errors import UsageError

_APPLICATION = "application"


def read_config(arguments: ArgumentCollection) -> None:
    """Add the values of the file to the arguments that the command line does not give."""
    known = {_name(argument): argument for argument in arguments}
    given = known.pop("config").tokens
    if not given:
        return
    file = Path(given[-1].value)
    for key, value in _content(file).items():
        argument = known.get(key)
        if argument is None:
            near = difflib.get_close_matches(key, known, 1, 0.0)
            raise UsageError(
                f"{file}: unknown key {key}", hint=f"did you mean {near[0]}? keys: {', '.join(sorted(known))}"
            )
        if not argument.tokens:
            for index, text in enumerate(_texts(file, key, value, argument)):
                argument.append(Token(keyword=f"--{key}", value=text, source=str(file), index=index))


def _name(argument: Argument) -> str:
    return argument.name.removeprefix("--").lower()


def _content(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"--config: {file} cannot be read: {error.strerror}", hint="give a TOML file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"--config: {file} is not TOML: {error}", hint="lines are like `port = 8400`") from None


def _texts(file: Path, key: str, value: Any, argument: Argument) -> list[str]:
    """The values as the command line would have them."""
    several = argument.hint is tuple or getattr(argument.hint, "__origin__", None) is tuple
    if isinstance(value, list) and not several:
        raise UsageError(f"{file}: {key} is a list", hint="give one value")
    if argument.hint is bool:
        if not isinstance(value, bool):
            raise UsageError(f"{file}: {key} is neither true nor false", hint=f"for example {key} = true")
        return [str(value).lower()]
    values = value if isinstance(value, list) else [value]
    if any(isinstance(each, bool) or not isinstance(each, (str, int, float)) for each in values):
        raise UsageError(f"{file}: {key} is neither a string nor a number", hint=f'for example {key} = "…"')
    if key == _APPLICATION or Path in (argument.hint, *get_args(argument.hint)):
        return [str(file.parent / str(each)) for each in values]
    return [str(each) for each in values]

"""Shared by the commands: numbers as people write them, `-p name=value`, and options of the library as flags.

`flags` makes command-line options from a dataclass such as `plait.check.options.Options`. `flag` gives the name that an
argument of the library has on the command line, for errors.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import math
import re
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from cyclopts import Parameter, Token

from plait.kernel.errors import Argument, UsageError

_NUMBER = re.compile(r"\s*([0-9][0-9_]*(?:\.[0-9_]+)?(?:e\+?[0-9]+)?)\s*([a-z]*)\s*", re.IGNORECASE)
_DECIMAL = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "b": 10**9}
_BINARY = {f"{p}{s}": 1024**i for i, p in enumerate(["", "k", "m", "g", "t"]) for s in ("", "b", "ib")}
_SECONDS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600}


def _read(text: str, units: dict[str, int], expected: str) -> float:
    match = _NUMBER.fullmatch(text)
    unit = units.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise ValueError(f"expected {expected}")
    return float(match[1].replace("_", "")) * unit


def count(text: str) -> int:
    """A number of things.

    >>> [count(t) for t in ("42", "1_000_000", "1e6", "10k", "2.5M")]
    [42, 1000000, 1000000, 10000, 2500000]
    """
    if re.fullmatch(r"[0-9][0-9_]*", text):
        return int(text)
    value = _read(text, _DECIMAL, "a whole number, like 1000, 1_000_000, 1e6 or 10M")
    if not math.isfinite(value) or value != int(value):
        raise ValueError("expected a whole number, like 1000, 1_000_000, 1e6 or 10M")
    return int(value)


def size(text: str) -> int:
    """A number of bytes.

    >>> [size(t) for t in ("4096", "500M", "4G", "1.5GiB")]
    [4096, 524288000, 4294967296, 1610612736]
    """
    value = _read(text, _BINARY, "a size, like 500M or 4G")
    if not math.isfinite(value) or value < 1:
        raise ValueError("expected a size, like 500M or 4G")
    return int(value)


def seconds(text: str) -> float:
    """A length of time.

    >>> [seconds(t) for t in ("90", "0.5", "2m", "1h")]
    [90.0, 0.5, 120.0, 3600.0]
    """
    value = _read(text, _SECONDS, "seconds, like 90, 0.5, 2m or 1h")
    if not math.isfinite(value):
        raise ValueError("expected seconds, like 90, 0.5, 2m or 1h")
    return value


def _converter(read: Callable[[str], Any], least: float) -> Callable[[Any, Sequence[Token]], Any]:
    def convert(_type: Any, tokens: Sequence[Token]) -> Any:
        text = tokens[0].value
        option = (tokens[0].keyword or "") + (
            f" from {tokens[0].source}" if tokens[0].source not in ("", "cli") else ""
        )
        try:
            value = read(text)
        except ValueError as error:
            raise UsageError(f"{option}: {text!r} does not fit", hint=str(error)) from None
        if value < least:
            raise UsageError(f"{option}: {text!r} is too small", hint=f"give {least:g} or more")
        return value

    return convert


Count = Annotated[int, Parameter(converter=_converter(count, 0))]
AtLeastOne = Annotated[int | None, Parameter(converter=_converter(count, 1))]
Phases = Annotated[
    int | Literal["any"] | None,
    Parameter(converter=lambda kind, tokens: "any" if tokens[0].value == "any" else _converter(count, 1)(kind, tokens)),
]
Size = Annotated[int | None, Parameter(converter=_converter(size, 1))]
Flag = Annotated[bool, Parameter(negative="", show_default=False)]
Quiet = Annotated[bool, Parameter(name=["--quiet", "-q"], negative="", show_default=False)]
Seconds = Annotated[float | None, Parameter(converter=_converter(seconds, 0))]


_NAMES = {"properties": "--property"}
"""Flags with another name than their argument."""
_UNITS = {"count": count, "bytes": size, "seconds": seconds}


def flag(argument: Argument) -> str:
    """How the command line names an argument of the library, and its value.

    >>> [flag(Argument("search", "dfs")), flag(Argument("keep_going", True)), flag(Argument("properties", ["a", "b"]))]
    ['--search dfs', '--keep-going', '--property a --property b']
    >>> flag(Argument("acceptors", 3, parameter=True))
    '-p acceptors=3'
    """
    name, value = argument.name, argument.value
    if argument.parameter:
        return f"-p {name}={value}" if argument.given else f"-p {name}"
    spelled = _NAMES.get(name, f"--{name.replace('_', '-')}")
    if not argument.given or value is True:
        return spelled
    if value is False:
        return spelled.replace("--", "--no-", 1)
    return " ".join(f"{spelled} {one}" for one in ([value] if isinstance(value, str | int | float) else value))


def flags(options: type) -> Any:
    """A dataclass of options with what the command line adds: flags, help texts, and how people write numbers.

    Use it as `Annotated[flags(Options), Parameter(name="*")]`. The help of an option is the text below its field.
    """
    hints, texts = get_type_hints(options, include_extras=True), _texts_below_fields(options)
    made: list[tuple[str, Any, Any]] = []
    for field in dataclasses.fields(options):
        kind, *details = (
            get_args(hints[field.name]) if get_origin(hints[field.name]) is Annotated else [hints[field.name]]
        )
        shown: dict[str, Any] = {"help": texts.get(field.name), "name": flag(Argument(field.name))}
        if details:
            shown["converter"] = _converter(_UNITS[details[0].unit], details[0].least)
        elif kind is bool:
            shown["show_default"] = field.default is True
            shown |= {} if field.default is True else {"negative": ""}
        elif kind == str | Sequence[str]:
            kind = str
        elif kind == Sequence[str] | None:
            kind = tuple[str, ...] | None
            shown |= {"negative": "", "show_default": False}
        made.append((field.name, Annotated[kind, Parameter(**shown)], dataclasses.field(default=field.default)))
    where = {"__module__": options.__module__}
    return dataclasses.make_dataclass(
        options.__name__, made, bases=(options,), namespace=where, frozen=True, kw_only=True
    )


def _texts_below_fields(options: type) -> dict[str, str]:
    """The string below each field of a class, by the name of the field."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(options))).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for field, below in itertools.pairwise(definition.body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(value=ast.Constant(str(text))):
                found[name] = text
    return found


def _targets(context: Any) -> list[tuple[str, str]]:
    """Completions for TARGET: the zoo, Python files, and folders."""
    from glob import glob

    from plait.model.loading.loader import zoo

    paths = [Path(p) for p in glob(f"{context.incomplete}*")]  # noqa: PTH207
    folders = [(f"{p}/", "") for p in paths if p.is_dir()]
    return [*zoo().items(), *((str(p), "") for p in paths if p.suffix == ".py"), *folders]


Target = Annotated[str, Parameter(completer=_targets)]
Parameters = Annotated[tuple[str, ...], Parameter(name=["--parameter", "-p"], negative="", show_default=False)]


def split(parameters: Sequence[str]) -> dict[str, str]:
    """The values of `name=value` strings, by name.

    >>> split(["acceptors=3", "faulty=none"])
    {'acceptors': '3', 'faulty': 'none'}
    """
    found: dict[str, str] = {}
    for item in parameters:
        name, equals, value = item.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise UsageError(f"-p {item}: expected name=value", hint="for example -p acceptors=3")
        if name in found:
            raise UsageError(f"-p {name} is given twice: {found[name]!r} and {value!r}", hint="keep one of them")
        found[name] = value
    return found


_tokens: list[str] = []
_after_dashes: list[str] = []


def remember(tokens: Sequence[str]) -> None:
    """Store the tokens of the command line, for a command that starts itself again."""
    _tokens[:] = tokens


def remembered() -> list[str]:
    """The tokens of the command line."""
    return list(_tokens)


def split_dashes(tokens: Sequence[str]) -> list[str]:
    """Store the tokens after `--` for the program or compiler. Return the tokens before it."""
    found = list(tokens)
    at = found.index("--") if "--" in found else len(found)
    _after_dashes[:] = found[at + 1 :]
    return found[:at]


def after_dashes() -> list[str]:
    """The tokens after `--`."""
    return list(_after_dashes)

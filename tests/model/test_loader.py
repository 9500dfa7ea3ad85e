"""Targets and parameters: what each kind of target finds, and what a wrong one is told."""

from __future__ import annotations

import enum
import typing
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from plait import ModelError, PlaitError, System, UsageError
from plait.model.loading.convert import NotConvertibleError, convert, convertible, spell
from plait.model.loading.loader import ModelFunction, find, load, zoo


class Color(enum.Enum):
    RED = "r"
    BLUE = "b"


Age = typing.NewType("Age", int)


# -- conversion ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "annotation", "value"),
    [
        ("3", int, 3),
        ("1_000", int, 1000),
        ("-3", int, -3),
        ("0.5", float, 0.5),
        ("2", float, 2.0),
        ("true", bool, True),
        ("No", bool, False),
        ("0", bool, False),
        ("hello", str, "hello"),
        ("3", str, "3"),
        ("b", Literal["a", "b"], "b"),
        ("2", Literal[1, 2], 2),
        ("red", Color, Color.RED),
        ("b", Color, Color.BLUE),
        ("none", int | None, None),
        ("4", int | None, 4),
        ("4", typing.Optional[int], 4),  # noqa: UP045
        ("4", str | int, 4),
        ("x", int | str, "x"),
        ("1,2", list[int], [1, 2]),
        ("(1, 2)", tuple[int, ...], (1, 2)),
        ("", list[int], []),
        ("1,x", tuple[int, str], (1, "x")),
        ("red,blue", frozenset[Color], frozenset(Color)),
        ("7", Annotated[int, "years"], 7),
        ("7", Age, 7),
        ("as it is", Any, "as it is"),
    ],
)
def test_text_becomes_what_the_annotation_says(text: str, annotation: Any, value: Any) -> None:
    converted = convert(text, annotation)
    assert converted == value
    assert type(converted) is type(value)


@pytest.mark.parametrize(
    ("value", "annotation", "expected"),
    [
        ("three", int, "an int"),
        ("3.5", int, "an int"),
        ("maybe", bool, "a bool"),
        ("c", Literal["a", "b"], "'a' | 'b'"),
        ("green", Color, "RED | BLUE"),
        ("x", int | None, "int | none"),
        ("1,x", tuple[int, ...], "an int"),
        ("1", tuple[int, int], "int,int"),
        ("x", dict[str, int], "dict"),
    ],
)
def test_what_does_not_fit_says_what_would(value: str, annotation: Any, expected: str) -> None:
    with pytest.raises(NotConvertibleError, match=expected.replace("|", r"\|")):
        convert(value, annotation)


@pytest.mark.parametrize(
    ("value", "annotation"),
    [(True, int), (1, bool), (1, str), ("1", int), (1.5, int), ("none", int | None), ("red", Color)],
)
def test_values_from_a_trace_are_not_parsed(value: Any, annotation: Any) -> None:
    with pytest.raises(NotConvertibleError):
        convert(value, annotation, parse=False)


def test_data_of_a_trace_becomes_the_value_again() -> None:
    from plait.kernel.values import to_data

    for value, annotation in [
        ((1, 2), tuple[int, ...]),
        ([1, 2], list[int]),
        (Color.RED, Color),
        (frozenset({1, 2}), frozenset[int]),
        (None, int | None),
        ("none", str | None),
        ("3", int | str),
        (2**60, int),
        ((Color.BLUE, "x"), tuple[Color, str]),
    ]:
        assert convert(to_data(value), annotation, parse=False) == value


def test_which_types_can_be_written() -> None:
    assert convertible(tuple[int, ...] | None)
    assert convertible(Literal["a"])
    assert not convertible(dict[str, int])
    assert not convertible(System)
    assert spell(Color) == "RED | BLUE"


# -- targets ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_zoo_lists_its_protocols_with_a_line_each() -> None:
    protocols = zoo()
    assert {"paxos", "two-phase-commit"} <= set(protocols)
    assert "parameters" not in protocols
    assert all(protocols.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(zoo()))
def test_every_zoo_protocol_loads(name: str) -> None:
    system = load(name, {})
    assert isinstance(system, System)
    assert system.target == name
    assert load(name, system.parameters, parse=False).parameters == system.parameters


@pytest.mark.slow
def test_a_zoo_name_with_dashes_or_underscores() -> None:
    assert load("two-phase-commit", {}).name == load("two_phase_commit", {}).name


def test_a_file_with_one_model(counter: Path) -> None:
    system = load("counter.py", {"limit": "5"})
    assert system.name == "counter"
    assert system.target == "counter.py:counter"
    assert system.parameters == {"limit": 5, "most": 10}
    found = find(str(counter))
    assert isinstance(found, ModelFunction)
    assert found.doc == "A process that counts to a limit: limit + 1 states."


def test_a_module_in_the_current_folder(counter: Path) -> None:
    assert load("counter:counter", {}).target == "counter:counter"


def test_a_file_in_a_package_may_import_its_neighbours(workplace: Path, counter: Path) -> None:
    package = workplace / "models"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "base.py").write_text(counter.read_text())
    (package / "more.py").write_text(
        "from plait import System\nfrom .base import counter\ndef more() -> System:\n    return counter(limit=1)\n"
    )
    assert load("models/more.py", {}).target == "models/more.py:more"
    assert load("models.more:more", {}).name == "more"


def test_a_lone_file_may_import_its_neighbours(workplace: Path, counter: Path) -> None:
    (workplace / "user.py").write_text("import counter\nsystem = counter.counter(limit=1)\n")
    system = load("user.py", {})
    assert (system.name, system.target) == ("system", "user.py:system")


def test_a_system_in_a_file_takes_no_parameters(workplace: Path, counter: Path) -> None:
    (workplace / "user.py").write_text("import counter\nsmall = counter.counter(limit=1)\n")
    assert load("user.py:small", {}).name == "small"
    with pytest.raises(UsageError, match="is a System, not a function: it has no parameter 'limit'"):
        load("user.py:small", {"limit": "2"})


def test_two_files_of_one_name_are_two_modules(workplace: Path, counter: Path) -> None:
    other = workplace / "other"
    other.mkdir()
    (other / "counter.py").write_text(counter.read_text().replace("limit: int = 3", "limit: int = 4"))
    assert load("counter.py", {}).parameters["limit"] == 3
    assert load("other/counter.py", {}).parameters["limit"] == 4


def refusal(target: str, parameters: dict[str, Any] | None = None) -> PlaitError:
    with pytest.raises(PlaitError) as caught:
        load(target, parameters or {})
    assert caught.value.hint, "an error says what to do next"
    return caught.value


@pytest.mark.parametrize(
    ("target", "message", "hint"),
    [
        ("paxso", "no protocol 'paxso'", "did you mean 'paxos'"),
        ("counter", "no protocol 'counter'", "counter.py"),
        ("countr.py", "no file countr.py", "did you mean counter.py"),
        ("nowhere/x.py", "no file nowhere/x.py", "path"),
        ("counter.py:contuer", "has no 'contuer'", "did you mean 'counter'"),
        ("counter.py:Counter", "is a type, not a model", "function that returns one"),
        ("no.such.module:f", "no module 'no'", "package.module:function"),
        ("counter.nothing:f", "no module 'counter.nothing'", "package.module:function"),
        (":f", "is not the name of a model", "zoo"),
        ("counter.py:", "is not the name of a model", "zoo"),
        ("", "is not the name of a model", "zoo"),
        ("..:f", "not the name of a module", "package.module:function"),
        ("./", "is a folder", ".py file"),
        ("notes.txt", "no module 'notes'", "Python file"),
    ],
)
def test_an_unknown_target(counter: Path, target: str, message: str, hint: str) -> None:
    error = refusal(target)
    assert message in error.message
    assert hint in str(error.hint)


def test_a_file_that_is_not_python(workplace: Path) -> None:
    (workplace / "notes.txt").write_text("hello")
    assert "not a Python file" in refusal("./notes.txt").message


def test_a_file_with_two_models_names_them(workplace: Path, counter: Path) -> None:
    counter.write_text(counter.read_text() + "\nsecond = counter(2)\n_hidden = counter(3)\n")
    error = refusal("counter.py")
    assert "2 models: counter, second" in error.message
    assert "counter.py:counter" in str(error.hint)


def test_a_file_without_a_model(workplace: Path) -> None:
    (workplace / "empty.py").touch()
    error = refusal("empty.py")
    assert "no models" in error.message
    assert "-> System" in str(error.hint)


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("x = 1\ny = undefined\n", "NameError: name 'undefined' is not defined", 2),
        ("def f(:\n", "SyntaxError: invalid syntax", 1),
        ("import json\n\njson.loads('{')\n", "JSONDecodeError", 3),
        ("import no_such_package\n", "ModuleNotFoundError: No module named 'no_such_package'", 1),
        ("raise SystemExit(3)\n", "SystemExit: 3", 1),
    ],
)
def test_a_file_that_does_not_import(workplace: Path, text: str, message: str, line: int) -> None:
    file = workplace / "broken.py"
    file.write_text(text)
    error = refusal("broken.py")
    assert isinstance(error, UsageError)
    assert "broken.py does not import" in error.message
    assert message in error.message
    assert f"{file}, line {line})" in error.message
    again = refusal("broken:f")
    assert message in again.message


def test_a_model_error_in_a_file_keeps_its_hint(workplace: Path) -> None:
    file = workplace / "broken.py"
    file.write_text("from plait import Process\n\nclass P(Process):\n    items: list = []\n")
    error = refusal("broken.py")
    assert isinstance(error, ModelError)
    assert "process P" in error.message
    assert f"{file}, line 3)" in error.message
    assert "default_factory" in str(error.hint)


@pytest.mark.parametrize(
    ("parameters", "message", "hint"),
    [
        ({"limit": "three"}, "limit='three' does not fit: expected an int", "limit=3"),
        ({"limit": "2.5"}, "expected an int", "limit=3"),
        ({"limti": "3"}, "no parameter 'limti'", "did you mean 'limit'"),
        ({"other": "3"}, "no parameter 'other'", "limit, most"),
    ],
)
def test_wrong_parameters(counter: Path, parameters: dict[str, str], message: str, hint: str) -> None:
    error = refusal("counter.py", parameters)
    assert message in error.message
    assert hint in str(error.hint)


def test_a_missing_parameter(counter: Path) -> None:
    counter.write_text(counter.read_text().replace("limit: int = 3", "limit: int"))
    error = refusal("counter.py")
    assert "needs the parameter 'limit' (int)" in error.message
    assert "limit=3" in str(error.hint)


def test_a_function_that_raises_or_returns_something_else(workplace: Path) -> None:
    (workplace / "odd.py").write_text(
        "def broken(n: int = 0):\n    return 1 // n\n\ndef nothing():\n    pass\n\ndef untyped(n=2):\n    return n\n"
    )
    error = refusal("odd.py:broken")
    assert "broken(n=0) raised ZeroDivisionError" in error.message
    assert "odd.py, line 2" in error.message
    assert "returned None, not a System" in refusal("odd.py:nothing").message
    assert "returned a int" in refusal("odd.py:untyped", {"n": "5"}).message
    assert "expected an int" in refusal("odd.py:untyped", {"n": "x"}).message


def test_annotations_that_only_a_type_checker_sees(workplace: Path, counter: Path) -> None:
    (workplace / "lazy.py").write_text(
        "from __future__ import annotations\n"
        "from typing import TYPE_CHECKING\n"
        "import counter as base\n"
        "if TYPE_CHECKING:\n    from plait import System\n"
        "def lazy(limit=2) -> System:\n    return base.counter(limit)\n"
    )
    assert load("lazy.py", {"limit": "4"}).parameters == {"limit": 4}

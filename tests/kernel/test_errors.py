"""Errors: all are PlaitErrors, and all say what happened and then what to do."""

from __future__ import annotations

import pickle

import pytest

from plait.kernel.errors import MissingPackageError, ModelError, PlaitError, TraceError, UsageError


@pytest.mark.parametrize("kind", [ModelError, UsageError, TraceError, MissingPackageError])
def test_message_and_hint(kind: type[PlaitError]) -> None:
    assert issubclass(kind, PlaitError)
    error = kind("it is wrong", hint="make it right")
    assert str(error) == "it is wrong\nhint: make it right"
    assert (error.message, error.hint) == ("it is wrong", "make it right")
    assert str(kind("it is wrong")) == "it is wrong"
    with pytest.raises(PlaitError):
        raise error


def test_a_missing_package_is_an_import_error_too() -> None:
    """So that `except ImportError` of a user's program sees it."""
    with pytest.raises(ImportError):
        raise MissingPackageError("z3 is missing", hint="pip install z3-solver")


def test_the_hint_is_given_by_its_name() -> None:
    with pytest.raises(TypeError):
        PlaitError("message", "hint")  # type: ignore[misc]


def test_errors_travel_between_processes() -> None:
    error = pickle.loads(pickle.dumps(UsageError("it is wrong")))
    assert isinstance(error, UsageError)
    assert str(error) == "it is wrong"

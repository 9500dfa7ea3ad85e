"""Checks for the parameters of the zoo's models: an error names the wrong value and what was expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plait.kernel.errors import ModelError
from plait.model.process import Process


def at_least(least: int, **parameters: int) -> None:
    """Raise an error if a size is below `least`.

    >>> at_least(1, acceptors=3)
    """
    for name, value in parameters.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ModelError(
                f"{name}={value!r} is not a whole number of at least {least}", hint=f"give {name}={least} or more"
            )


def one_of(options: Sequence[str], **parameters: str) -> None:
    """Raise an error if a value is not one of the options.

    >>> one_of(("none", "acceptor"), faulty="none")
    """
    for name, value in parameters.items():
        if value not in options:
            raise ModelError(f"{name}={value!r} is not known", hint=f"give one of: {', '.join(options)}")


def several(roles: Mapping[type[Process], int]) -> list[type[Process]]:
    """The roles of more than one process: only these can be symmetric.

    >>> several({Process: 1})
    []
    """
    return [role for role, count in roles.items() if count > 1]

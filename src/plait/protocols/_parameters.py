"""Checks of the parameters of the zoo's models: a wrong one is refused with what would be right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plait.kernel.errors import ModelError
from plait.model.process import Process


def at_least(least: int, **parameters: int) -> None:
    """Refuse a size below `least`, naming the parameter.

    >>> at_least(1, acceptors=3)
    """
    for name, value in parameters.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ModelError(f"{name}={value!r} is not a number from {least} on", hint=f"give {name}={least} or more")


def one_of(options: Sequence[str], **parameters: str) -> None:
    """Refuse a name that is none of the options, naming the parameter.

    >>> one_of(("none", "acceptor"), faulty="none")
    """
    for name, value in parameters.items():
        if value not in options:
            raise ModelError(f"{name}={value!r} is not known", hint=f"give one of: {', '.join(options)}")


def several(roles: Mapping[type[Process], int]) -> list[type[Process]]:
    """The roles that more than one process plays: only these have something to exchange.

    >>> several({Process: 1})
    []
    """
    return [role for role, count in roles.items() if count > 1]

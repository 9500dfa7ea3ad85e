"""The interface of all checkers, and the protocols on which they run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import NamedTuple

MODELS = Path(__file__).with_name("models")


class Case(NamedTuple):
    """A protocol of the zoo with its sizes, in the order of its parameters in `PROTOCOLS`."""

    protocol: str
    sizes: tuple[int, ...]
    states: int
    """The expected number of states."""

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters for `plait check -p`."""
        names, fixed = PROTOCOLS[self.protocol]
        sizes = dict(zip(names, self.sizes, strict=True))
        if self.protocol == "raft":
            fixed = fixed | {"elections": elections(sizes["servers"], sizes.pop("candidates"), sizes.pop("terms"))}
        return {name: str(size) for name, size in sizes.items()} | fixed


PROTOCOLS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "two_phase_commit": (("resource_managers",), {"quorum": "false"}),
    "paxos": (("proposers", "acceptors", "learners"), {"quorum": "false"}),
    "lamport_mutex": (("processes", "clock_limit"), {"quorum": "false", "entries": "none"}),
    # Candidates and terms become the parameter elections.
    "raft": (("servers", "candidates", "terms", "entries"), {"quorum": "false"}),
    "register_paxos": (("clients", "servers"), {}),
}
"""For each protocol: the parameters that are sizes, and fixed values of others, so that it equals the peers' models."""


def elections(servers: int, candidates: int, terms: int) -> str:
    """The parameter `elections` of Raft if servers 1 to `candidates` may stand in each term.

    >>> elections(3, 3, 2), elections(5, 2, 1)
    ('any,any', '1+2')
    """
    each = "any" if candidates == servers else "+".join(map(str, range(1, candidates + 1)))
    return ",".join([each] * terms)


class Run(NamedTuple):
    """The command that runs a checker on a case, after everything is built."""

    command: list[str]
    cwd: Path | None = None


class Counts(NamedTuple):
    """The figures that a checker reports about its search."""

    states: int
    transitions: int
    seconds: float
    """The time of the search, as the checker reports it."""
    violated: bool = False


class Checker(ABC):
    """One model checker."""

    name: str

    @abstractmethod
    def has(self, protocol: str) -> bool:
        """Whether this checker has a model of the protocol."""

    @abstractmethod
    def version(self) -> str:
        """Its name and version. Raises `MissingError` if it is not installed."""

    @abstractmethod
    def prepare(self, case: Case, workers: int, folder: Path) -> Run:
        """Build everything that the run needs. Raises `FailedError` if that fails."""

    @abstractmethod
    def read(self, output: str, code: int) -> Counts:
        """Parse its output. Raises `FailedError` if the search was not complete."""

"""What all checkers have in common, and the protocols that they are given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import NamedTuple

MODELS = Path(__file__).with_name("models")


class Case(NamedTuple):
    """A protocol of the zoo with its sizes, in the order of the parameters in `PROTOCOLS`."""

    protocol: str
    sizes: tuple[int, ...]
    states: int
    """How many there are."""

    @property
    def parameters(self) -> dict[str, str]:
        """As `plait check -p` takes them."""
        names, fixed = PROTOCOLS[self.protocol]
        return dict(zip(names, map(str, self.sizes), strict=True)) | fixed


PROTOCOLS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "two_phase_commit": (("resource_managers",), {"quorum": "false"}),
    "paxos": (("proposers", "acceptors", "learners"), {"quorum": "false"}),
    "lamport_mutex": (("processes", "clock_limit"), {"quorum": "false", "entries": "none"}),
    "register_paxos": (("clients", "servers"), {}),
}
"""The parameters of each that are sizes, and the others that make it what the models for the peers state."""


class Run(NamedTuple):
    """How to start a checker on a case: everything is built."""

    command: list[str]
    cwd: Path | None = None


class Counts(NamedTuple):
    """What a checker reports about its search."""

    states: int
    transitions: int
    seconds: float
    """Of its search, by its own account."""
    violated: bool = False


class Checker(ABC):
    """One model checker."""

    name: str

    @abstractmethod
    def has(self, protocol: str) -> bool:
        """Whether there is a model of the protocol for it."""

    @abstractmethod
    def version(self) -> str:
        """Which one it is; a `MissingError` if it is not installed."""

    @abstractmethod
    def prepare(self, case: Case, workers: int, folder: Path) -> Run:
        """Build what has to be built, in a new folder if it needs one; a `FailedError` if that does not work."""

    @abstractmethod
    def read(self, output: str, code: int) -> Counts:
        """What its output says; a `FailedError` if it did not search everything."""

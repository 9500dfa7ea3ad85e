"""The partitioning array: the second phase of Algorithm 1 (Saissi 2019, section 2.3.1), and classes (section 2.3.2).

Each transaction gets a *first key*, which is one of its parameters. An operation executes at the server that the value
of this parameter is mapped to. An id that a server generates is mapped to this server, so it is also a key, at no
cost. A clause is *local* if it forces a key of the writer to be equal to a key of the other transaction: both
operations then execute at one server. A transaction is local if all clauses in which it writes are local. Reads need
no token.

A transaction may have a *second key* and be `local/global`. An operation is local if both keys are mapped to one
server, and global otherwise. It always executes at the server of its first key, so other transactions can rely on the
first key only.

The cost is the weight of the operations that need the token. A global transaction counts with its whole weight. A
local/global one counts with the share 1 - 1/servers, as if its keys were independent. Between arrays of equal cost, the
published cost decides (the weights of both sides of each remaining conflict), then the number of keys.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Sequence
from typing import Literal

from plait.gyro.conflicts import Clause, Equal
from plait.gyro.sql.terms import Parameter
from plait.gyro.transactions import Key, Transaction

Class = Literal["local", "global", "local/global"]
Choice = tuple[str, ...]
"""Names of parameters: the first key, and an optional second key. Empty: any server."""
Cost = tuple[float, float, int]
UNIT = 1_000_000_000
"""Weights count as multiples of 1 / UNIT."""
_ORDER: tuple[Class, ...] = ("local", "local/global", "global")


@dataclasses.dataclass(frozen=True)
class Partitioning:
    """An array of keys, the classes that follow from it, and how it was found."""

    choices: tuple[Choice, ...]
    routes: tuple[Choice, ...]
    """The choices without keys of readers that make no writer local: these readers use the nearest server."""
    classes: tuple[Class, ...]
    remaining: tuple[Clause, ...]
    """Clauses that are not local."""
    cost: Cost
    exhaustive: bool
    arrays: int
    """The number of all arrays."""
    tried: int
    """The number of arrays, complete or partial, that the search tried."""


class Problem:
    """Transactions and their clauses, indexed for the evaluation of many arrays."""

    def __init__(self, transactions: Sequence[Transaction], clauses: Sequence[Clause], servers: int) -> None:
        self.transactions = transactions
        self.clauses = clauses
        self.share = 1 - 1 / servers
        self.weights = [t.weight for t in transactions]
        self._between: dict[tuple[int, int], dict[Equal, Clause]] = {}
        """For each pair of a writer and another transaction: clauses that force different keys to be equal."""
        for clause in clauses:
            self._between.setdefault((clause.writer, clause.other), {}).setdefault(clause.equal, clause)
        self.options = [self._options(i) for i in range(len(transactions))]
        self._generated: list[frozenset[Key]] = [frozenset(t.generated) for t in transactions]
        self._known: dict[tuple[int, Choice], frozenset[Key]] = {}
        self._verdicts: dict[tuple[int, int, Choice, Choice], Class] = {}

    def _options(self, number: int) -> list[Choice]:
        """The possible keys of a transaction: parameters that some clause forces to be equal to a key of the other.

        A parameter is left out if another parameter helps with all its clauses: it cannot make an array cheaper.
        """
        uses: dict[str, set[object]] = {}
        for i, clause in enumerate(self.clauses):
            for left, right in clause.equal:
                if clause.writer == clause.other == number:
                    if left == right and isinstance(left, Parameter):
                        uses.setdefault(left.name, set()).add((i, "both"))
                        continue
                    for mine, role, theirs in ((left, "writer", right), (right, "other", left)):
                        if isinstance(mine, Parameter):
                            uses.setdefault(mine.name, set()).add((i, role, theirs))
                elif clause.writer == number and isinstance(left, Parameter):
                    uses.setdefault(left.name, set()).add((i, "writer", right))
                elif clause.other == number and isinstance(right, Parameter):
                    uses.setdefault(right.name, set()).add((i, "other", left))
        ordered = [n for n in self.transactions[number].parameters if n in uses]
        for name in reversed(ordered.copy()):
            if any(other != name and uses[name] <= uses[other] for other in ordered):
                ordered.remove(name)
        choices: list[Choice] = [(n,) for n in ordered] or [()]
        if self.transactions[number].writes and not self.transactions[number].refusals:
            choices += list(itertools.permutations(ordered, 2))
        return choices

    def least(self) -> tuple[list[Class], set[tuple[int, int]]]:
        """A lower bound for all arrays: the best class of each transaction, and the conflicts that always remain."""
        classes: list[Class] = ["local"] * len(self.options)
        remaining: set[tuple[int, int]] = set()
        for writer, other in self.pairs:
            both = [(c, c) for c in self.options[writer]] if writer == other else None
            theirs = dict.fromkeys(c[:1] for c in self.options[other])
            choices = both or itertools.product(self.options[writer], theirs)
            best: Class = "global"
            for choice in choices:
                best = min(best, self.pair(writer, other, *choice), key=_ORDER.index)
                if best == "local":
                    break
            classes[writer] = worse(classes[writer], best)
            if best != "local":
                remaining.add((min(writer, other), max(writer, other)))
        return classes, remaining

    @property
    def arrays(self) -> int:
        total = 1
        for choices in self.options:
            total *= len(choices)
        return total

    def pair(self, writer: int, other: int, mine: Choice, theirs: Choice) -> Class:
        """The class of the writer with respect to all clauses between two transactions."""
        key = writer, other, mine, theirs
        found = self._verdicts.get(key)
        if found is None:
            found = "local"
            for clause in self._between.get((writer, other), {}).values():
                found = worse(found, self.clause_class(clause, mine, theirs))
                if found == "global":
                    break
            self._verdicts[key] = found
        return found

    def clause_class(self, clause: Clause, mine: Choice, theirs: Choice) -> Class:
        """The class of the writer with respect to one clause.

        `local`: both operations execute at one server. `local/global`: they do if the two keys of the writer are mapped
        to one server.
        """
        if not clause.equal:
            return "global"
        homes, others = self._homes(clause.writer, mine[:1]), self._homes(clause.other, theirs[:1])
        if any(left in homes and right in others for left, right in clause.equal):
            return "local"
        second = {Parameter(n) for n in mine[1:]}
        if any(left in second and right in others for left, right in clause.equal):
            return "local/global"
        return "global"

    def _homes(self, number: int, first: Choice) -> frozenset[Key]:
        """The keys whose server executes an operation."""
        found = self._known.get((number, first))
        if found is None:
            found = self._known[number, first] = self._generated[number] | {Parameter(n) for n in first}
        return found

    def classes(self, choices: Sequence[Choice]) -> list[Class]:
        """The class of each transaction with these keys."""
        found: list[Class] = ["local"] * len(choices)
        for writer, other in self.pairs:
            found[writer] = worse(found[writer], self.pair(writer, other, choices[writer], choices[other]))
        return found

    def price(self, classes: Sequence[Class]) -> float:
        """The weight of the operations that need the token."""
        shares = {"local": 0.0, "global": 1.0, "local/global": self.share}
        return round(sum(w * shares[c] for w, c in zip(self.weights, classes, strict=True)), 9)

    def cost(self, choices: Sequence[Choice]) -> Cost:
        """The price, the cost of Saissi 2019, and the number of keys."""
        remaining = {(min(p), max(p)) for p in self.pairs if self.pair(*p, choices[p[0]], choices[p[1]]) != "local"}
        return self.price(self.classes(choices)), self.charge(remaining), sum(len(c) for c in choices)

    def charge(self, pairs: set[tuple[int, int]]) -> float:
        """The cost of Saissi 2019 of the remaining conflicts."""
        return sum(map(self.units, pairs)) / UNIT

    def units(self, pair: tuple[int, int]) -> int:
        """The cost of one remaining conflict as a whole number: a search adds and subtracts it many times."""
        return round((self.weights[pair[0]] + self.weights[pair[1]]) * UNIT)

    @property
    def pairs(self) -> Iterable[tuple[int, int]]:
        """Pairs of a writer and another transaction with at least one clause."""
        return self._between

    def partitioning(self, choices: Sequence[Choice], *, exhaustive: bool, tried: int) -> Partitioning:
        """The Partitioning with these keys."""
        classes = self.classes(choices)
        tidy = [c if k == "local/global" else c[:1] for c, k in zip(choices, classes, strict=True)]
        routes = tidy
        for i, transaction in enumerate(self.transactions):
            free = [*routes[:i], (), *routes[i + 1 :]]
            if transaction.read_only and self.classes(free) == classes:
                routes = free
        remaining = [c for c in self.clauses if self.clause_class(c, tidy[c.writer], tidy[c.other]) != "local"]
        return Partitioning(
            tuple(tidy),
            tuple(routes),
            tuple(classes),
            tuple(remaining),
            self.cost(tidy),
            exhaustive,
            self.arrays,
            tried,
        )


def worse(one: Class, other: Class) -> Class:
    """The class that needs the token more often."""
    return max(one, other, key=_ORDER.index)

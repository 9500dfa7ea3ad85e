"""The search for the cheapest array of keys: branch and bound, and local search if that takes too long.

The number of arrays is exponential in the number of transactions. So the search is bounded by its work, the number of
comparisons of two transactions: unlike a limit of time, this gives every server of a cluster the same array. After it,
local search improves the best array from several starting points. Changing the key of one transaction only changes the
classes of the transactions that conflict with it, so a step costs little.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from plait.gyro.conflicts import Clause
from plait.gyro.partitioning import UNIT, Choice, Class, Partitioning, Problem, worse
from plait.gyro.transactions import Transaction

BUDGET = 1_000_000
"""Branch and bound stops after this number of comparisons of two transactions, and local search after as many."""
_STARTS = 20
"""The number of random arrays from which local search begins."""


def partition(
    transactions: Sequence[Transaction], clauses: Sequence[Clause], *, servers: int = 3, budget: int = BUDGET
) -> Partitioning:
    """Find the array of least cost by branch and bound; if the budget is used up, return the best array found."""
    problem = Problem(transactions, clauses, servers)
    neighbours = _neighbours(problem)
    start = _Array(problem, neighbours, [options[0] for options in problem.options])
    start.descend()
    search = _BranchAndBound(problem, neighbours, start, budget)
    complete = search.run()
    best = search.best
    if not complete:
        generator, work = random.Random(0), start.work
        for _ in range(_STARTS):
            if work > budget:
                break
            other = _Array(problem, neighbours, [generator.choice(options) for options in problem.options])
            other.descend()
            work += other.work
            best = min(best, other.choices, key=problem.cost)
    return problem.partitioning(best, exhaustive=complete, tried=search.tried)


_Neighbours = list[list[tuple[int, int]]]
"""For each transaction: the pairs of a writer and another transaction that it is in."""


def _neighbours(problem: Problem) -> _Neighbours:
    found: _Neighbours = [[] for _ in problem.options]
    for writer, other in problem.pairs:
        found[writer].append((writer, other))
        if other != writer:
            found[other].append((writer, other))
    return found


class _Array:
    """Keys for all transactions, with what a change of one of them costs."""

    def __init__(self, problem: Problem, neighbours: _Neighbours, choices: list[Choice]) -> None:
        self.problem, self.neighbours, self.choices = problem, neighbours, choices
        self.work = 0
        self.verdicts: dict[tuple[int, int], Class] = {}
        self.counts: list[dict[Class, int]] = [{"local": 0, "local/global": 0, "global": 0} for _ in choices]
        """For each transaction: the number of conflicts by the class that they give it."""
        for writer, other in problem.pairs:
            verdict = problem.pair(writer, other, choices[writer], choices[other])
            self.verdicts[writer, other] = verdict
            self.counts[writer][verdict] += 1
        self.units = 0
        """The charge of the remaining conflicts."""
        self.open: dict[tuple[int, int], int] = {}
        """For each conflict: in how many directions it remains."""
        for pair, verdict in self.verdicts.items():
            self._count(pair, verdict != "local")
        self.cost = problem.cost(choices)

    def descend(self) -> None:
        """Local search: change one choice at a time while this reduces the cost."""
        improved = True
        while improved:
            improved = False
            for i, options in enumerate(self.problem.options):
                for option in options:
                    if option != self.choices[i] and self._improve(i, option):
                        improved = True

    def _improve(self, i: int, option: Choice) -> bool:
        """Change the choice of one transaction, if this reduces the cost."""
        before, changed = self.choices[i], self._changed(i, option)
        self._turn(changed)
        self.choices[i] = option
        price = self.problem.price([self._class(counts) for counts in self.counts])
        cost = price, self.units / UNIT, sum(map(len, self.choices))
        if cost < self.cost:
            self.cost = cost
            return True
        self.choices[i] = before
        self._turn({pair: (new, old) for pair, (old, new) in changed.items()})
        return False

    def _changed(self, i: int, option: Choice) -> dict[tuple[int, int], tuple[Class, Class]]:
        found: dict[tuple[int, int], tuple[Class, Class]] = {}
        for writer, other in self.neighbours[i]:
            mine = option if writer == i else self.choices[writer]
            theirs = option if other == i else self.choices[other]
            verdict, old = self.problem.pair(writer, other, mine, theirs), self.verdicts[writer, other]
            if verdict != old:
                found[writer, other] = old, verdict
        self.work += len(self.neighbours[i])
        return found

    def _turn(self, changed: dict[tuple[int, int], tuple[Class, Class]]) -> None:
        for pair, (old, new) in changed.items():
            self.counts[pair[0]][old] -= 1
            self.counts[pair[0]][new] += 1
            self.verdicts[pair] = new
            self._count(pair, (new != "local") - (old != "local"))

    def _count(self, pair: tuple[int, int], change: int) -> None:
        both = min(pair), max(pair)
        before = self.open.get(both, 0)
        self.open[both] = before + change
        if bool(before) != bool(before + change):
            self.units += change * self.problem.units(both)

    @staticmethod
    def _class(counts: dict[Class, int]) -> Class:
        return "global" if counts["global"] else "local/global" if counts["local/global"] else "local"


class _BranchAndBound:
    """Chooses keys for one transaction after the other; prunes where the lower bound is not below the best cost."""

    def __init__(self, problem: Problem, neighbours: _Neighbours, start: _Array, budget: int) -> None:
        self.problem, self.neighbours, self.budget = problem, neighbours, budget
        self.best, self.least = list(start.choices), start.cost
        count = len(problem.options)
        self.order = sorted(range(count), key=lambda i: (len(problem.options[i]) > 1, -len(neighbours[i])))
        self.tried = self.work = 0
        self.classes, self.remaining = problem.least()
        self.units = sum(map(problem.units, self.remaining))
        self.choices: dict[int, Choice] = {}

    def run(self) -> bool:
        """Search; False if the budget is used up."""
        return self._extend(0)

    def _extend(self, depth: int) -> bool:
        if depth == len(self.order):
            self.best = [self.choices[i] for i in range(depth)]
            self.least = self.problem.cost(self.best)
            return True
        i = self.order[depth]
        for option in self.problem.options[i]:
            self.tried += 1
            self.work += 1 + len(self.neighbours[i])
            if self.work > self.budget:
                return False
            self.choices[i] = option
            before, added = self._add(i)
            complete = not self._promising() or self._extend(depth + 1)
            for writer, verdict in before.items():
                self.classes[writer] = verdict
            self.remaining -= added
            self.units -= sum(map(self.problem.units, added))
            del self.choices[i]
            if not complete:
                return False
        return True

    def _add(self, i: int) -> tuple[dict[int, Class], set[tuple[int, int]]]:
        """Take the conflicts of a transaction into account; what was different before."""
        before: dict[int, Class] = {}
        added: set[tuple[int, int]] = set()
        for writer, other in self.neighbours[i]:
            if writer not in self.choices or other not in self.choices:
                continue
            verdict = self.problem.pair(writer, other, self.choices[writer], self.choices[other])
            if verdict == "local":
                continue
            now = worse(self.classes[writer], verdict)
            if now != self.classes[writer]:
                before.setdefault(writer, self.classes[writer])
                self.classes[writer] = now
            pair = min(writer, other), max(writer, other)
            if pair not in self.remaining:
                self.remaining.add(pair)
                added.add(pair)
                self.units += self.problem.units(pair)
        return before, added

    def _promising(self) -> bool:
        price = self.problem.price(self.classes)
        return (price, self.units / UNIT) < self.least[:2]

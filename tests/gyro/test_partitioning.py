"""The array of keys is the cheapest: compared with all arrays, by the definitions."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plait.gyro.analysis import read
from plait.gyro.conflicts import Clause, conflicts
from plait.gyro.search import partition
from plait.gyro.solver import Solver
from plait.gyro.sql.terms import Generated, Parameter
from plait.gyro.transactions import Transaction
from tests.gyro.oracle import Application
from tests.gyro.random_applications import applications, double_keyed

QUIET = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]
SERVERS = 3


def problem(application: Application, folder: Path) -> tuple[list[Transaction], list[Clause]]:
    file = folder / "application.sql"
    file.write_text(application.sql)
    _, transactions = read(file, None, ids=application.ids)  # type: ignore[arg-type]
    return transactions, conflicts(transactions, Solver())


def price(transactions: list[Transaction], clauses: list[Clause], array: tuple[tuple[str, ...], ...]) -> float:
    """The weight of operations that need the token, transaction by transaction."""
    total = 0.0
    for number, transaction in enumerate(transactions):
        share = 0.0
        for clause in (c for c in clauses if c.writer == number):
            mine = [Parameter(n) for n in array[number]]
            theirs = [Parameter(n) for n in array[clause.other][:1]]
            pairs = [(a, b) for a, b in clause.equal if isinstance(b, Generated) or b in theirs]
            if any(isinstance(a, Generated) or a in mine[:1] for a, _ in pairs):
                continue
            share = max(share, 1 - 1 / SERVERS if any(a in mine for a, _ in pairs) else 1.0)
        total += share * transaction.weight
    return total


def arrays(transactions: list[Transaction]) -> itertools.product[tuple[tuple[str, ...], ...]]:
    choices = []
    for t in transactions:
        choices.append([(), *((n,) for n in t.parameters), *itertools.permutations(t.parameters, 2)])
    return itertools.product(*choices)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=QUIET)
@given(
    application=st.one_of(applications(), double_keyed()), weights=st.lists(st.integers(0, 3), min_size=5, max_size=5)
)
def test_it_is_the_cheapest_of_all_arrays(application: Application, weights: list[int], tmp_path: Path) -> None:
    transactions, clauses = problem(application, tmp_path)
    for transaction, weight in zip(transactions, weights, strict=False):
        transaction.weight = float(weight)
    found = partition(transactions, clauses, servers=SERVERS)
    least = min(price(transactions, clauses, array) for array in arrays(transactions))
    assert found.exhaustive
    assert abs(found.cost[0] - least) < 1e-6
    assert abs(found.cost[0] - price(transactions, clauses, found.choices)) < 1e-6
    assert abs(found.cost[0] - price(transactions, clauses, found.routes)) < 1e-6


@pytest.mark.slow
@settings(max_examples=15, deadline=None, suppress_health_check=QUIET)
@given(application=st.one_of(applications(), double_keyed()))
def test_a_search_that_is_cut_short_says_so_and_is_no_cheaper(application: Application, tmp_path: Path) -> None:
    transactions, clauses = problem(application, tmp_path)
    exact, cut = partition(transactions, clauses), partition(transactions, clauses, budget=0)
    assert not cut.exhaustive
    assert cut.cost[0] >= exact.cost[0]
    assert abs(cut.cost[0] - price(transactions, clauses, cut.choices)) < 1e-6


def dense(count: int) -> str:
    """Transactions that nearly all conflict with each other: updates and queries of few tables by any column."""
    generator = random.Random(1)
    lines = ["schema: |"]
    columns = "id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, v INTEGER"
    lines += [f"  CREATE TABLE t{n} ({columns});" for n in range(8)] + ["transactions:"]
    for number in range(count):
        lines += [f"  op{number}:", "    parameters: [p, q, r, s]", "    statements:"]
        for _ in range(4):
            where = f"WHERE {generator.choice(['id', 'a', 'b'])} = :{generator.choice('pqrs')}"
            table = f"t{generator.randrange(8)}"
            write = generator.random() < 0.6
            lines.append(f"      - {f'UPDATE {table} SET v = v + 1' if write else f'SELECT v FROM {table}'} {where}")
    return "\n".join(lines)


@pytest.mark.slow
def test_many_dense_transactions_have_an_answer_that_no_single_key_improves(tmp_path: Path) -> None:
    file = tmp_path / "dense.yaml"
    file.write_text(dense(60))
    _, transactions = read(file, None)
    clauses = conflicts(transactions, Solver())
    found = partition(transactions, clauses, servers=SERVERS, budget=50_000)
    assert not found.exhaustive
    assert abs(found.cost[0] - price(transactions, clauses, found.choices)) < 1e-6
    generator = random.Random(2)
    for _ in range(20):
        number = generator.randrange(len(transactions))
        other = (generator.choice(transactions[number].parameters),)
        changed = (*found.choices[:number], other, *found.choices[number + 1 :])
        assert price(transactions, clauses, changed) >= found.cost[0] - 1e-6

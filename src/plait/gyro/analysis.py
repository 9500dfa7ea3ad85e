"""Operation partitioning (Saissi 2019, section 2.3): all steps from an application to its Classification."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from plait.gyro.advice import advise
from plait.gyro.conflicts import Clause, conflicts
from plait.gyro.partitioning import Partitioning, Problem
from plait.gyro.search import BUDGET, partition
from plait.gyro.solver import Solver
from plait.gyro.source.listing import read_sql, read_yaml
from plait.gyro.source.modules import locate, read_python
from plait.gyro.sql.entries import Entry
from plait.gyro.sql.schema import Dialect, Schema, parse_schema
from plait.gyro.sql.statements import Ids
from plait.gyro.sql.terms import Parameter
from plait.gyro.transactions import Transaction, settle
from plait.kernel.classification import FORMAT, Access, Blocker, Classification, Conflict, Operation
from plait.kernel.errors import Argument, UsageError
from plait.kernel.extras import needs

with needs("gyro"):
    import yaml


def analyze(
    application: str | Path,
    *,
    schema: str | Path | None = None,
    weights: dict[str, float] | str | Path | None = None,
    dialect: Dialect = "sqlite",
    ids: Ids = "server",
    servers: int = 3,
    budget: int = BUDGET,
    tell: Callable[[str], None] = lambda _: None,
) -> Classification:
    """Classify the transactions of an application: a Python file or package, or a YAML or SQL file that lists them.

    >>> found = analyze("examples/gyro/store.py")
    >>> {o.name: o.classed for o in found.operations}
    {'create': 'local', 'add': 'local', 'order': 'global'}
    """
    begin = time.perf_counter()
    if servers < 2:
        raise UsageError((Argument("servers", servers), ": expected at least 2"), hint="partitioning needs two servers")
    _known, transactions = read(application, schema, dialect=dialect, ids=ids)
    warnings = _weigh(transactions, weights)
    return classify(
        str(application),
        transactions,
        servers=servers,
        ids=ids,
        budget=budget,
        tell=tell,
        begin=begin,
        warnings=warnings,
    )


def read(
    application: str | Path, schema: str | Path | None, *, dialect: Dialect = "sqlite", ids: Ids = "server"
) -> tuple[Schema, list[Transaction]]:
    """Read the schema and the transactions of an application."""
    path = locate(str(application))
    given: Schema | None = None
    if schema is not None:
        try:
            given = parse_schema(Path(schema).read_text(encoding="utf-8"), dialect=dialect, source=str(schema))
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"the schema {schema} cannot be read: {error}", hint="give a file with DDL") from None
    suffix = path.suffix.lower()
    reader: Callable[..., tuple[Schema, list[Transaction]]] = read_python
    if path.is_dir() or suffix == ".py":
        pass
    elif suffix in (".yaml", ".yml"):
        reader = read_yaml
    elif suffix == ".sql":
        reader = read_sql
    else:
        raise UsageError(
            f"{path}: expected a Python file, a package, a .yaml or a .sql file", hint="see docs/guides/gyro.md"
        )
    known, transactions = reader(path, given, dialect=dialect, ids=ids)
    if not transactions:
        raise UsageError(
            f"{path} has no transactions",
            hint="add a public function that executes SQL, or list transactions in a .yaml or .sql file",
        )
    settle(transactions, known)
    names = [t.name for t in transactions]
    if twice := sorted({n for n in names if names.count(n) > 1}):
        raise UsageError(
            f"{path}: two transactions have the name {twice[0]}", hint="rename one, or list transactions in __all__"
        )
    return known, transactions


def classify(
    application: str,
    transactions: Sequence[Transaction],
    *,
    servers: int = 3,
    ids: Ids = "server",
    budget: int = BUDGET,
    tell: Callable[[str], None] = lambda _: None,
    begin: float | None = None,
    warnings: Sequence[str] = (),
) -> Classification:
    """Run Algorithm 1; return the class of each transaction with its reasons."""
    begin = time.perf_counter() if begin is None else begin
    solver = Solver()
    clauses = conflicts(transactions, solver, tell=tell)
    tell("partitioning")
    found = partition(transactions, clauses, servers=servers, budget=budget)
    notes = list(warnings)
    for transaction in transactions:
        notes += [f"{r.place}: the SQL of {transaction.name} is not known: {r.reason}" for r in transaction.refusals]
    return Classification(
        application,
        [_operation(i, transactions, found) for i in range(len(transactions))],
        _conflicts(transactions, clauses, found, servers),
        found.cost[0],
        found.cost[1],
        servers,
        ids,
        found.exhaustive,
        found.arrays,
        found.tried,
        solver.questions,
        time.perf_counter() - begin,
        notes,
        FORMAT,
    )


def _weigh(transactions: Sequence[Transaction], weights: dict[str, float] | str | Path | None) -> list[str]:
    if weights is None:
        return []
    source, given = "the weights", weights
    if isinstance(weights, str | Path):
        source = str(weights)
        try:
            given = yaml.safe_load(Path(weights).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            detail = " ".join(str(error).split())
            raise UsageError(
                f"{source} cannot be read: {detail}", hint="give a file with lines like `order: 3`"
            ) from None
    if not isinstance(given, dict):
        raise UsageError(f"{source}: expected a number for each transaction", hint="write lines like `order: 3`")
    names = {t.name for t in transactions}
    for name, weight in given.items():
        if name not in names:
            raise UsageError(f"{source}: no transaction {name}", hint=f"transactions: {', '.join(sorted(names))}")
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not math.isfinite(weight) or weight < 0:
            raise UsageError(f"{source}: {name}: {weight!r} is not a weight", hint="give a finite number of at least 0")
    for transaction in transactions:
        transaction.weight = float(given.get(transaction.name, transaction.weight))
    missing = [t.name for t in transactions if t.name not in given]
    return [f"{source} has no weight for {', '.join(missing)}: the weight is 1"] if missing else []


def _operation(number: int, transactions: Sequence[Transaction], found: Partitioning) -> Operation:
    transaction = transactions[number]
    places = [s.place for s in transaction.statements]

    def access(entry: Entry) -> Access:
        place = places[entry.statement] if entry.statement < len(places) else transaction.place
        return Access(
            entry.table, sorted(entry.attributes), str(entry.condition), entry.role, place, entry.digest
        )  # fmt: skip

    return Operation(
        name=transaction.name,
        parameters=list(transaction.parameters),
        classed=found.classes[number],
        keys=list(found.routes[number]),
        generated=sorted({g.source for g in transaction.generated}),
        read_only=transaction.read_only,
        weight=transaction.weight,
        place=transaction.place,
        statements=[" ".join(s.sql.split()) for s in transaction.statements],
        reads=[access(e) for e in transaction.reads],
        writes=[access(e) for e in transaction.writes],
        refused=[f"{r.reason} ({r.place})" for r in transaction.refusals],
        remedies=[r.remedy for r in transaction.refusals],
        blockers=_blockers(number, transactions, found),
        kinds={
            k.name: v for k, v in transaction.kinds.items() if isinstance(k, Parameter) and v not in (None, "other")
        },
        columns={k: columns for k, columns in transaction.columns.items() if k in found.routes[number]},
    )


def _blockers(number: int, transactions: Sequence[Transaction], found: Partitioning) -> list[Blocker]:
    """Why a transaction is not local: one clause for each other transaction, table and kind of access."""
    blockers: dict[tuple[int, str, bool], Blocker] = {}
    for clause in found.remaining:
        if clause.writer != number:
            continue
        key = (clause.other, clause.write.table, clause.written)
        attributes = sorted(clause.attributes)
        if key in blockers:
            old = blockers[key]
            if len(old.attributes) >= len(attributes):
                continue
        writer, other = transactions[number], transactions[clause.other]
        problem_second = found.choices[number][1:]
        blockers[key] = Blocker(
            other.name,
            "writes" if clause.written else "reads",
            clause.write.table,
            attributes,
            str(clause.write.condition),
            str(clause.access.condition),
            _place(writer, clause.write),
            _place(other, clause.access),
            advise(clause, transactions, found.choices),
            bool(problem_second) and found.classes[number] == "local/global",
        )
    return list(blockers.values())


def _place(transaction: Transaction, entry: Entry) -> str:
    statements = transaction.statements
    return statements[entry.statement].place if entry.statement < len(statements) else transaction.place


def _conflicts(
    transactions: Sequence[Transaction], clauses: Sequence[Clause], found: Partitioning, servers: int
) -> list[Conflict]:
    problem = Problem(transactions, clauses, servers)
    grouped: dict[tuple[int, int, bool], list[Clause]] = {}
    for clause in clauses:
        grouped.setdefault((clause.writer, clause.other, clause.written), []).append(clause)
    shown = []
    for (writer, other, written), group in grouped.items():
        attributes = sorted({f"{c.write.table}.{a}" for c in group for a in c.attributes})
        local = all(problem.clause_class(c, found.choices[writer], found.choices[other]) == "local" for c in group)
        by = sorted({f"{left} = {right}" for c in group for left, right in c.equal}) if local else []
        shown.append(
            Conflict(
                transactions[writer].name,
                transactions[other].name,
                "writes" if written else "reads",
                attributes,
                local,
                by,
            )
        )
    return shown

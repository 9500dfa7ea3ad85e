"""The choice of the solver: Z3, bitwuzla (bit-vectors only) or cvc5. The others can cross-check Z3."""

from __future__ import annotations

import importlib
import time
from typing import Any, Literal

from plait.bmc.encoding import z3_solver
from plait.bmc.encoding.witness import Model
from plait.bmc.encoding.z3_solver import Answer
from plait.kernel.errors import Argument, MissingPackageError, UsageError

Solver = Literal["z3", "bitwuzla", "cvc5"]


def decide(
    text: str, solver: Solver, *, timeout: float | None = None, memory: int | None = None, seed: int = 0
) -> Answer:
    """Decide a formula with one of the solvers. Only Z3 uses the seed."""
    if solver == "z3":
        return z3_solver.solve(text, timeout=timeout, memory=memory, seed=seed)
    try:
        module = importlib.import_module(solver)
    except ImportError:
        raise MissingPackageError(
            f"the solver {solver} is not installed", hint="pip install 'plait[solvers]'"
        ) from None
    start = time.process_time()
    outcome, model = (_bitwuzla if solver == "bitwuzla" else _cvc5)(module, text, timeout)
    answers: dict[str, z3_solver.Outcome] = {"sat": "sat", "unsat": "unsat", "unknown": "timeout"}
    return Answer(answers[outcome], model, time.process_time() - start, outcome)


def _bitwuzla(module: Any, text: str, timeout: float | None) -> tuple[str, Model]:
    if "(set-logic QF_BV)" not in text:
        raise UsageError(
            "bitwuzla supports only bit-vectors, but a number of this program has no bound",
            hint=("set ", Argument("width", 16), " or ", Argument("solver", "z3")),
        )
    manager, options = module.TermManager(), module.Options()
    options.set(module.Option.PRODUCE_MODELS, True)
    if timeout is not None:
        options.set(module.Option.TIME_LIMIT_PER, max(1, int(timeout * 1000)))
    parser = module.Parser(manager, options)
    parser.parse(text.replace("(check-sat)", ""), True, False)
    bitwuzla = parser.bitwuzla()
    found = str(bitwuzla.check_sat())
    model: Model = {}
    if found == "sat":
        for symbol in parser.get_declared_funs():
            value = bitwuzla.get_value(symbol).value(10)
            model[str(symbol).strip("|")] = value if isinstance(value, bool) else int(value)
    return found, model


def _cvc5(module: Any, text: str, timeout: float | None) -> tuple[str, Model]:
    manager = module.TermManager()
    solver = module.Solver(manager)
    solver.setOption("produce-models", "true")
    if timeout is not None:
        solver.setOption("tlimit-per", str(max(1, int(timeout * 1000))))
    parser = module.InputParser(solver)
    parser.setStringInput(module.InputLanguage.SMT_LIB_2_6, text, "bmc")
    symbols = parser.getSymbolManager()
    found = "unknown"
    while not (command := parser.nextCommand()).isNull():
        said = str(command.invoke(solver, symbols)).strip()
        found = said if said in ("sat", "unsat", "unknown") else found
    model: Model = {}
    if found == "sat":
        for symbol in symbols.getDeclaredTerms():
            value = solver.getValue(symbol)
            name = str(symbol).strip("|")
            if value.isBooleanValue():
                model[name] = value.getBooleanValue()
            elif value.isBitVectorValue():
                model[name] = int(value.getBitVectorValue(10))
            elif value.isIntegerValue():
                model[name] = value.getIntegerValue()
    return found, model

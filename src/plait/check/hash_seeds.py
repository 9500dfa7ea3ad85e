"""Comparing answers with those of other interpreters, which have other hash seeds and other addresses.

Code of a model may use `hash`, `id`, or C code that iterates a set in its own way. One interpreter cannot show whether the
results depend on its hash seed. If the sample (`plait.check.tabulate.sample`) has met such code, some interpreters with
fixed seeds load the same model by its target, and answer the sampled questions. The seeds are fixed, so that what they
find does not depend on the seed of this interpreter, as far as their answers differ from each other.
"""

from __future__ import annotations

import gc
import importlib
import marshal
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from plait._native import Failure
from plait.check.live.search import flattened
from plait.check.tabulate.codec import kind_of, require_users
from plait.check.tabulate.sample import Question
from plait.check.tabulate.steprun import Outcome
from plait.check.tabulate.tabulation import Tabulation, comparable
from plait.kernel.deadline import Deadline
from plait.kernel.errors import ModelError
from plait.kernel.places import text_of
from plait.model.loading.loader import load, reader_module
from plait.model.properties import Property
from plait.model.system import System, selected

SEEDS = (1, 2, 3, 4)
"""With two possible answers, each of which is as likely, all of them agree in one case of eight."""
MOST_SECONDS = 120
"""Interpreters that take longer are ended. The verdict then has a warning."""
_HINT = "a model must not depend on hash(), id(), or the order of a set inside a library: compare values, or sort"


class _NotComparableError(Exception):
    """The other interpreters cannot answer."""


def compare(tabulation: Tabulation, checked: Sequence[Property], clock: Deadline, interrupted: bool) -> list[str]:
    """Compare the sample, if that is needed. A difference is a model error; the result is a list of warnings."""
    sample, system = tabulation.sample, tabulation.system
    if not sample.uses:
        return []
    place, what = next(iter(sample.uses.items()))
    if system.target is None:
        for place, what in sample.uses.items():
            if what.endswith("()"):
                raise ModelError(
                    f"{place} uses {what}, whose result differs from one interpreter to another",
                    hint=f"{_HINT}; Plait compares the results of several interpreters if it can load the model again: "
                    "check it by a function that returns the System, with `plait check FILE`",
                )
        return [_warning(place, what, "the System was not made by a function that Plait can load")]
    try:
        if clock.over or interrupted:
            raise _NotComparableError("the search was ended early")
        answers = _asked(system, [p.name for p in checked], tabulation, clock)
    except _NotComparableError as reason:
        return [_warning(place, what, str(reason))]
    for other in answers:
        for question, answer in zip(sample.questions, other, strict=True):
            _require_equal(tabulation, question, answer)
    return []


def _warning(place: str, what: str, reason: str) -> str:
    return f"{place} uses {what}, whose result may depend on the hash seed, and this was not tested: {reason}"


def _require_equal(tabulation: Tabulation, question: Question, answer: Any) -> None:
    place, asked, here = question
    kind, failed = asked[0], isinstance(answer, str)
    if answer == ([comparable(o) for o in here] if kind == "step" else here):
        return
    if failed:
        message = f"{place} is not a function of its inputs: with another hash seed, it gave an error: {answer}"
    elif kind == "step":
        again = [Outcome._make((*one[:-1], _failure(one[-1], here[i : i + 1]))) for i, one in enumerate(answer)]
        message = tabulation.difference(asked[1], asked[3], here, again).message
    else:
        of = "the state" if kind == "property" else "its inputs"
        shown = f": it returned {here} and then {answer}" if isinstance(here, bool) else ""
        message = f"{place} is not a function of {of}{shown}"
    used = tabulation.sample.uses.get(place)
    uses = f"; it uses {used}" if used else ""
    raise ModelError(f"{message} (the second time in an interpreter with another hash seed{uses})", hint=_HINT)


def _failure(kind: tuple[Any, ...] | None, here: list[Outcome]) -> Failure | None:
    """The failure of this kind, for a message: the one of this interpreter if it is the same."""
    if here and kind_of(here[0].failure) == kind:
        return here[0].failure
    return None if kind is None else Failure(kind[0], kind[-1] or "an assertion")


def _asked(system: System, checked: list[str], tabulation: Tabulation, clock: Deadline) -> Iterable[list[Any]]:
    """The answers of each of the other interpreters."""
    questions = [question.asked for question in tabulation.sample.questions]
    request = (system.target, system.parameters, checked, _shape(system), tabulation.codec.known(), questions)
    try:
        given = marshal.dumps((str(Path.cwd()), reader_module(system.target or ""), request))
    except ValueError:
        raise _NotComparableError("its parameters cannot be sent to another interpreter") from None
    paths = os.pathsep.join(str(Path(path).absolute()) for path in sys.path)
    limit = Deadline(MOST_SECONDS if clock.left is None else min(MOST_SECONDS, clock.left))
    others: list[subprocess.Popen[bytes]] = []
    try:
        for seed in SEEDS:
            other = subprocess.Popen(
                [sys.executable, "-P", "-c", "from plait.check.hash_seeds import main; main()"],
                env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": paths},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            others.append(other)
        answers = []
        for other in others:
            out, _ = other.communicate(given, timeout=limit.left)
            answer = marshal.loads(out) if out else "the other interpreter ended early"
            if isinstance(answer, str):
                raise _NotComparableError(answer)
            answers.append(answer)
        return answers
    except subprocess.TimeoutExpired:
        raise _NotComparableError("the time was over") from None
    except KeyboardInterrupt:
        raise _NotComparableError("Ctrl-C came") from None
    except (OSError, EOFError, ValueError, TypeError) as error:
        raise _NotComparableError(f"another interpreter could not be used ({error})") from None
    finally:
        for other in others:
            with suppress(OSError):
                other.kill()
            other.wait()
            for pipe in (other.stdin, other.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()


def _shape(system: System) -> list[tuple[str, str, list[str]]]:
    """Classes and handlers, by which two interpreters notice that they talk about different systems."""
    classes = [(c.__module__, c.__qualname__, [h.name for h in c.__plait_handlers__]) for c in system.classes]
    return [*classes, *((type(m).__module__, type(m).__qualname__, []) for m in system.monitors)]


# -- in the other interpreter ----------------------------------------------------------------------------------------


def main() -> None:
    """Read a request from stdin, and write the answers to stdout."""
    out = os.dup(1)
    os.dup2(2, 1)  # what the model prints
    folder, reader, request = marshal.loads(sys.stdin.buffer.read())
    os.chdir(folder)
    try:
        if reader is not None:
            importlib.import_module(reader)
        answer = _answers(*request)
    except Exception as error:
        answer = f"the model could not be loaded again ({error})"
    with os.fdopen(out, "wb") as file:
        file.write(marshal.dumps(answer))


def _answers(
    target: str,
    parameters: dict[str, Any],
    checked: list[str],
    shape: list[tuple[str, str, list[str]]],
    classes: list[str],
    questions: list[tuple[Any, ...]],
) -> list[Any] | str:
    system = load(target, parameters, parse=False)
    if _shape(system) != shape:
        return "the target gives another system"
    tabulation = Tabulation(flattened(system, selected(system, checked)))
    for cls in [c for c in gc.get_objects() if isinstance(c, type)]:
        if f"{cls.__module__}.{cls.__qualname__}" in classes:
            tabulation.codec.learn(cls)
    if missing := sorted(set(classes) - set(tabulation.codec.known())):
        return f"the model has no class {missing[0]} when it is loaded again"
    answers: list[Any] = []
    for asked in questions:
        try:
            answers.append(tabulation.answer(asked))
        except BaseException as error:
            require_users(error)
            answers.append(text_of(error))
    return answers

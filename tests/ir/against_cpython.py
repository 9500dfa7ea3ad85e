"""Executes random functions by CPython and by the virtual machine, and compares results and changed arguments."""

from __future__ import annotations

import random
import signal
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from plait._native import Codec, Machine
from plait.ir import nodes
from plait.ir.definition import _codes, _parsed
from plait.ir.program import Lowering
from plait.kernel.pid import Pid
from tests.ir.random_functions import Writer, module
from tests.ir.random_library import value
from tests.ir.values import Color, Node, system

FAILS = (TypeError, ValueError, OverflowError)


class Survey(NamedTuple):
    """What came out of a comparison."""

    calls: int
    answered: int
    """By both."""
    raised: int
    """CPython raised an exception, or the result is no value of a model."""
    bails: Counter[str]
    """Although CPython answered."""
    refused: Counter[str]
    """Functions that are not lowered."""
    differences: list[str]


def survey(seed: int, count: int, folder: Path, *, calls: int = 3, writer: type[Writer] = Writer) -> Survey:
    """Compare `count` random functions."""
    source, kinds = module(seed, count, writer)
    file = folder / f"random_{seed}.py"
    file.write_text(source, encoding="utf-8")
    names: dict[str, Any] = {"__name__": f"random_{seed}", "__file__": str(file)}
    exec(compile(source, str(file), "exec"), names)
    codec = Codec(Pid)
    lowering = Lowering(system(), codec.encode)
    node = lowering.classes.number(Node)
    numbers: dict[str, int] = {}
    for name, of in kinds.items():
        supplied = tuple((f"p{i}", None) for i in range(len(of)))
        numbers[name] = lowering.variant(names[name], supplied, None, None)
    lowering.complete()
    program = nodes.Program(
        functions=lowering.finished(),
        classes=lowering.classes.finished(),
        processes=[nodes.Process(node, "Node", i, 0) for i in range(3)],
        first_spare=3,
        handlers=[[]],
        monitors=[],
        properties=[],
        inserts=lowering.inserts,
    )
    machine = Machine(nodes.encoded(program))
    r = random.Random(seed)
    found = Survey(0, 0, 0, Counter(), Counter(), [])
    total = answered = raised = 0
    for name, of in kinds.items():
        reason = lowering.reasons.get(numbers[name])
        if reason is not None:
            found.refused[reason.construct] += 1
            continue
        for _ in range(calls):
            total += 1
            restore()
            given = [codec.encode(value(kind, r)) for kind in of]
            try:
                expected = _by_cpython(names[name], given, codec)
            except TimeoutError:  # it hardly ends
                continue
            result, after, bail = machine.call(numbers[name], given)
            if expected is None:
                raised += 1
                if bail is None:
                    found.differences.append(_shown(name, source, given, codec, "an exception", result, after))
            elif bail is not None:
                found.bails[bail] += 1
            elif (result, list(after)) != expected:
                if any(machine.call(numbers[name], given, order) != (result, after, None) for order in (1, 2, 3)):
                    found.bails["the order of a set matters"] += 1
                    continue
                found.differences.append(_shown(name, source, given, codec, expected, result, after))
            else:
                answered += 1
    _parsed.cache_clear()  # the trees of many functions take much memory
    _codes.cache_clear()
    return found._replace(calls=total, answered=answered, raised=raised)


def restore() -> None:
    """Remove attributes that a function has set to members of an enum: they would be there for all others."""
    for member in Color:
        for attribute in [name for name in vars(member) if not name.startswith("_")]:
            delattr(member, attribute)


def _stop(*_: Any) -> None:
    raise TimeoutError


def _by_cpython(function: Any, given: list[bytes], codec: Codec) -> tuple[bytes, list[bytes]] | None:
    arguments = [codec.decode(content) for content in given]
    signal.signal(signal.SIGALRM, _stop)
    signal.alarm(3)
    try:
        result = function(*arguments)
    except TimeoutError:
        raise
    except Exception:
        return None
    finally:
        signal.alarm(0)
    try:
        return codec.encode(result), [codec.encode(argument) for argument in arguments]
    except FAILS:
        return None


def _shown(name: str, source: str, given: Any, codec: Codec, expected: Any, result: Any, after: Any) -> str:
    begin = source.index(f"def {name}(")
    text = source[begin:].split("\n\n\n")[0]
    decode = codec.decode
    wanted = expected if isinstance(expected, str) else (decode(expected[0]), [*map(decode, expected[1])])
    answer = None if result is None else (decode(result), [*map(decode, after)])
    return f"{text}\narguments {[*map(decode, given)]}\nCPython   {wanted}\nmachine   {answer}\n"

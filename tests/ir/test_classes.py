"""Classes whose instances run code of the user when Python reads, sets, compares or makes them are left to CPython."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import pytest

from plait import Monitor, Pid, Process, System, action, always, check
from plait._native import Codec
from plait.ir.lower import lower
from plait.kernel.errors import ModelError


class Reading:
    def __getattribute__(self, name: str) -> Any:
        return 0 if name == "value" else object.__getattribute__(self, name)


class Missing:
    def __getattr__(self, name: str) -> Any:
        return 7


class Setting:
    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, 1 if name == "value" else value)


class Deleting:
    def __delattr__(self, name: str) -> None:
        pass


class Empty:
    def __len__(self) -> int:
        return 0


HOOKS = {
    Reading: "Reading.__getattribute__",
    Missing: "Missing.__getattr__",
    Setting: "Setting.__setattr__",
    Deleting: "Deleting.__delattr__",
}
MIXINS = {**{mixin: f"which defines {text.partition('.')[2]}" for mixin, text in HOOKS.items()}, Empty: "__len__"}


def process_with(mixin: type, *, last: bool) -> type[Process]:
    def step(self: Any) -> None:
        self.value = self.value + 2

    body = {"__annotations__": {"value": int}, "value": 0, "step": action(when=lambda self: self.value < 3)(step)}
    return type("Node", (Process, mixin) if last else (mixin, Process), body)


def reasons(system: System) -> dict[str, str]:
    return {f.label: str(f.reason or "") for f in lower(system, Codec(Pid).encode).functions}


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("mixin", MIXINS)
def test_a_process_that_runs_code_when_it_is_used(mixin: type, last: bool) -> None:
    node = process_with(mixin, last=last)
    assert MIXINS[mixin] in reasons(System([node()]))["Node.step"]


def test_a_field_that_is_a_descriptor() -> None:
    node = process_with(object, last=True)
    process = node()
    node.value = property(lambda self: 5, lambda self, value: None)  # type: ignore[attr-defined]
    assert "Node.value, a descriptor" in reasons(System([process]))["Node.step"]
    with pytest.raises(ModelError, match=r"the field Node0\.value has no value"):
        System([node()])


def test_an_ordinary_mixin_is_lowered() -> None:
    class Plain:
        def two(self) -> int:
            return 2

    assert set(reasons(System([process_with(Plain, last=True)()])).values()) == {""}


def test_a_monitor_that_runs_code_when_it_is_used() -> None:
    class Audit(Monitor):
        count: int = 0

        def observe(self, process: Pid, event: Any) -> None:
            self.count += 1

        def __getattribute__(self, name: str) -> Any:
            return object.__getattribute__(self, name)

    few = always(lambda s: s[Audit].count < 3, name="few")
    found = reasons(System([process_with(object, last=True)()], monitors=[Audit()], properties=[few]))
    assert "Audit, which defines __getattribute__" in found["Audit.observe"]
    assert "Audit, which defines __getattribute__" in found["property few"]


def test_spawning_a_process_that_is_made_by_code_of_the_user() -> None:
    class Child(Process):
        number: int = 0

        def __post_init__(self) -> None:
            self.number += 1

    class Parent(Process):
        done: bool = False

        @action(when=lambda self: not self.done)
        def start(self) -> None:
            self.spawn(Child, number=1)
            self.done = True

    @always
    def one(s: Any) -> bool:
        return all(child.number == 1 for child in s[Child])

    system = System([Parent()], spare={Child: 1}, properties=[one])
    assert "Child, which defines __post_init__" in reasons(system)["Parent.start"]
    assert check(system, native="auto").status == check(system, native="off").status == "violated"


def _as_function(self: Any) -> bool:
    return False


def _as_class() -> type:
    class Falsy:
        def __new__(cls, *_: Any) -> Any:
            return False

    return Falsy


WAYS: dict[str, Any] = {
    "a function": _as_function,
    "a property": property(lambda self: lambda: False),
    "a partial method": functools.partialmethod(_as_function),
    "a class": _as_class(),
    "a static method": staticmethod(lambda *_: False),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_record_with_a_truth_of_its_own(way: str) -> None:
    box = dataclasses.make_dataclass("Box", [("number", int)], frozen=True, namespace={"__bool__": WAYS[way]})
    start = box(1)

    class Node(Process):
        value: Any = start

        @action(when=lambda self: self.value != 0)
        def step(self) -> None:
            self.value = 1 if self.value == start else 0

    assert lower(System([Node()]), Codec(Pid).encode).classes.count(box) == 0

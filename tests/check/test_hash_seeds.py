"""What one interpreter cannot show: hashes, addresses, and sets that C code iterates in its own way."""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from plait import Process, System, action, always, check
from plait.check import hash_seeds
from plait.check.tabulate.sample import Sample
from plait.kernel.deadline import Deadline
from plait.kernel.errors import ModelError
from plait.model.loading.loader import load
from tests.support.bad_models import explained

MODEL = """
import enum, os, pickle
from dataclasses import dataclass

from plait import Message, Monitor, Process, System, action, always, on

NAMES = {"ann", "bob", "eve", "joe", "kim", "lea"}
DIES = os.environ.get("PYTHONHASHSEED") == "3"


class Color(enum.Enum):
    RED = 1


@dataclass(frozen=True)
class Key:
    name: str
    color: Color = Color.RED


class Letter(Message):
    keys: tuple[Key, ...] = ()


def by_hash(): return hash("red") % 100_003
def by_id(): return id(NAMES) % 100_003
def by_c(): return pickle.dumps(NAMES)
def by_key(): return sorted([Key("ann"), Key("bob"), Key("eve")], key=Key.__hash__)
def by_map(): return list(map(hash, ["ann", "bob"]))
def fine(): return hash("red") == hash("red"), len({Key("ann"), Key("bob")}), hash(5)
def same(): return pickle.loads(pickle.dumps(sorted(NAMES)))


WAYS = {f.__name__: f for f in (by_hash, by_id, by_c, by_key, by_map, fine, same)}


class Node(Process):
    how: str = ""
    got: object = None
    mail: Letter | None = None

    @action(when=lambda self: self.got is None)
    def go(self):
        self.got = 0
        self.send(Other.pid(0), Letter((Key("ann"), Key("bob"))))

    def read(self):
        return WAYS[self.how]()


class Other(Process):
    how: str = ""
    got: object = None

    @on(Letter)
    def take(self, m: Letter):
        self.got = [m.keys, WAYS[self.how]() if self.how else None]
        self.announce(m.keys)


class Eye(Monitor):
    how: str = ""
    seen: object = None

    def observe(self, process, event):
        self.seen = WAYS[self.how]() if self.how else event


def model(how: str = "by_hash", place: str = "step") -> System:
    here = {name: how if name == place else "" for name in ("step", "observe", "property", "guard")}

    @always
    def settled(s):
        return not here["property"] or repr(WAYS[how]()) == repr(KEPT[how])

    class Guarded(Process):
        n: int = 0

        @action(when=lambda self: self.n < 1 and (not here["guard"] or repr(WAYS[how]()) == repr(KEPT[how])))
        def up(self):
            self.n += 1

    return System([Node(), Other(how=here["step"]), Guarded()], monitors=[Eye(how=here["observe"])], properties=[settled])


KEPT = {}


def kept(how: str = "by_hash", place: str = "guard") -> System:
    with open("kept", encoding="utf-8") as file:
        KEPT[how] = eval(file.read())
    return model(how, place)


def dying(how: str = "by_hash") -> System:
    if DIES:
        os._exit(7)
    return model(how)


def changing(how: str = "by_hash") -> System:
    system = model(how)
    return System([*system.processes[:2]]) if DIES else system
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    made = tmp_path / "seeded.py"
    made.write_text(MODEL)
    return made


def built(file: Path, name: str = "model", **parameters: Any) -> System:
    return load(f"{file}:{name}", parameters, parse=False)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["by_hash", "by_c", "by_key", "by_map"])
def test_a_result_that_depends_on_the_seed_is_refused(file: Path, how: str) -> None:
    error = explained(lambda: check(built(file, how=how)), "Other.take is not a function of its inputs", "hash seed")
    assert "set got to" in error.message


@pytest.mark.slow
def test_an_address_is_refused(file: Path) -> None:
    explained(lambda: check(built(file, how="by_id")), "Other.take is not a function of its inputs", "id()")


@pytest.mark.slow
def test_monitors_are_compared(file: Path) -> None:
    explained(
        lambda: check(built(file, how="by_hash", place="observe")), "Eye.observe is not a function of", "hash seed"
    )


@pytest.mark.slow
@pytest.mark.parametrize("place", ["guard", "property"])
def test_guards_and_properties_are_compared(file: Path, place: str) -> None:
    """Their value is one bit, so they compare with the result of this interpreter, which others do not share."""
    system = built(file, how="by_c")
    Path("kept").write_text(repr(sys.modules[type(system.processes[0]).__module__].by_c()))
    words = {"guard": "the guard of Guarded.up is not a function of its inputs", "property": "property settled is not"}
    explained(lambda: check(built(file, "kept", how="by_c", place=place)), words[place], "True and then False")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["fine", "same"])
def test_what_is_the_same_everywhere_is_not_refused(file: Path, how: str) -> None:
    verdict = check(built(file, how=how))
    assert (verdict.status, verdict.warnings) == ("holds", [])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "reason"), [("dying", "ended early"), ("changing", "the target gives another system")]
)
def test_another_interpreter_that_cannot_answer_gives_a_warning(file: Path, name: str, reason: str) -> None:
    verdict = check(built(file, name, how="same"))
    assert verdict.status == "holds"
    assert [reason in warning and "not tested" in warning for warning in verdict.warnings] == [True]


def test_the_time_of_other_interpreters_is_limited(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hash_seeds, "MOST_SECONDS", 0)
    monkeypatch.setattr(hash_seeds, "SEEDS", (1,))
    verdict = check(built(file, how="by_hash"))
    assert verdict.status == "holds"
    assert ["not tested: the time was over" in warning for warning in verdict.warnings] == [True]


def test_other_interpreters_are_not_started_without_need(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(hash_seeds, "_asked", fail)
    for target in ("paxos", "echo-multicast", "raft"):
        assert not check(load(target), max_states=500).warnings


class Loose(Process):
    """A process of a System that no function makes."""

    how: Any = ""
    got: Any = None

    @action(when=lambda self: self.got is None)
    def go(self) -> None:
        if self.how == "hash":
            self.got = hash("red")
        elif self.how == "id":
            self.got = id(self.how)

    def __hash__(self) -> int:
        return hash(self.how)


NAMES = {"red", "green"}


class Pickler(Process):
    got: Any = None

    @action(when=lambda self: self.got is None)
    def go(self) -> None:
        self.got = pickle.dumps(NAMES)


def test_a_system_without_a_target() -> None:
    explained(lambda: check(System([Loose(how="hash")])), "Loose.go uses hash(), whose result differs from one interp")
    explained(lambda: check(System([Loose(how="id")])), "Loose.go")  # the second run may have shown it already
    warnings = check(System([Pickler()], properties=[always(lambda s: True)])).warnings
    assert [w for w in warnings if "Pickler.go uses the C function _pickle.dumps" in w and "not tested" in w]


def test_attributes_and_methods_with_these_names_are_fine() -> None:
    class Mild(Process):
        hash: int = 0

        @action(when=lambda self: self.hash < 1 and self.id is not None)
        def go(self) -> None:
            self.hash += 1

    verdict = check(System([Mild()], properties=[always(lambda s: all(p.id and p.hash < 2 for p in s[Mild]))]))
    assert (verdict.status, verdict.warnings) == ("holds", [])


def test_methods_of_python_that_classes_of_the_user_inherit_are_trusted() -> None:
    class Table(dict[str, int]):
        pass

    class Heir(Process):
        n: int = 0

        @action(when=lambda self: self.n < 1)
        def go(self) -> None:
            table = Table()
            table.update(a=1)
            self.n = table.setdefault("a", 2) + len(Table.fromkeys("ab").keys()) - len(Table.mro()) + 1
            type("New", (Table,), {})

    verdict = check(System([Heir()], properties=[always(lambda s: True)]))
    assert (verdict.status, verdict.warnings) == ("holds", [])


def test_what_a_garbage_collection_runs_is_not_used_by_the_model() -> None:
    """A collection may come at any time: it runs callbacks and finalizers that have nothing to do with the model."""

    class Heap(Process):
        cells: tuple[tuple[int, ...], ...] = ()

        @action(when=lambda self: len(self.cells) < 3)
        def grow(self) -> None:
            self.cells = (*self.cells, (len(self.cells),))

    def collected(phase: str, info: dict[str, int]) -> None:
        hash(phase)

    threshold = gc.get_threshold()
    gc.callbacks.append(collected)
    gc.set_threshold(1)
    try:
        verdict = check(System([Heap()], properties=[always(lambda s: True)]), native="off")
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(collected)
    assert (verdict.status, verdict.warnings) == ("holds", [])
    assert gc.isenabled()


def test_a_search_that_was_ended_starts_no_interpreters(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Tabulated:
        sample, system = Sample(), built(file)

    Tabulated.sample.uses["Node.go"] = "hash()"
    for clock, interrupted in ((Deadline(None), True), (Deadline(0.0), False)):
        told = hash_seeds.compare(Tabulated, [], clock, interrupted)  # type: ignore[arg-type]
        assert "the search was ended early" in told[0]


def test_the_answer_of_another_interpreter_that_fails_is_a_difference(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        hash_seeds, "_asked", lambda system, names, tabulation, clock: [["oh"] * len(tabulation.sample.questions)]
    )
    with pytest.raises(ModelError, match="with another hash seed, it gave an error: oh"):
        check(built(file, how="by_hash"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_the_verdict_is_the_same_for_every_seed(file: Path, seed: int) -> None:
    """Hashes and C code alternate, to save time."""
    how = ("by_hash", "by_c")[seed % 2]
    ran = subprocess.run(
        [sys.executable, "-m", "plait.cli.main", "check", f"{file}:model", "-p", f"how={how}"],
        env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "Other.take is not a function of its inputs: run twice, it set got to" in ran.stderr

"""Time: a Clock counts ticks.

    class Client(Process):
        lease: Clock = Clock(running=False)

        @action(when=lambda self: self.lease < 3)
        def work(self): ...

One tick of the system advances the running clocks of all processes. A clock has a *bound*, the largest number that the
model compares it with. Above its bound it stands still, so that there are finitely many states. This is sound because
nothing but comparisons with numbers up to the bound can be learned of a clock (docs/internals/time.md has the proof). So
every other use is refused.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NoReturn

from plait.kernel.errors import ModelError
from plait.kernel.values import Data

_HINT = "a clock can be compared with integers, reset(), started with start() and stopped with stop(); nothing else"


class tick:  # noqa: N801  # as fairness names it: weak(tick)
    """The tick of the system, for fairness: `weak(tick)` assumes that time goes on."""


class Clock:
    """A field that counts ticks: `lease: Clock = Clock()`.

    It counts while it runs. `bound` is the largest number that the model compares it with; if it is left out, Plait finds
    it in the source. Comparisons with larger numbers are an error.

    >>> clock = Clock(bound=5)
    >>> clock < 5, clock.running
    (True, True)
    """

    __plait_record__ = ("_ticks", "_running", "_bound")
    """The attributes that are part of a state. It is no dataclass, whose fields `dataclasses.asdict` would show."""

    _ticks: int
    _running: bool
    _bound: int | None

    def __init__(self, *, running: bool = True, bound: int | None = None) -> None:
        if not isinstance(running, bool):
            raise ModelError(f"Clock(running={running!r}): expected True or False", hint="Clock() runs from the start")
        if bound is not None and (isinstance(bound, bool) or not isinstance(bound, int) or bound < 0):
            raise ModelError(
                f"Clock(bound={bound!r}): expected a number of ticks",
                hint="give the largest number that the model compares the clock with",
            )
        self._ticks, self._running, self._bound = 0, running, bound

    def __init_subclass__(cls, **kwargs: Any) -> None:
        raise ModelError(f"{cls.__name__} is a subclass of Clock", hint="use Clock itself")

    @property
    def running(self) -> bool:
        """Whether it counts."""
        return self._running

    def reset(self) -> None:
        """Set it to zero. It runs, or not, as before."""
        self._ticks = 0

    def start(self) -> None:
        """Let it count, from where it is."""
        self._running = True

    def stop(self) -> None:
        """Let it stand still, until it is started."""
        self._running = False

    def __lt__(self, other: int) -> bool:
        return self._ticks < self._constant("<", other)

    def __le__(self, other: int) -> bool:
        return self._ticks <= self._constant("<=", other)

    def __gt__(self, other: int) -> bool:
        return self._ticks > self._constant(">", other)

    def __ge__(self, other: int) -> bool:
        return self._ticks >= self._constant(">=", other)

    def __eq__(self, other: object) -> bool:
        return self._ticks == self._constant("==", other)

    def __ne__(self, other: object) -> bool:
        return self._ticks != self._constant("!=", other)

    def _constant(self, operator: str, other: object) -> int:
        """The other side of a comparison. It must not be above the bound, where the clock does not count on."""
        if isinstance(other, Clock):
            self._refuse("compares two clocks")
        if isinstance(other, bool) or not isinstance(other, int):
            self._refuse(f"compares a clock with {other!r}")
        if self._bound is not None and other > self._bound:
            self._refuse(
                f"compares a clock with {other} (clock {operator} {other}), but its bound is {self._bound}",
                hint=f"declare the bound where the clock is declared: Clock(bound={other}), or more",
            )
        return int(other)

    def _refuse(self, what: str, hint: str = _HINT) -> NoReturn:
        """Raise an error. It is kept: if the model catches it, the check raises it again."""
        error = ModelError(what, hint=hint)
        self.__dict__.setdefault("_refused", error)
        raise error

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):  # what a library looks for
            raise AttributeError(name)
        self._refuse(f"reads the attribute {name!r} of a clock")

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__plait_record__:
            self._refuse(f"sets the attribute {name!r} of a clock")
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        """Without the count, which must not become part of a text in the model."""
        return f"<Clock {'running' if self._running else 'stopped'}>"

    def __plait_data__(self) -> Data:
        count = str(self._ticks)
        if self._bound is not None and self._ticks > self._bound:
            count = f"more than {self._bound}"
        return {"#clock": count if self._running else f"{count} (stopped)"}

    # -- for the checker ---------------------------------------------------------------------------------------------

    @property
    def _is_declared(self) -> bool:
        """Whether its bound is known."""
        return self._bound is not None

    def _fresh(self, bound: int | None = None) -> Clock:
        """An equal clock, with a bound if it has none."""
        copy = Clock(running=self._running, bound=self._bound if bound is None or self._is_declared else bound)
        copy._ticks = self._ticks
        return copy

    def _tick(self) -> None:
        if self._running and (self._bound is None or self._ticks <= self._bound):
            self._ticks += 1


def _refused(name: str, what: str) -> Callable[..., NoReturn]:
    def use(self: Clock, *_: Any) -> NoReturn:
        self._refuse(what)

    use.__name__ = name
    return use


for _name in (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "divmod",
    "pow",
    "lshift",
    "rshift",
    "and",
    "or",
    "xor",
):
    for _side in ("", "r", "i"):
        if _side + _name != "idivmod":
            setattr(Clock, f"__{_side}{_name}__", _refused(f"__{_side}{_name}__", "computes with a clock"))
for _name in ("neg", "pos", "abs", "invert", "round", "trunc", "floor", "ceil"):
    setattr(Clock, f"__{_name}__", _refused(f"__{_name}__", "computes with a clock"))
for _name in ("int", "index", "float", "complex"):
    setattr(Clock, f"__{_name}__", _refused(f"__{_name}__", "uses a clock as a number"))
for _name in ("str", "format", "bytes"):
    setattr(Clock, f"__{_name}__", _refused(f"__{_name}__", "makes a text of a clock"))
Clock.__hash__ = _refused("__hash__", "uses a clock as a key or an element of a set")  # type: ignore[method-assign]
Clock.__bool__ = _refused("__bool__", "uses a clock as a condition")  # type: ignore[attr-defined]
for _name in ("copy", "deepcopy", "reduce", "reduce_ex"):
    setattr(Clock, f"__{_name}__", _refused(f"__{_name}__", "copies a clock"))


def own_clocks(cls: type) -> frozenset[str]:
    """The clocks that a class declares, by name. Each process gets a clock of its own: the default is made its factory."""
    for name in cls.__dict__.get("__annotations__", {}):
        default = cls.__dict__.get(name)
        field = default if isinstance(default, dataclasses.Field) else None
        clock = default if field is None else field.default
        if isinstance(clock, Clock):
            metadata = {} if field is None else field.metadata
            setattr(cls, name, dataclasses.field(default_factory=clock._fresh, metadata=metadata))
    return frozenset(
        name for name, annotation in cls.__dict__.get("__annotations__", {}).items() if is_clock(annotation)
    )


def is_clock(annotation: Any) -> bool:
    """Whether an annotation says that a field is a clock."""
    return annotation is Clock or (isinstance(annotation, str) and annotation.strip("'\" ").split(".")[-1] == "Clock")


def refusal(values: Any) -> ModelError | None:
    """The error of a clock that was used in a way that is refused, even if the model caught it."""
    for value in values:
        if isinstance(value, Clock) and "_refused" in value.__dict__:
            return value.__dict__["_refused"]  # type: ignore[no-any-return]
    return None

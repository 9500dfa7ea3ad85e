"""What the views of a System draw of states. They are user code: whatever they do becomes a text in place of the picture."""

from __future__ import annotations

from collections.abc import Sequence
from threading import get_ident

from plait.check.runner import Runner
from plait.check.tabulate.codec import require_users
from plait.kernel.deadline import Deadline, OutOfTimeError
from plait.kernel.errors import PlaitError
from plait.kernel.places import place, text_of, user_line
from plait.kernel.trace import Picture
from plait.model.properties import Drawing
from plait.report.picture import PictureError, safe

SECONDS = 5.0
"""For all pictures of a run. So a view that takes long delays a check, but does not stop it."""


def pictures(runner: Runner, states: Sequence[Sequence[int]], seconds: float = SECONDS) -> list[dict[str, Picture]]:
    """For each state, the picture of each view. Pictures that take too long, or that Ctrl-C interrupts, are left out."""
    found: list[dict[str, Picture]] = [{} for _ in states]
    clock = Deadline(seconds)
    late = f"not drawn: the pictures of this run took longer than {seconds:g} s"
    try:
        with clock.enforced():
            for state, drawn in zip(states, found, strict=True):
                for view in runner.system.views:
                    drawn[view.name] = _drawn(runner, view, state)
    except OutOfTimeError:
        if not clock.over:  # it is the time of somebody else
            raise
    except KeyboardInterrupt:
        late = "not drawn: interrupted"
    names = [view.name for view in runner.system.views]
    return [{name: drawn.get(name, Picture(error=late)) for name in names} for drawn in found]


def _drawn(runner: Runner, view: Drawing, state: Sequence[int]) -> Picture:
    tabulation = runner.tabulation
    seen = tabulation.fresh_view(*runner.engine.components(state)[:3])  # fresh values: it may change them
    tabulation.model_codec.thread = get_ident()
    tabulation.model_codec.cells.begin_view(seen.cell)
    try:
        returned = view(seen)
    except BaseException as error:
        require_users(error)
        said = error.message if isinstance(error, PlaitError) else f"{type(error).__name__}: {text_of(error)}".strip()
        return Picture(error=f"{view.name} raised {said}{user_line(error) or _place(view)}")
    if not isinstance(returned, str):
        what = type(returned).__name__ if returned is not None else "None"
        return Picture(error=f"{view.name} returned {what}: expected SVG as text, '<svg …>…</svg>'{_place(view)}")
    try:
        return safe(returned)
    except PictureError as error:
        return Picture(error=f"{view.name} returned SVG that cannot be shown: {error}{_place(view)}")


def _place(view: Drawing) -> str:
    """Where the user wrote a view."""
    code = getattr(view.function, "__code__", None)
    return "" if code is None else f" ({place(code.co_filename, code.co_firstlineno)})"

"""A phase as SVG: a band for each round, a column for each role, a box for each handler, and an arrow for each message.

A handler stands in the round whose messages it consumes. An action stands in the round for which it sends, above those that
consume; if it sends nothing, before the first round. An arrow leads from a handler to the handlers that consume what it
sends. What belongs to an earlier round, or to the same, is sent for the next phase: such an arrow ends at the lower edge, in
a band of its own.
"""

from __future__ import annotations

from typing import NamedTuple

from plait.kernel.verdict import PhaseStructure, RoundHandler
from plait.report.markup import asset, diagram_styles, escape, shorten, text_width

_MARGIN, _GAP, _PAD = 16.0, 26.0, 10.0
_BOX, _STEP, _HEAD = 26.0, 52.0, 34.0
_SIZE = 12.0
_LONGEST = 40


class _Box(NamedTuple):
    handler: RoundHandler
    x: float
    y: float
    width: float


def phases_svg(structure: PhaseStructure, *, standalone: bool = True) -> str:
    """Draw the rounds of a phase. `standalone` adds what a separate file needs."""
    drawing = _Drawing(structure)
    w, h = _n(drawing.width), _n(drawing.height)
    space = ' xmlns="http://www.w3.org/2000/svg"' if standalone else ""
    rounds = ", ".join(structure.rounds)
    parts = [
        f'<svg{space} class="plait-diagram plait-phases" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img">',
        f"<title>{escape(f'A phase and its rounds: {rounds}')}</title>",
        f"<style>{diagram_styles()}{asset('phases.css')}</style>",
        f'<rect class="paper" width="{w}" height="{h}"/>',
        *drawing.bands(),
        *drawing.heads(),
        *drawing.arrows(),
        *drawing.boxes(),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _row(handler: RoundHandler) -> int:
    """The band of a handler: 0 before the first round, then the rounds."""
    if handler.takes is not None:
        return handler.takes + 1
    return 0 if handler.begins or not handler.sends else min(handler.sends) + 1


class _Drawing:
    """Places for all boxes."""

    def __init__(self, structure: PhaseStructure) -> None:
        self.rounds = structure.rounds
        self.roles = list(dict.fromkeys(handler.role for handler in structure.handlers))
        self.label = max(text_width(f"round {name}", _SIZE) for name in (*self.rounds, "next phase")) + 2 * _PAD
        names = [shorten(h.name, _LONGEST) for h in structure.handlers]
        self.box = max((text_width(name, _SIZE) for name in names), default=40.0) + 2 * _PAD
        rows: dict[tuple[int, str], list[RoundHandler]] = {}
        for handler in sorted(
            structure.handlers, key=lambda handler: handler.takes is not None
        ):  # first those that send
            rows.setdefault((_row(handler), handler.role), []).append(handler)
        count = len(self.rounds) + 2
        self.top = [_MARGIN + _HEAD]
        for row in range(count):
            most = max((len(found) for (where, _), found in rows.items() if where == row), default=0)
            height = _STEP * max(most, 1) if 0 < row <= len(self.rounds) else _STEP * most if row == 0 else _BOX + _PAD
            self.top.append(self.top[-1] + height)
        self.placed: list[_Box] = []
        for (row, role), found in rows.items():
            for number, handler in enumerate(found):
                y = self.top[row] + _STEP * number + (_STEP - _BOX) / 2
                self.placed.append(_Box(handler, self._column(role), y, self.box))
        self.width = self._column(None) - _GAP + _MARGIN
        self.height = self.top[-1] + _MARGIN

    def _column(self, role: str | None) -> float:
        """Where the column of a role begins; without a role, where a next one would."""
        number = len(self.roles) if role is None else self.roles.index(role)
        return _MARGIN + self.label + _GAP + number * (self.box + 2 * _GAP)

    def bands(self) -> list[str]:
        """A band for each round."""
        found = []
        for row, name in enumerate(["", *(f"round {name}" for name in self.rounds), "next phase"]):
            y, height = self.top[row], self.top[row + 1] - self.top[row]
            if not height:
                continue
            kind = "odd" if row % 2 else "even"
            found.append(
                f'<g class="band {kind}"><rect x="{_n(_MARGIN)}" y="{_n(y)}" width="{_n(self.width - 2 * _MARGIN)}" '
                f'height="{_n(height)}"/>'
                f'<text x="{_n(_MARGIN + _PAD)}" y="{_n(y + height / 2 + 4)}">{escape(name)}</text></g>'
            )
        return found

    def heads(self) -> list[str]:
        """The roles."""
        return [
            f'<text class="role" x="{_n(self._column(role) + self.box / 2)}" y="{_n(_MARGIN + _HEAD - 12)}" '
            f'text-anchor="middle">{escape(shorten(role, _LONGEST))}</text>'
            for role in self.roles
        ]

    def boxes(self) -> list[str]:
        """The handlers."""
        found = []
        for handler, x, y, width in self.placed:
            kind = "receipt" if handler.takes is not None else "begin" if handler.begins else "action"
            takes = f"consumes {self.rounds[handler.takes]}" if handler.takes is not None else "consumes nothing"
            sends = f"sends {', '.join(self.rounds[r] for r in handler.sends)}" if handler.sends else "sends nothing"
            found.append(
                f'<g class="handler {kind}" data-handler="{escape(f"{handler.role}.{handler.name}")}">'
                f"<title>{escape(f'{handler.role}.{handler.name}: {takes}, {sends}')}</title>"
                f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(_BOX)}" '
                f'rx="{5 if kind == "receipt" else 12}"/>'
                f'<text x="{_n(x + width / 2)}" y="{_n(y + _BOX / 2 + 4)}" text-anchor="middle">'
                f"{escape(shorten(handler.name, _LONGEST))}</text></g>"
            )
        return found

    def arrows(self) -> list[str]:
        """The messages."""
        found = []
        for source in self.placed:
            for number in source.handler.sends:
                later = source.handler.takes is None or number > source.handler.takes
                targets = [box for box in self.placed if box.handler.takes == number] if later else []
                ends = [(box.x + box.width / 2, box.y, box.handler.name) for box in targets]
                if not later:
                    ends = [(source.x + source.width / 2 + 8, self.top[-2] + 2, "next phase")]
                for x, y, name in ends:
                    found.append(self._arrow(source, number, x, y, name, "now" if later else "next"))
        return found

    def _arrow(self, source: _Box, number: int, x: float, y: float, to: str, kind: str) -> str:
        start, bottom, middle = source.x + source.width / 2, source.y + _BOX, source.y + _BOX / 2
        right = source.x + source.width
        side = right + _GAP / 2 if abs(x - start) < self.box else (start + x) / 2
        straight = f"M{_n(start)} {_n(bottom)} L{_n(x)} {_n(y - 5)}"
        bent = f"M{_n(right)} {_n(middle)} C{_n(side)} {_n(middle)} {_n(side)} {_n(y - 24)} {_n(x)} {_n(y - 5)}"
        path = straight if y - bottom < _STEP else bent
        tip = f"M{_n(x - 4)} {_n(y - 7)} L{_n(x)} {_n(y)} L{_n(x + 4)} {_n(y - 7)} Z"
        said = f"{source.handler.name} sends {self.rounds[number]} to {to}"
        return (
            f'<g class="flow {kind}"><title>{escape(said)}</title><path d="{path}"/><path class="tip" d="{tip}"/></g>'
        )


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")

"""The viewer: one script and one style sheet, which the HTML report contains and `plait explore` serves.

Their source is in `viewer/`, in TypeScript; `make setup` builds them, and a wheel contains them. The data of a report
leaves out what a state shares with the state before it: runs are long, and steps change little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from plait.kernel.alignment import Row
from plait.kernel.trace import Snapshot, Trace
from plait.report.markup import asset, escape
from plait.report.picture import with_safe_pictures
from plait.report.space_time.flow import states

FILES = {"viewer.js": "text/javascript", "viewer.css": "text/css", "elk-worker.js": "text/javascript"}
"""The files that the page of `plait explore` loads, and their types."""

POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
"""The content security policy of a report: it needs itself only. No host can be asked, whatever a model says."""


GONE = {"#gone": True}
"""Instead of a value in the changes of a state: the next state has no such entry."""


def explorer_page() -> str:
    """The page of `plait explore`. Everything else comes from its server, so that a strict policy can forbid the rest."""
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            '<meta name="referrer" content="no-referrer">',
            '<link rel="icon" href="data:,">',
            "<title>plait explore</title>",
            '<link rel="stylesheet" href="viewer.css">',
            '<script src="viewer.js" defer></script>',
            "</head>",
            '<body class="traces explore">',
            '<main><section class="viewer explorer"><noscript>plait explore needs JavaScript.</noscript></section></main>',
            "</body>",
            "</html>",
            "",
        ]
    )


def explorer_content() -> str:
    """The content of a widget that explores a model: its script asks the kernel for everything."""
    return '<section class="viewer explorer" aria-label="explorer"><p class="empty">The model is loaded …</p></section>'


def head(title: str, *, script: bool, styles: str = "") -> list[str]:
    """The lines of a page up to its body. All pages have this head: the same policy, and the same style sheet."""
    return [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        '<link rel="icon" href="data:,">',
        f"<title>{escape(title)}</title>",
        f"<style>{asset('viewer.css' if script else 'report.css')}{styles}</style>",
        "</head>",
    ]


def run_data(trace: Trace, start: int) -> bytes:
    """The data of a viewer of one run, and the step at which it opens."""
    return msgspec.json.encode({"trace": sparse(with_safe_pictures(trace)), "start": start})


def pair_data(first: Trace, second: Trace, rows: Sequence[Row], start: int) -> bytes:
    """The data of a viewer of two runs: which of their events are in the same row, and the row at which it opens."""
    pair = [sparse(with_safe_pictures(trace)) for trace in (first, second)]
    return msgspec.json.encode({"pair": pair, "rows": rows, "start": start})


def embedded(data: bytes) -> str:
    """The data of one viewer, as an element. Its JSON cannot end its own element, whatever its values are."""
    raw = data.decode()
    safe = raw.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return f'<script type="application/json" class="data">{safe}</script>'


def sparse(trace: Trace, have: int = 0) -> dict[str, Any]:
    """The trace as JSON, each state as its changes to the state before, without the first `have` events."""
    data: dict[str, Any] = msgspec.structs.asdict(msgspec.structs.replace(trace, events=[]))
    before, events = states(trace)[have], []
    for event in trace.events[have:]:
        parts = {name: part for name, part in msgspec.structs.asdict(event).items() if part is not msgspec.UNSET}
        events.append({**parts, "state": _changes(before, event.state)})
        before = event.state
    return {**data, "events": events}


def _changes(before: Snapshot, after: Snapshot) -> dict[str, dict[str, Any]]:
    """For each part of a state, the entries that differ."""
    found = {}
    for part in Snapshot.__struct_fields__:
        old: Mapping[str, Any] = getattr(before, part) or {}
        new: Mapping[str, Any] = getattr(after, part) or {}
        if old is new:
            continue
        changed = {}
        for name, value in new.items():
            was = old.get(name, GONE)
            # Most entries are the same object, for which a comparison of their contents would take long.
            if was is not value and was != value:
                changed[name] = value
        changed |= dict.fromkeys(old.keys() - new.keys(), GONE)
        if changed:
            found[part] = changed
    return found

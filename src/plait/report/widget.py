"""Verdicts and traces in notebooks as widgets (anywidget): the viewer of the HTML report, in the output of a cell.

What a notebook saves of a widget: the static HTML of `notebook.py`, which GitHub, nbconvert and notebooks that are not
trusted show; and if the notebook saves the state of widgets, the script of the viewer and the content.
"""

from __future__ import annotations

from typing import Any

from plait.kernel.extras import needs
from plait.kernel.trace import Trace
from plait.kernel.verdict import Verdict
from plait.report.html import trace_content, verdict_content
from plait.report.markup import asset
from plait.report.notebook import trace_fragment, verdict_fragment

with needs("notebook"):
    import anywidget
    import traitlets


class ViewerWidget(anywidget.AnyWidget):
    """The viewer in the output of a cell."""

    _esm = asset("viewer-widget.js")
    content = traitlets.Unicode().tag(sync=True)
    """HTML, in which the viewer finds its data."""

    def __init__(self, content: str, *, plain: str, text: str) -> None:
        super().__init__(content=content)
        self._plain, self._text = plain, text

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._text}>"

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The widget, and HTML for where no widget is shown."""
        bundle = super()._repr_mimebundle_(**options)
        data, metadata = bundle if bundle is not None else ({}, {})  # a widget that was closed
        return {**data, "text/html": self._plain}, metadata


class RunWidget(ViewerWidget):
    """A verdict with its runs, or a run."""


def run_widget(value: Verdict | Trace) -> RunWidget:
    """A verdict or a trace as a widget."""
    if isinstance(value, Trace):
        return RunWidget(trace_content(value), plain=trace_fragment(value), text=repr(value))
    return RunWidget(verdict_content(value), plain=verdict_fragment(value), text=repr(value))

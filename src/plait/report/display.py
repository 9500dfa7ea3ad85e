"""The renderer of values of the kernel, for `str(verdict)` and notebooks (`plait.kernel.rendering`)."""

from __future__ import annotations

from plait.kernel.classification import Classification
from plait.kernel.trace import Trace
from plait.kernel.verdict import Verdict
from plait.report.classification.text import classification_text
from plait.report.html import trace_fragment, verdict_fragment
from plait.report.text import trace_text, verdict_text


class Display:
    """Renders verdicts, traces and classifications."""

    def text(self, value: object) -> str:
        """The value for a terminal."""
        match value:
            case Verdict():
                return verdict_text(value)
            case Trace():
                return trace_text(value)
            case Classification():
                return classification_text(value)
        raise TypeError(f"{type(value).__name__} has no text form")

    def html(self, value: object) -> str:
        """The value for a notebook."""
        match value:
            case Verdict():
                return verdict_fragment(value)
            case Trace():
                return trace_fragment(value)
        raise TypeError(f"{type(value).__name__} has no HTML form")

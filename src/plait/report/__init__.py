"""Verdicts and traces as text, ITF, SVG and HTML: one format per file, as functions of plain data.

In: a Verdict, a Trace, a StateGraph or a Classification of the kernel. Out: text. Open `text.py` and `html.py` first.
Both take their sentences from `wording.py`, so that all formats say the same. `notebook.py` is for Jupyter, and
`display.py` chooses the format of `verdict.save`. `space_time/` draws the diagram of a trace, `state_graph/` draws
state graphs, `classification/` shows the result of `plait gyro`. `diff.py` compares two traces. `annotations.py`
writes SARIF and annotations of GitHub Actions. `viewer.py` has the viewer, which is written in TypeScript in the
folder "viewer" at the root of the project. `assets/` has the styles and the scripts of pages and drawings: `report.css`
for pages, `space_time.css` for all diagrams, and what `make viewer` builds.
"""

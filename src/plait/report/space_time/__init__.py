"""Space-time diagrams of traces as SVG, and as text for a terminal.

In: a `Trace` of the kernel. Out: a drawing with a lane per process, a row per step and an arrow per message. Open `svg.py`
first, with positions from `layout.py` and arrows from `routing.py`, or `text.py` for the terminal. `flow.py` says what
happened to each message and lane.
"""

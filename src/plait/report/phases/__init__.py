"""The phases and rounds of a protocol as a picture.

In: a `PhaseStructure` of the kernel. Out: SVG, for `plait rounds show --svg` and for the report. Open `svg.py`.
"""

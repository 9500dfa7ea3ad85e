"""Measurements as text, as Markdown and as drawings.

In: the tables of this room. Out: text or SVG. Open `grid.py` first: the other files lay their tables out with it.
"""

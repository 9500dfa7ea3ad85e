"""The classification of an application's transactions as text, HTML and a conflict graph.

In: a `Classification` of the kernel, which `plait gyro` makes. Out: text, HTML or SVG. Open `text.py` first. `html.py` makes
the page, with the graph of conflicts from `conflict_graph.py`.
"""

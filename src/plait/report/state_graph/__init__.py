"""State graphs as SVG, DOT and text.

In: a `StateGraph` of the kernel. Out: a drawing (`svg.py`, with positions from `layout.py`), the language of Graphviz
(`dot.py`) or a listing for a terminal (`text.py`). Open `svg.py` first; the sentences are in `wording.py`.
"""

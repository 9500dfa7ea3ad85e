"""State graphs as SVG, DOT and text.

In: a `StateGraph` of the kernel. Out: a drawing (`svg.py`, with positions from `layers.py`), the language of Graphviz
(`dot.py`) or a listing. Open `svg.py` first; the sentences are in `wording.py`.
"""

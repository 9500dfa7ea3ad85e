"""Prints and draws tables: `text` for a terminal, `markdown`, `svg` (bars), and the JSON object (`results`).

In: a `Table`. Out: a string. Open `cells.py` first: it formats values by their units and lays out rows and columns.
"""

"""The one reporter of tables: `text` for a terminal, `markdown`, `svg` (bars), and the JSON object.

In: a `Table`. Out: a string. Open `cells.py` first: it formats values by their units, and lays out rows and columns.
"""

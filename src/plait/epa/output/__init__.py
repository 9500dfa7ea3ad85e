"""Output of recordings, comparisons and campaigns: text, HTML, a plot, CSV, and traces for Perfetto.

In: the results of the analyses. Out: text or a file. Each module writes one format. Open `text.py` first.
"""

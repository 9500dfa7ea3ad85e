"""Recordings, comparisons and campaigns for people: text, HTML, a plot, and traces for Perfetto.

In: the results of the analyses of this room. Out: text or a file, one format per file. Open `text.py` first.
"""

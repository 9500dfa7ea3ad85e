"""The classification of an application's transactions as text, HTML and a conflict graph.

In: a `Classification` of the kernel (`plait gyro`). Out: text. Open `text.py` first.
"""

"""The sequential program of a protocol as a text for other tools (Sequentialization, section 5; `plait rounds emit`).

In: a System with rounds, a number of phases and a network assumption (`description.py`). Out: the text of the program.
Open `description.py` first: all targets share it. `plait.py` writes a Plait model, `python/` plain Python without Plait,
`distal/` a Distal text, `p/` that text as a P program, and `c/` C for model checkers.
"""

"""Checking protocols round by round (Sequentialization, 2022).

In: a System whose messages are tagged with a phase and a round. Out: a Verdict on the System, found by searching its
sequential program, in which the processes take turns round after round instead of interleaving.
Open `check.py` first: it builds the program (`sequential.py`), has it searched by `plait.check`, turns what was found into a
run of the protocol itself (`protocol_run.py`), and decides whether the protocol is round-based at all (`conditions/`).
`program/` holds the parts of the program, `text/` writes a protocol as structured Python, `emit/` writes the program for
other tools, `distal/` reads Distal.
"""

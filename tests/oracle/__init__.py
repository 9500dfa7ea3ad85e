"""The oracle: a slow, obvious checker in plain Python that the native engine is compared with.

Open `relation.py` first: it has the successors of a state, by definition. `explorer.py` visits all states,
`lassos.py` decides temporal properties, `orbits.py` symmetry, `coverage.py` what a search exercises, `replay.py`
runs. The files `*_systems.py` draw random systems for Hypothesis: `random_systems.py` what models may contain,
`independent_systems.py` what partial-order reduction reduces, `symmetric_systems.py` what symmetry reduces,
`cyclic_systems.py` what has loops, `shared_systems.py` what processes can do with shared state.
"""

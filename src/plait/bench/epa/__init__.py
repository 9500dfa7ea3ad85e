"""The evaluation of Saissi 2019, section 5.5, with programs of the size of the originals.

In comes the folder of the programs (`examples/epa/programs`); out come three tables. Open `soundness.py` first: it is
Table 8. `coverage.py` is Figure 17, and `times.py` is Table 10. `programs.py` builds the programs and makes their input.
`src/plait/bench/papers/epa.py` is the benchmark that puts them together.
"""

"""All measurements: the tables of the papers, comparisons with other checkers, speed and memory of the engine.

In: the name of a benchmark and `Options`. Out: a `Table`. Open `registry.py` first: it lists the benchmarks, one file
each. `papers/` measures the tables of the papers again. `engine/` measures speed and memory of the engine. `peers/`
runs Spin, Stateright and TLC on the same protocols. `gyro/` measures the servers of `plait gyro serve`. `table.py`
defines the table, `report/` prints and draws it. Only the command line imports this package.
"""

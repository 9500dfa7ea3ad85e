"""Everything that measures: the papers' tables, Plait beside other checkers, and what the engine costs.

What comes in is the name of a benchmark and `Options`; what goes out is a `Table`. Open `registry.py` first: it lists the
benchmarks, one file each. `tables/` has the tables of the papers, `engine/` measures speed and memory of the engine,
`peers/` runs Spin, Stateright and TLC on the same protocols, `gyro/` the servers of `plait gyro serve`. `table.py` is the
one type of table, `report/` prints and draws it. Only the command line imports this room.
"""

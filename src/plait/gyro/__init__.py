"""Operation partitioning: which operations of a SQL application need no coordination (Saissi 2019, ch. 2).

In: an application (Python functions with SQL, or a list of transactions) and its schema. Out: a `Classification` of
its transactions. Open `analysis.py` first: it calls the other files in order. `source/` reads the application. `sql/`
computes the footprint of each statement. `conflicts.py` and `partitioning.py` are the two phases of Algorithm 1.
`belt/` runs the application, `web/` records and runs web applications as they are.
"""

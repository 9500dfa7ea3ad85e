"""Everything that measures: the tables of the papers, Plait beside other checkers, and what the engine costs.

No other room imports this one, except the command line (`plait bench`).
"""

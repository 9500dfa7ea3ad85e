"""The sequential program in C, for `plait bmc`, CBMC and other checkers of C (`__VERIFIER_nondet_bool`, `assert`).

In: a `Description`. Out: one C file. Handlers, guards and properties come from the intermediate representation (`plait.ir`),
function by function: `types.py` has the types of Python values and their structs; `expressions.py`, `iteration.py`,
`calls.py` and `statements.py` translate; `program.py` and `parts.py` write Algorithm 1 around them. Open `program.py` first.
What C cannot express is refused by name, a construct with its file and line.
"""

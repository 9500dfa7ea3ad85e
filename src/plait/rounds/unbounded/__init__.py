"""Any number of phases: a proof that does not depend on how many phases there are.

In: a System with rounds. Out: a Proof, or the reason why there is none. Phase numbers become opaque values (`phase.py`)
that the handlers can only compare, copy and shift. So a step in one phase stands for the same step in each phase.
`opaque.py` refuses code that could look through. If the states between rounds repeat, up to the numbers of the phases, they
are all states of all phases. Open `proof.py` first; `check.py` is what the command line calls.
docs/internals/reductions/phases.md has the argument.
"""

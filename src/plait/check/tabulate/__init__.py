"""The Python side of the engine: it runs the user's code, one question at a time.

In: a question of the native engine (may this handler run? what does this step do? is this property true?) with values
as canonical bytes. Out: the answer, as canonical bytes again, or a ModelError that names the place in the model. Open
`tabulation.py` first: it has one method for each question. `guards.py` answers questions about guards, `evaluation.py`
those about properties. `steprun.py` is one run of a handler. `codec.py` turns values into bytes and back. `probe.py`
chooses the orders of sets in which a question is asked again. `sample.py` records questions that other interpreters can
answer too.
"""

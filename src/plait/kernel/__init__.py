"""What all rooms share: Verdict, Trace, Step, errors, values and process ids. It imports no other room.

In: plain values. Out: plain data that can be saved, compared and drawn without the model. Open `trace.py` first, then
`verdict.py`: each analysis ends in these two. `values.py` turns model values into this data.
"""

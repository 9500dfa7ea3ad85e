"""What all rooms share: Verdict, Trace, Step, errors, values and process ids. It imports no other room.

In: plain values. Out: plain data that can be saved, compared and drawn without the model. Open `trace.py` first, then
`verdict.py`: they define the results of most analyses. `classification.py` is the result of `plait gyro`, `graph.py` that
of `plait graph`. `values.py` turns values of models into this data. `deadline.py` is the clock of a check.
"""

import time

STARTED = time.time()
"""When Plait was imported. A module that is older has not changed since Python read it."""

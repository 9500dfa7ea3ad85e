"""Whether a protocol is round-based: the conditions of the Sequentialization paper, sections 4.2 and 5.1.

In: a System with rounds. Out: for each condition the reason why it holds, or a run that breaks it. Open `decision.py`
first: it makes a property of each condition. `declarations.py` proves conditions from the source,
`instrumentation.py` watches the steps of the asynchronous protocol, and `audit.py` watches its sequential program if the
protocol has too many states.
"""

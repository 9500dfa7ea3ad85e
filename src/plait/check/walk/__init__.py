"""What a person asks who walks through the states of a model: for the explorer.

In: a Runner, a run, and what the person typed. Out: plain data about one state, and runs that a search found. Open
`run.py` first: a run is a number of an initial state and a key for each step, and it is executed again from these.
`enabled.py` describes the steps that are possible, `disabled.py` says why the others are not. `expression.py` evaluates
what the person typed, in the virtual machine. `progression.py` says what is still open of a temporal property.
`lines.py` says which lines of a handler a step executed. `search.py` searches from a state. `projection.py` collapses
the state graph.
"""

"""Whether a log of an implementation is a run of a model.

In come a System and logs (`log.py` has the format). Out comes a `plait.kernel.verdict.Conformance`: the run that explains
the log, or the event that no step explains, and why. Open `search.py` first. `order.py` says which events come before which,
`conversion.py` turns JSON into values of the model, `compiled.py` prepares the events for the engine, and `explanation.py`
says why a step does not explain an event. `mapping.py` has `@conforms`; `opentelemetry.py` reads spans.
"""

"""What a user writes: Process, Message, Monitor, System, handlers, networks, faults and properties.

In: the user's classes and functions. Out: a `System`, which describes them as plain data and runs nothing. Open `process.py`
and `system.py` first. `loading/` gets a System from a target of the command line; `view.py` is what a property reads.
"""

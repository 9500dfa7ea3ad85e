"""`plait explore`: walk through the states of a model, in a page on loopback or in a notebook.

In: a target with its parameters, or a System. Out: answers to the viewer's questions. Open `explorer.py` first: it has the
questions, and keeps no state of who asks. `server.py` answers a page with it over HTTP, and `guard.py` lets only the page
in; `widget.py` answers a notebook. The model lives in processes of its own, which can be ended and started again at any
time: `worker.py` is such a process, `process.py` its other end. A model of a notebook lives in the kernel: `thread.py`.
`walk.py` answers questions about a run with `differences.py` and `statuses.py`, `coverage.py` those about the source, and
`export.py` writes a run in other formats. `searches.py` keeps the searches in the background. `requests.py` says what a
request may contain.
"""

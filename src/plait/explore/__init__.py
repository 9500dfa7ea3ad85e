"""`plait explore`: a page on loopback to walk through the states of a model.

In: a target with its parameters. Out: a web server that answers the viewer's questions. Open `server.py` first: it has the
routes, and keeps no state of a client. `guard.py` lets only the page in. The model lives in processes of its own, which can
be ended and started again at any time: `worker.py` is such a process, `process.py` its other end in the server. In a
worker, `walk.py` answers questions about a run with `differences.py` and `statuses.py`, `coverage.py` those about the
source, and `export.py` writes a run in other formats. `searches.py` keeps the searches in the background. `requests.py`
says what a request may contain.
"""

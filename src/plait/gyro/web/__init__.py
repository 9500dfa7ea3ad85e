"""Unmodified web applications (Flask, FastAPI, Django) on several servers.

In: an application and its tests. Out: a *recording* (the statements of each endpoint, and where their values come from),
which the analysis classifies, and servers that run the application and refuse every statement that was not recorded.
Open `recording.py` first: it makes the recording from what `recorder.py` saw in the tests. `contract.py` is the check at
run time, `server.py` the server. `requests.py` has the parameters of a request, `template.py` the text of a statement.
"""

"""The command line: thin commands that parse, call a room and print.

In: arguments. Out: data on stdout, everything else on stderr, and the exit code. Open `main.py` first: it has the
commands and their help; each command has a file of its own. `options.py` and `output.py` are shared by all of them.
"""

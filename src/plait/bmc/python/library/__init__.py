"""What Python offers to a program: containers, locks, queues, threads, tasks, executors, built-in functions.

In come calls and operators with values, out go operations of a process. The files are layers of one class; open
`containers.py` first. Calls and statements of the user are translated with it, `locks.py` and `threads.py`. The others
use these translations: `builtins.py`, `awaitables.py` and `tasks.py` for asyncio, and `executors.py`.
"""

"""Runs a command and writes its costs to a file: `python -I -S watch.py FILE COMMAND…` (`process.py` uses it).

A new process starts with the peak memory of its parent. So this script starts the command: it is an interpreter that
has loaded almost nothing, unlike Plait.
"""

import os
import sys
import time


def watch(file: str, command: list[str]) -> None:
    """Write the exit code, wall time and processor time in seconds, and the peak resident memory in bytes."""
    start = time.perf_counter()
    child = os.posix_spawnp(command[0], command, os.environ)
    _, status, usage = os.wait4(child, 0)
    seconds = time.perf_counter() - start
    memory = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    with open(file, "w", encoding="ascii") as out:  # noqa: PTH123 (pathlib is a megabyte)
        out.write(f"{os.waitstatus_to_exitcode(status)} {seconds} {usage.ru_utime + usage.ru_stime} {memory}")


if __name__ == "__main__":
    watch(sys.argv[1], sys.argv[2:])

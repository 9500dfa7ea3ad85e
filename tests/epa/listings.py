"""What tests of recorded programs share: the head of a program, and the events of a thread as text."""

from __future__ import annotations

from plait.epa.recording import Recording


def lines(recording: Recording, thread: str) -> list[str]:
    """The events of a thread."""
    at = [t.name for t in recording.threads].index(thread)
    rows = recording.native.events(at, 0, recording.threads[at].events)
    return [recording.text(row) for row in rows]


HEAD = """#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <unistd.h>
"""

"""What a replayed run takes from the golden run (`replay.c`): results of calls, and a place in the order of operations."""

from __future__ import annotations

from plait.epa.instrumentation.cpp import CPP_STREAMS
from plait.epa.instrumentation.effect import Effect


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


REPLAYED = _words("""
    rand random drand48 lrand48 mrand48 erand48 nrand48 jrand48 rand_r arc4random getrandom getentropy
    time clock clock_gettime clock_getres gettimeofday times timespec_get timespec_getres getrusage
    getpid getppid gettid sched_getcpu getcpu pthread_barrier_wait stat fstat lstat stat64 fstat64 lstat64
    _ZNSt6chrono3_V212system_clock3nowEv _ZNSt6chrono3_V212steady_clock3nowEv _ZNSt13random_device9_M_getvalEv
    llvm.x86.rdtsc llvm.readcyclecounter llvm.readsteadycounter
""")
"""Functions whose result and written memory are recorded and replayed, if the program calls them by name."""

BY_TURN = _words("""
    pthread_mutex_trylock pthread_mutex_timedlock pthread_rwlock_tryrdlock pthread_rwlock_trywrlock
    pthread_cond_timedwait mtx_trylock mtx_timedlock cnd_timedwait
""")
"""Functions whose result follows from the recorded order of locks."""

_FILES = ("stdin", "stdout", "stderr", "file", "descriptor", "descriptors")


def is_ordered(name: str, effects: tuple[Effect, ...]) -> bool:
    """Whether a call is an operation on files with a place in the recorded order. Streams of C++ can throw: they have none.

    >>> from plait.epa.instrumentation.effects import effects_of
    >>> is_ordered("printf", effects_of("printf")), is_ordered("strlen", effects_of("strlen"))
    (True, False)
    """
    return not CPP_STREAMS.fullmatch(name) and any(effect.access in _FILES for effect in effects)

"""Effects of external functions: the memory that they read and write, and results that the input does not determine.

Instrumentation covers only the instructions of the program itself. For the functions below, it records the memory that
a call reads and writes. The memory accesses of other external functions are not recorded; the reversibility check lists
these functions as an assumption. A call of a function whose arguments do not determine its result breaks local
determinism (Definition 5, condition 1).
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

Access = Literal["read", "write", "read string", "copy", "stream", "stdout"]


class Effect(NamedTuple):
    """A memory access at the address in argument `at`. Its length: the product of the arguments `length` (or `bytes`).

    A `stream` is a FILE: all operations of threads on one stream depend on each other.
    """

    access: Access
    at: int
    length: tuple[int, ...] = ()
    source: int = 0
    bytes: int = 0


_COPY = (Effect("copy", 0, (2,), 1),)
_TWO_STRINGS = (Effect("read string", 0), Effect("read string", 1))
_STDOUT = Effect("stdout", 0)
_GUARD = (Effect("write", 0, bytes=8),)

EFFECTS: dict[str, tuple[Effect, ...]] = {
    "memcpy": _COPY,
    "memmove": _COPY,
    "llvm.memcpy": _COPY,
    "llvm.memmove": _COPY,
    "memset": (Effect("write", 0, (2,)),),
    "llvm.memset": (Effect("write", 0, (2,)),),
    "memcmp": (Effect("read", 0, (2,)), Effect("read", 1, (2,))),
    "bzero": (Effect("write", 0, (1,)),),
    "fread": (Effect("write", 0, (1, 2)), Effect("stream", 3)),
    "fwrite": (Effect("read", 0, (1, 2)), Effect("stream", 3)),
    "fprintf": (Effect("stream", 0),),
    "fputc": (Effect("stream", 1),),
    "putc": (Effect("stream", 1),),
    "fgetc": (Effect("stream", 0),),
    "getc": (Effect("stream", 0),),
    "fflush": (Effect("stream", 0),),
    "fclose": (Effect("stream", 0),),
    "rewind": (Effect("stream", 0),),
    "printf": (_STDOUT,),
    "putchar": (_STDOUT,),
    "read": (Effect("write", 1, (2,)),),
    "write": (Effect("read", 1, (2,)),),
    "qsort": (Effect("write", 0, (1, 2)),),
    "strlen": (Effect("read string", 0),),
    "strcmp": _TWO_STRINGS,
    "strdup": (Effect("read string", 0),),
    "atoi": (Effect("read string", 0),),
    "atof": (Effect("read string", 0),),
    "atol": (Effect("read string", 0),),
    "puts": (Effect("read string", 0), _STDOUT),
    "fputs": (Effect("read string", 0), Effect("stream", 1)),
    "pthread_create": (Effect("write", 0, bytes=8),),
    "__cxa_guard_acquire": _GUARD,
    "__cxa_guard_release": _GUARD,
}

COMPARISONS = re.compile(
    r"(?:mem|str|strn|strcase|strncase|b|wmem|wcs|wcsn)cmp|(?:str|wcs)coll|_ZNKSt.*basic_string.*E7compareE.*"
)
"""Functions whose result has a meaning only by its sign. A C library may return any value of this sign."""

PURE = frozenset(
    [
        "malloc",
        "calloc",
        "realloc",
        "free",
        "memalign",
        "aligned_alloc",
        "posix_memalign",
        "_Znwm",
        "_Znam",
        "_ZdlPv",
        "_ZdaPv",
        "_ZdlPvm",
        "_ZdaPvm",
        "pthread_join",
        "pthread_exit",
        "pthread_self",
        "pthread_mutex_init",
        "pthread_mutex_destroy",
        "pthread_mutex_lock",
        "pthread_mutex_unlock",
        "pthread_rwlock_rdlock",
        "pthread_rwlock_wrlock",
        "pthread_rwlock_unlock",
        "pthread_cond_wait",
        "pthread_cond_signal",
        "pthread_cond_broadcast",
        "pthread_barrier_init",
        "pthread_barrier_wait",
        "pthread_barrier_destroy",
        "pthread_once",
        "pthread_detach",
        "pthread_equal",
        "pthread_testcancel",
        "__cxa_thread_atexit",
        "pthread_mutexattr_init",
        "pthread_mutexattr_settype",
        "pthread_mutexattr_destroy",
        "__pthread_register_cancel",
        "__pthread_unregister_cancel",
        "__pthread_unwind_next",
        "_setjmp",
        "__sigsetjmp",
        "longjmp",
        "siglongjmp",
        "__errno_location",
        "usleep",
        "sleep",
        "nanosleep",
        "sched_yield",
        "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE",
        "_ZNSt6thread4joinEv",
        "_ZNSt6thread6detachEv",
        "_ZNSt6thread6_StateD2Ev",
        "pthread_attr_init",
        "pthread_attr_destroy",
        "pthread_attr_setdetachstate",
        "pthread_rwlock_init",
        "pthread_rwlock_destroy",
        "pthread_cond_init",
        "pthread_cond_destroy",
        "exit",
        "abort",
        "abs",
        "labs",
        "sqrt",
        "sqrtf",
        "exp",
        "expf",
        "log",
        "logf",
        "pow",
        "powf",
        "fabs",
        "fabsf",
        "sin",
        "cos",
        "tan",
        "floor",
        "ceil",
        "fmod",
        "erf",
        "fmax",
        "fmin",
        "round",
        "fopen",
        "__cxa_begin_catch",
        "__cxa_end_catch",
        "__cxa_allocate_exception",
        "__cxa_throw",
        "__cxa_free_exception",
        "__cxa_rethrow",
        "__gxx_personality_v0",
        "__clang_call_terminate",
        "_ZSt9terminatev",
        "__cxa_atexit",
    ]
)
"""External functions that access no shared memory, or whose accesses are recorded elsewhere."""

NONDETERMINISTIC = frozenset(
    [
        "rand",
        "random",
        "drand48",
        "lrand48",
        "mrand48",
        "rand_r",
        "arc4random",
        "getrandom",
        "getentropy",
        "time",
        "clock",
        "clock_gettime",
        "gettimeofday",
        "times",
        "fork",
        "vfork",
        "wait",
        "waitpid",
        "getpid",
        "getppid",
        "gettid",
        "getrusage",
        "sched_getcpu",
        "getcpu",
        "pthread_mutex_trylock",
        "pthread_mutex_timedlock",
        "pthread_rwlock_tryrdlock",
        "pthread_rwlock_trywrlock",
        "pthread_cond_timedwait",
        "pthread_barrier_wait",
        "pthread_cancel",
        "pthread_tryjoin_np",
        "pthread_timedjoin_np",
        "sem_trywait",
        "sem_timedwait",
        "select",
        "poll",
        "epoll_wait",
        "_ZNSt6chrono3_V212system_clock3nowEv",
        "_ZNSt6chrono3_V212steady_clock3nowEv",
        "_ZNSt13random_device9_M_getvalEv",
    ]
)
"""Functions whose result depends on more than the input and the past of their thread. A barrier counts only if its
result is used: it returns a special value to one arbitrary thread. A cancelled thread ends at an arbitrary point."""

STATEFUL = frozenset(
    [
        "asctime",
        "ctime",
        "gmtime",
        "localtime",
        "readdir",
        "setlocale",
        "strerror",
        "strtok",
    ]
)
"""Functions with a hidden state that threads share: the result depends on the calls of other threads."""


def effects_of(name: str) -> tuple[Effect, ...]:
    """The effects of a function or an intrinsic.

    >>> effects_of("llvm.memcpy.p0.p0.i64")[0].access
    'copy'
    """
    if name.startswith("llvm."):
        name = ".".join(name.split(".")[:2])
    return EFFECTS.get(name, ())

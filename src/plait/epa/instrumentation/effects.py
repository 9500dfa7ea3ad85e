"""Effects of external functions: the memory that they read and write, and results that the input does not determine.

Instrumentation covers only the instructions of the program itself. For the functions below, it records the memory that
a call reads and writes. The memory accesses of other external functions are not recorded: `libraries.py` knows the
functions that have none. A call of a function whose arguments do not determine its result breaks local determinism
(Definition 5, condition 1).
"""

from __future__ import annotations

import re

from plait.epa.instrumentation.cpp import CPP, cpp_effects
from plait.epa.instrumentation.effect import Effect

_COPY = (Effect("copy", 0, (2,), 1),)
_TWO_STRINGS = (Effect("read string", 0), Effect("read string", 1))
_STRING = (Effect("read string", 0),)
_STDOUT, _STDERR, _STDIN = Effect("stdout", 0), Effect("stderr", 0), Effect("stdin", 0)
_GUARD = (Effect("write", 0, bytes=8),)
_NUMBER = (*_STRING, Effect("write", 1, bytes=8))
_OPENS = (Effect("descriptors", 0, bytes=1),)
_COMPARES = (Effect("read", 0, (2,)), Effect("read", 1, (2,)))


def _file(at: int, writes: bool) -> Effect:
    return Effect("file", at, bytes=int(writes))


EFFECTS: dict[str, tuple[Effect, ...]] = {
    "memcpy": _COPY,
    "memmove": _COPY,
    "mempcpy": _COPY,
    "llvm.memcpy": _COPY,
    "llvm.memmove": _COPY,
    "memset": (Effect("write", 0, (2,)),),
    "llvm.memset": (Effect("write", 0, (2,)),),
    "memcmp": _COMPARES,
    "bcmp": _COMPARES,
    "memchr": (Effect("read", 0, (2,)),),
    "bzero": (Effect("write", 0, (1,)),),
    "fread": (Effect("write", 0, (1, 2)), _file(3, False)),
    "fwrite": (Effect("read", 0, (1, 2)), _file(3, True)),
    "fprintf": (_file(0, True), Effect("printed", 1)),
    "fputc": (_file(1, True),),
    "putc": (_file(1, True),),
    "fgetc": (_file(0, False),),
    "getc": (_file(0, False),),
    "ungetc": (_file(1, False),),
    "fgets": (_file(2, False), Effect("wrote string", 0)),
    "fscanf": (_file(0, False), Effect("scanned", 1)),
    "__isoc99_fscanf": (_file(0, False), Effect("scanned", 1)),
    "__isoc23_fscanf": (_file(0, False), Effect("scanned", 1)),
    "fflush": (_file(0, True),),
    "fclose": (_file(0, True), Effect("descriptors", 0)),
    "fopen": (Effect("read string", 0), Effect("descriptors", 0)),
    "fopen64": (Effect("read string", 0), Effect("descriptors", 0)),
    "rewind": (_file(0, False),),
    "fseek": (_file(0, False),),
    "fseeko": (_file(0, False),),
    "ftell": (_file(0, False),),
    "ftello": (_file(0, False),),
    "printf": (_STDOUT, Effect("printed", 0)),
    "putchar": (_STDOUT,),
    "puts": (Effect("read string", 0), _STDOUT),
    "perror": (_STDERR,),
    "scanf": (_STDIN, Effect("scanned", 0)),
    "__isoc99_scanf": (_STDIN, Effect("scanned", 0)),
    "__isoc23_scanf": (_STDIN, Effect("scanned", 0)),
    "getchar": (_STDIN,),
    "fputs": (Effect("read string", 0), _file(1, True)),
    "sprintf": (Effect("printed", 1), Effect("wrote string", 0)),
    "snprintf": (Effect("printed", 2), Effect("wrote string", 0)),
    "sscanf": (Effect("read string", 0), Effect("scanned", 1)),
    "__isoc99_sscanf": (Effect("read string", 0), Effect("scanned", 1)),
    "__isoc23_sscanf": (Effect("read string", 0), Effect("scanned", 1)),
    "read": (Effect("write", 1, (2,)), Effect("descriptor", 0)),
    "write": (Effect("read", 1, (2,)), Effect("descriptor", 0, bytes=1)),
    "pread": (Effect("write", 1, (2,)), Effect("descriptor", 0, bytes=2)),
    "pwrite": (Effect("read", 1, (2,)), Effect("descriptor", 0, bytes=3)),
    "lseek": (Effect("descriptor", 0),),
    "ftruncate": (Effect("descriptor", 0, bytes=1),),
    "fsync": (Effect("descriptor", 0, bytes=1),),
    "open": (Effect("read string", 0), *_OPENS),
    "open64": (Effect("read string", 0), *_OPENS),
    "openat": _OPENS,
    "creat": (Effect("read string", 0), *_OPENS),
    "close": (Effect("descriptor", 0), *_OPENS),
    "pipe": (Effect("write", 0, bytes=8), *_OPENS),
    "dup": _OPENS,
    "dup2": _OPENS,
    "unlink": (Effect("read string", 0), *_OPENS),
    "remove": (Effect("read string", 0), *_OPENS),
    "rename": (Effect("read string", 0), *_OPENS),
    "qsort": (Effect("copy", 0, (1, 2), 0),),
    "feof": (Effect("stream", 0),),
    "ferror": (Effect("stream", 0),),
    "clearerr": (Effect("stream", 0),),
    "setvbuf": (Effect("stream", 0),),
    "setbuf": (Effect("stream", 0),),
    "strlen": _STRING,
    "strcmp": _TWO_STRINGS,
    "strcasecmp": _TWO_STRINGS,
    "strncmp": _TWO_STRINGS,
    "strncasecmp": _TWO_STRINGS,
    "strcoll": _TWO_STRINGS,
    "strdup": _STRING,
    "strndup": _STRING,
    "strchr": _STRING,
    "strrchr": _STRING,
    "strstr": _TWO_STRINGS,
    "strspn": _TWO_STRINGS,
    "strcspn": _TWO_STRINGS,
    "strpbrk": _TWO_STRINGS,
    "strcpy": (Effect("read string", 1), Effect("wrote string", 0)),
    "stpcpy": (Effect("read string", 1), Effect("wrote string", 0)),
    "strcat": (Effect("read string", 1), Effect("wrote string", 0)),
    "strncat": (Effect("read string", 1), Effect("wrote string", 0)),
    "strncpy": (Effect("read string", 1), Effect("write", 0, (2,))),
    "atoi": _STRING,
    "atof": _STRING,
    "atol": _STRING,
    "atoll": _STRING,
    "strtol": _NUMBER,
    "strtoul": _NUMBER,
    "strtoll": _NUMBER,
    "strtoull": _NUMBER,
    "strtod": _NUMBER,
    "strtof": _NUMBER,
    "__isoc23_strtol": _NUMBER,
    "__isoc23_strtoul": _NUMBER,
    "__isoc23_strtoll": _NUMBER,
    "__isoc23_strtoull": _NUMBER,
    "pthread_create": (Effect("write", 0, bytes=8),),
    "thrd_create": (Effect("write", 0, bytes=8),),
    "pthread_join": (Effect("write", 1, bytes=8),),
    "posix_memalign": (Effect("write", 0, bytes=8),),
    "pthread_setcancelstate": (Effect("write", 1, bytes=4),),
    "pthread_setcanceltype": (Effect("write", 1, bytes=4),),
    "pthread_attr_getstacksize": (Effect("write", 1, bytes=8),),
    "pthread_attr_getstack": (Effect("write", 1, bytes=8), Effect("write", 2, bytes=8)),
    "pthread_sigmask": (Effect("write", 2, bytes=128),),
    "sigprocmask": (Effect("write", 2, bytes=128),),
    "sigaction": (Effect("read", 1, bytes=152), Effect("write", 2, bytes=152)),
    "munmap": (Effect("write", 0, (1,)),),
    **{
        f"{name}{suffix}": (Effect("write", 1, bytes=size),)
        for suffix, wide in (("", 8), ("f", 4), ("l", 16))
        for name, size in (("modf", wide), ("frexp", 4), ("lgamma_r", 4))
    },
    **{f"remquo{suffix}": (Effect("write", 2, bytes=4),) for suffix in ("", "f", "l")},
    **{
        f"sincos{suffix}": (Effect("write", 1, bytes=size), Effect("write", 2, bytes=size))
        for suffix, size in (("", 8), ("f", 4), ("l", 16))
    },
    "_ZSt29_Rb_tree_insert_and_rebalancebPSt18_Rb_tree_node_baseS0_RS_": tuple(
        Effect("write", at, bytes=32) for at in (1, 2, 3)
    ),
    "_ZSt28_Rb_tree_rebalance_for_erasePSt18_Rb_tree_node_baseRS_": tuple(
        Effect("write", at, bytes=32) for at in (0, 1)
    ),
    "_ZNSt8__detail15_List_node_base7_M_hookEPS0_": (Effect("write", 0, bytes=16), Effect("list", 1)),
    "_ZNSt8__detail15_List_node_base9_M_unhookEv": (Effect("list", 0),),
    "_ZNSt8__detail15_List_node_base11_M_transferEPS0_S1_": tuple(Effect("list", at) for at in (0, 1, 2)),
    "_ZNSt8__detail15_List_node_base4swapERS0_S1_": tuple(Effect("list", at) for at in (0, 1)),
    "_ZSt11_Hash_bytesPKvmm": (Effect("read", 0, (1,)),),
    "thrd_join": (Effect("write", 1, bytes=4),),
    "time": (Effect("write", 0, bytes=8),),
    "gettimeofday": (Effect("write", 0, bytes=16), Effect("write", 1, bytes=8)),
    "clock_gettime": (Effect("write", 1, bytes=16),),
    "clock_getres": (Effect("write", 1, bytes=16),),
    "timespec_get": (Effect("write", 0, bytes=16),),
    "timespec_getres": (Effect("write", 0, bytes=16),),
    "times": (Effect("write", 0, bytes=32),),
    "getrusage": (Effect("write", 1, bytes=144),),
    "getcpu": (Effect("write", 0, bytes=4), Effect("write", 1, bytes=4)),
    "getrandom": (Effect("write", 0, (1,)),),
    "getentropy": (Effect("write", 0, (1,)),),
    "rand_r": (Effect("write", 0, bytes=4),),
    "erand48": (Effect("write", 0, bytes=6),),
    "nrand48": (Effect("write", 0, bytes=6),),
    "jrand48": (Effect("write", 0, bytes=6),),
    "stat": (Effect("read string", 0), Effect("write", 1, bytes=144)),
    "fstat": (Effect("write", 1, bytes=144),),
    "lstat": (Effect("read string", 0), Effect("write", 1, bytes=144)),
    "stat64": (Effect("read string", 0), Effect("write", 1, bytes=144)),
    "fstat64": (Effect("write", 1, bytes=144),),
    "lstat64": (Effect("read string", 0), Effect("write", 1, bytes=144)),
    "__cxa_guard_acquire": _GUARD,
    "__cxa_guard_release": _GUARD,
}

AFTER = ("wrote string", "scanned", "changed string")
"""Effects that are seen after the call."""

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
        "stat",
        "fstat",
        "lstat",
        "stat64",
        "fstat64",
        "lstat64",
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
        "atexit",
        "chdir",
        "ctime",
        "getopt",
        "getopt_long",
        "__posix_getopt",
        "gmtime",
        "localtime",
        "pthread_key_create",
        "pthread_key_delete",
        "readdir",
        "sem_open",
        "setlocale",
        "srand",
        "srand48",
        "srandom",
        "strerror",
        "strtok",
        "tss_create",
        "tss_delete",
    ]
)
"""Functions with a hidden state that threads share: the result depends on the calls of other threads."""

UNFOLLOWED = {
    "__kmpc_fork_call": "OpenMP",
    "__kmpc_fork_call_if": "OpenMP",
    "__kmpc_fork_teams": "OpenMP",
    "GOMP_parallel": "OpenMP",
}
"""Functions that run and synchronise threads inside of a library. This synchronisation is not recorded, so the order of
the events is unknown."""


def effects_of(name: str) -> tuple[Effect, ...]:
    """The effects of a function or an intrinsic.

    >>> effects_of("llvm.memcpy.p0.p0.i64")[0].access
    'copy'
    """
    if name.startswith("llvm."):
        name = ".".join(name.split(".")[:2])
    if name in EFFECTS:
        return EFFECTS[name]
    if (found := cpp_effects(name)) is not None:
        return found
    if CPP.fullmatch(name):
        # A member function: the object, and another one. Their first words are enough to see that threads share them.
        return (Effect("read" if name.startswith("_ZNK") else "write", 0, bytes=8), Effect("read", 1, bytes=8))
    return ()

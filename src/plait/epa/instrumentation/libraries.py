"""What is known of external functions, intrinsics and inline assembly, for local determinism (Definition 5, condition 1).

Everything that is not listed here or in `effects.py` is suspect: the verdict is inconclusive if it was executed.
"""

from __future__ import annotations

import re
from typing import Literal

from plait.epa.instrumentation.cpp import CPP, CPP_STREAMS, FILE_STREAMS
from plait.epa.instrumentation.effects import EFFECTS, NONDETERMINISTIC, PURE, STATEFUL

Knowledge = Literal["known", "nondeterministic", "stateful", "machine", "unknown"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_MATH = _words("""
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2 expm1 fabs fdim floor
    fma fmax fmin fmod frexp hypot ilogb ldexp lgamma_r llrint llround log log10 log1p log2 logb lrint lround modf
    nan nearbyint nextafter nexttoward pow remainder remquo rint round scalbln scalbn sin sincos sinh sqrt tan tanh
    tgamma trunc
""")
_OTHERS = _words("""
    abs labs llabs div ldiv lldiv isalnum isalpha isascii isblank iscntrl isdigit isgraph islower isprint ispunct
    isspace isupper isxdigit tolower toupper __ctype_b_loc __ctype_tolower_loc __ctype_toupper_loc ffs ffsl ffsll
    htonl htons ntohl ntohs bsearch exit _exit _Exit quick_exit abort __assert_fail __stack_chk_fail feof
    ferror clearerr fileno setvbuf setbuf pthread_attr_setstacksize pthread_attr_setscope pthread_attr_getstacksize
    pthread_attr_setaffinity_np pthread_setaffinity_np pthread_getspecific
    pthread_setspecific pthread_spin_init pthread_spin_destroy pthread_setconcurrency pthread_condattr_init
    pthread_condattr_destroy pthread_barrierattr_init pthread_barrierattr_destroy pthread_rwlockattr_init
    pthread_rwlockattr_destroy sem_init sem_destroy sem_post sem_wait sem_close thrd_create thrd_join
    thrd_equal thrd_exit thrd_yield thrd_sleep thrd_detach mtx_init mtx_lock mtx_unlock mtx_destroy cnd_init cnd_wait
    cnd_signal cnd_broadcast cnd_destroy call_once tss_get tss_set pthread_spin_lock
    pthread_spin_unlock pthread_setcancelstate pthread_setcanceltype pthread_sigmask sigaction signal sigemptyset
    sigfillset sigaddset sigdelset sigprocmask sched_setaffinity  tmpfile pause
    pthread_attr_setguardsize pthread_getattr_np pthread_attr_getstack mmap munmap
""")
_MACHINE = _words("""
    sysconf get_nprocs get_nprocs_conf getpagesize sched_getaffinity uname gethostname getenv secure_getenv getuid
    geteuid getgid getegid pthread_getaffinity_np _ZNSt6thread20hardware_concurrencyEv localeconv
    nl_langinfo getlogin getrlimit access  opendir readdir closedir getcwd
    mkdir rmdir
""")
"""Functions that tell something about the machine, its users or its files: it is an input that must not change."""
_PLAIN = _OTHERS | {f"{name}{suffix}" for name in _MATH for suffix in ("", "f", "l")}
_CHANCE = _words("""
    syscall clone clone3 mkstemp mkostemp mkdtemp tmpnam tempnam alarm ualarm setitimer timer_create timer_settime
    timerfd_create kill pthread_kill tgkill sigqueue sigwait sigwaitinfo sigtimedwait signalfd sigsuspend socket
    accept accept4 connect bind listen recv recvfrom recvmsg send sendto sendmsg socketpair getaddrinfo ppoll
    pselect epoll_pwait sem_getvalue thrd_current mtx_trylock mtx_timedlock cnd_timedwait timespec_get
    timespec_getres clock_getres clock_nanosleep ftime erand48 nrand48 jrand48 random_r getloadavg sysinfo wait3
    wait4 waitid popen system execl execv execve execvp posix_spawn posix_spawnp mallinfo mallinfo2
    malloc_usable_size malloc_stats backtrace backtrace_symbols dlopen dlsym dladdr pthread_spin_trylock
    pthread_rwlock_timedrdlock pthread_rwlock_timedwrlock pthread_getcpuclockid pthread_clockjoin_np _ZNSolsEPKv
    _ZNSo9_M_insertIPKvEERSoT_ getauxval shmget shmat shm_open mq_open mq_receive inotify_init io_setup ptrace
    personality
""")
"""More functions whose result the input does not determine."""
_INTRINSICS = _words("""
    abs annotation assume bitreverse bswap ceil copysign cos ctlz ctpop cttz dbg donothing eh exp exp10 exp2 expect
    fabs floor fma fmuladd fptosi fptoui fshl fshr instrprof invariant is launder lifetime llrint llround log log10
    log2 lrint lround maximum maxnum memcpy memmove memset minimum minnum nearbyint objectsize pow powi prefetch ptr
    ptrmask rint round roundeven sadd set sideeffect sin smax smin smul sqrt sshl ssub stackrestore stacksave strip
    threadlocal trap trunc uadd ubsantrap umax umin umul ushl usub va var vector get canonicalize is_fpclass
    debugtrap tan frexp ldexp fake
""")
"""LLVM intrinsics that are functions of their arguments, or have no effect on values: `llvm.NAME…`."""
_X86 = re.compile(r"llvm\.x86\.(?:sse|ssse|avx|fma|bmi|mmx|pclmul|aesni|f16c|sha)[\w.]*")
_X86_MEMORY = re.compile(
    r".*(?:gather|scatter|mask(?:load|store|mov)|ldu|mxcsr|monitor|mwait|clflush|\.(?:load|store)).*"
)
"""Those of `_X86` that access memory: their accesses are not recorded."""
_NO_EFFECT = frozenset(["", "nop", "pause", "rep nop", "rep; nop", "mfence", "lfence", "sfence"])


def assembly_is_harmless(text: str) -> bool:
    """Whether inline assembly does nothing but order accesses or wait.

    >>> assembly_is_harmless("pause"), assembly_is_harmless("lock xaddl $0, $1")
    (True, False)
    """
    text = re.sub(r"#[^\n]*|/\*.*?\*/", "", text.replace("\\0A", "\n").replace("\\09", " "))
    return all(part.strip() in _NO_EFFECT for part in re.split(r"[\n;]", text)) or text.strip() in _NO_EFFECT


def intrinsic_is_known(name: str) -> bool:
    """Whether an LLVM intrinsic is a function of its arguments, or has a recorded effect.

    >>> intrinsic_is_known("llvm.umul.with.overflow.i64"), intrinsic_is_known("llvm.x86.rdtsc")
    (True, False)
    """
    return name.split(".")[1] in _INTRINSICS or bool(_X86.fullmatch(name) and not _X86_MEMORY.fullmatch(name))


def knowledge(name: str) -> Knowledge:
    """What is known of an external function.

    >>> [knowledge(name) for name in ("sqrt", "getrandom", "strtok", "getenv", "frobnicate")]
    ['known', 'nondeterministic', 'stateful', 'machine', 'unknown']
    """
    if name.startswith("llvm."):
        return "known" if intrinsic_is_known(name) else "nondeterministic" if _timer(name) else "unknown"
    if name in NONDETERMINISTIC or name in _CHANCE:
        return "nondeterministic"
    if name in STATEFUL or FILE_STREAMS.fullmatch(name):
        return "stateful"
    if name in _MACHINE:
        return "machine"
    plain = name in PURE or name in EFFECTS or name in _PLAIN
    return "known" if plain or CPP_STREAMS.fullmatch(name) or CPP.fullmatch(name) else "unknown"


def _timer(name: str) -> bool:
    return any(word in name for word in ("rdtsc", "rdrand", "rdseed", "rdpid", "readcyclecounter", "readsteadycounter"))

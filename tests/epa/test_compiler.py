"""`plait-cc` and `plait-c++` in real builds: make, CMake, ar, ld -r. The oracle is clang: the same files, the same
output of the program. In addition, the program records itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from plait.epa.compiler.objects import members, modules
from plait.epa.instrumentation.toolchain import Toolchain, find
from plait.epa.recording import Recording
from plait.epa.reversibility import check
from plait.epa.run import run

BIN = Path(sys.executable).parent
FILES = {
    "main.c": """
        #include <stdio.h>
        #include "parts.h"
        int main(void) { printf("%d %d %s\\n", twice(factor), cpp_sum(3), MODE); return 0; }
        """,
    "parts.h": """
        extern int factor;
        int twice(int);
        int never(int);
        #ifdef __cplusplus
        extern "C"
        #endif
        int cpp_sum(int);
        """,
    "data.c": "int factor = 21;\nint unused[4] = {1, 2, 3, 4};\n",
    "twice.c": '#include "parts.h"\nint twice(int a) { return 2 * a; }\n',
    "never.c": '#include "parts.h"\nint missing(void);\nint never(int a) { return a + missing(); }\n',
    "sum.cpp": """
        #include <thread>
        #include <vector>
        #include "parts.h"
        int cpp_sum(int n) {
            std::vector<int> part(n);
            std::vector<std::thread> threads;
            for (int i = 0; i < n; i++) threads.emplace_back([&part, i] { part[i] = i * i; });
            int sum = 0;
            for (int i = 0; i < n; i++) threads[i].join(), sum += part[i];
            return sum;
        }
        """,
    "Makefile": """
        CFLAGS = -O2 -Wall -Werror -MMD -std=c11 '-DMODE="made"'
        CXXFLAGS = -O2 -Wall -Werror -MMD -std=c++17
        all: prog
        libparts.a: twice.o never.o data.o sum.o
        \t$(AR) rcs $@ $^
        prog: main.o libparts.a
        \t$(CXX) $(CXXFLAGS) $< -L. -lparts -o $@
        -include main.d twice.d never.d data.d sum.d
        """,
    "CMakeLists.txt": """
        cmake_minimum_required(VERSION 3.18)
        project(parts C CXX)
        set(CMAKE_C_STANDARD 99)
        set(CMAKE_CXX_STANDARD 20)
        find_package(Threads REQUIRED)
        add_library(parts STATIC twice.c never.c data.c sum.cpp)
        target_link_libraries(parts Threads::Threads)
        add_executable(prog main.c)
        target_compile_definitions(prog PRIVATE MODE="configured")
        target_link_libraries(prog parts)
        message(STATUS "compilers: ${CMAKE_C_COMPILER_ID} ${CMAKE_CXX_COMPILER_ID}")
        """,
}


@pytest.fixture
def clang(toolchain: int) -> Toolchain:
    return find(toolchain)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(textwrap.dedent(text).lstrip(), encoding="utf-8")
    return tmp_path


@pytest.fixture
def shell(toolchain: int, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command in the folder of the project, with plait-cc on the path."""

    def call(*command: str, code: int | None = 0) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "PLAIT_CLANG": str(toolchain)}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert code is None or done.returncode == code, done.stdout + done.stderr
        return done

    return call


Shell = Callable[..., subprocess.CompletedProcess[str]]


def recorded(program: Path) -> Recording:
    folder = program.parent / "trace"
    assert run(program, [], folder).code == 0
    return Recording(folder)


@pytest.mark.slow
def test_make(project: Path, shell: Shell) -> None:
    if shutil.which("make") is None:
        pytest.skip("make is not installed: apt-get install make")
    shell("make", "CC=plait-cc", "CXX=plait-c++")
    assert shell("./prog").stdout == "42 5 made\n"
    assert "parts.h" in (project / "main.d").read_text()
    assert shell("make", "CC=plait-cc", "CXX=plait-c++").stdout.count("plait-cc") == 0
    (project / "twice.c").write_text("int twice(int a) { return 3 * a; }\n")
    os.utime(project / "twice.c", (2e9, 2e9))
    again = shell("make", "CC=plait-cc", "CXX=plait-c++").stdout
    assert "twice.c" in again
    assert "main.c" not in again
    recording = recorded(project / "prog")
    assert recording.output == b"63 5 made\n"
    assert [t.name for t in recording.threads] == ["T_0", "T_0_0", "T_0_1", "T_0_2"]
    # never.o is in the archive, but the program does not use it: it would not even link.
    assert recording.table.sources == ["main.c", "twice.c", "data.c", "sum.cpp"]
    assert {s.file for s in recording.table.sites} >= {"main.c", "twice.c", "sum.cpp"}
    assert check(recording).verdict.status == "holds"


@pytest.mark.slow
def test_cmake(project: Path, shell: Shell) -> None:
    if shutil.which("cmake") is None or shutil.which("make") is None:
        pytest.skip("cmake or make is not installed: scripts/debian-packages.sh builds")
    compilers = ["-DCMAKE_C_COMPILER=plait-cc", "-DCMAKE_CXX_COMPILER=plait-c++", "-DCMAKE_BUILD_TYPE=Release"]
    configured = shell("cmake", "-G", "Unix Makefiles", "-B", "build", *compilers)
    assert "compilers: Clang Clang" in configured.stdout
    shell("cmake", "--build", "build")
    recording = recorded(project / "build" / "prog")
    assert recording.output == b"42 5 configured\n"
    assert len(recording.threads) == 4
    assert check(recording).verdict.status == "holds"


@pytest.mark.slow
def test_what_clang_does(project: Path, shell: Shell, clang: Toolchain) -> None:
    """Everything but compiling and linking programs is clang's own work."""
    for arguments in (
        ["--version"],
        ["-dumpmachine"],
        ["-E", "-P", "-DMODE=1", "main.c"],
        ["-MM", "main.c"],
        ["-fsyntax-only", "-Wall", "sum.cpp"],
        ["-c", "nosuch.c"],
        ["-c", "-DMODE=", "main.c"],  # an error in the source
        ["--unknown-option", "-c", "data.c"],
    ):
        ours, theirs = shell("plait-cc", *arguments, code=None), shell(clang.clang, *arguments, code=None)
        assert (ours.returncode, ours.stdout, ours.stderr) == (theirs.returncode, theirs.stdout, theirs.stderr)
    undefined = shell("plait-cc", "main.c", "data.c", '-DMODE="x"', "-o", "prog", code=1).stderr
    assert "main.c" in undefined
    assert "undefined reference to `twice'" in undefined
    assert not (project / "prog").exists()


@pytest.mark.slow
def test_objects(project: Path, shell: Shell) -> None:
    """Objects from assembly, ld -r, thin archives, response files and several sources at once are instrumented."""
    shell("plait-cc", "-S", "twice.c", "-o", "twice.s")
    shell("plait-cc", "-c", "twice.s", "data.c")
    shell("plait-c++", "-c", "-std=c++14", "sum.cpp")
    assert [len(modules((project / f"{n}.o").read_bytes())) for n in ("twice", "data", "sum")] == [1, 1, 1]
    shell("ld", "-r", "twice.o", "data.o", "-o", "both.o")
    assert len(modules((project / "both.o").read_bytes())) == 2
    shell("ar", "rcsT", "libthin.a", "both.o", "sum.o")
    assert [m.name for m in members(project / "libthin.a")] == ["both.o", "sum.o"]
    (project / "arguments").write_text("main.c -DMODE='\"x\"' libthin.a")
    shell("plait-c++", "-xc", "main.c", '-DMODE="x"', "-xnone", "libthin.a", "-o", "one")
    shell("plait-cc", "@arguments", "-lstdc++", "-o", "two")
    for name in ("one", "two"):
        recording = recorded(project / name)
        assert recording.output == b"42 5 x\n"
        assert {s.function for s in recording.table.sites} >= {"main", "twice", "cpp_sum"}


@pytest.mark.slow
def test_names_of_archive_members(project: Path, shell: Shell) -> None:
    """Two members with one name are possible, if the program uses both."""
    for folder, source in (("a", "twice.c"), ("b", "data.c")):
        (project / folder).mkdir()
        shell("plait-cc", "-c", source, "-o", f"{folder}/a_name_that_is_longer_than_sixteen.o")
    shell("ar", "qcs", "lib.a", *(f"{f}/a_name_that_is_longer_than_sixteen.o" for f in ("a", "b")))
    main = "int twice(int); extern int factor;\nint main(void) { return twice(factor) != 42; }\n"
    (project / "uses_both.c").write_text(main)
    shell("plait-cc", "uses_both.c", "lib.a", "-o", "prog")
    assert recorded(project / "prog").table.sources == ["uses_both.c", "twice.c", "data.c"]
    (project / "uses_one.c").write_text("int twice(int);\nint main(void) { return twice(0); }\n")
    said = shell("plait-cc", "uses_one.c", "lib.a", "-o", "prog", code=1).stderr
    assert "lib.a has 2 members a_name_that_is_longer_than_sixteen.o, and the program does not use all" in said


@pytest.mark.slow
def test_libraries_and_static_programs(project: Path, shell: Shell) -> None:
    """A shared library is linked as usual: its functions are external. A static program is refused."""
    (project / "main2.c").write_text("int twice(int);\nint main(void) { return twice(0); }\n")
    shell("plait-cc", "-shared", "-fPIC", "twice.c", "-o", "libtwice.so")
    shell("plait-cc", "main2.c", "-L.", "-ltwice", f"-Wl,-rpath,{project}", "-o", "prog")
    recording = recorded(project / "prog")
    assert recording.table.sources == ["main2.c"]
    assert "twice" in check(recording).unseen
    said = shell("plait-cc", "-static", "main2.c", "twice.c", "-o", "static", code=1).stderr
    assert "a static program cannot record itself" in said
    assert "Traceback" not in said
    assert "is not a version of clang" in shell("env", "PLAIT_CLANG=x", "plait-cc", "-v", code=1).stderr


QUEUE = """
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>
std::mutex lock; std::condition_variable ready; std::queue<int> jobs; bool over; int done[8];
void work() {
    for (;;) {
        std::unique_lock<std::mutex> hold(lock);
        ready.wait(hold, [] { return over || !jobs.empty(); });
        if (jobs.empty()) return;
        int job = jobs.front(); jobs.pop(); hold.unlock();
        done[job] = job * job;
    }
}
int main() {
    std::vector<std::thread> pool;
    for (int i = 0; i < 2; i++) pool.emplace_back(work);
    for (int i = 0; i < 8; i++) { std::lock_guard<std::mutex> hold(lock); jobs.push(i); ready.notify_one(); }
    { std::lock_guard<std::mutex> hold(lock); over = true; ready.notify_all(); }
    for (auto &t : pool) t.join();
    int sum = 0; for (int d : done) sum += d;
    std::printf("%d\\n", sum);
}
"""
SHARED = """
#include <cstdio>
#include <memory>
#include <thread>
int main() {
    auto p = std::make_shared<int>(4); int r[2];
    std::thread a([&r, p]() mutable { r[0] = *p; p.reset(); }), b([&r, p]() mutable { r[1] = *p + 1; p.reset(); });
    a.join(); b.join();
    std::printf("%d\\n", r[0] + r[1]);
}
"""
C11 = """
#include <stdio.h>
#include <threads.h>
int part[3], log_[3], next; mtx_t lock;
int work(void *given) {
    int i = (int)(long)given;
    part[i] = i + 1;
#ifdef LOG
    mtx_lock(&lock); log_[next++] = i; mtx_unlock(&lock);
#endif
    return i;
}
int main(void) {
    thrd_t t[3]; int sum = 0, result;
    mtx_init(&lock, mtx_plain);
    for (long i = 0; i < 3; i++) thrd_create(&t[i], work, (void *)i);
    for (int i = 0; i < 3; i++) thrd_join(t[i], &result), sum += part[i] + result;
    printf("%d\\n", sum);
    return 0;
}
"""
OPENMP = """
#include <stdio.h>
int main(void) {
    int a[8], s = 0;
    #pragma omp parallel for num_threads(4)
    for (int i = 0; i < 8; i++) a[i] = i * i;
    for (int i = 0; i < 8; i++) s += a[i];
    printf("%d\\n", s);
    return 0;
}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "flags", "source", "output", "status", "reason"),
    [
        ("a.c", "-std=c11", C11, "9", "holds", ""),
        ("a.c", "-std=c17 -DLOG", C11, "9", "violated", "both access next"),
        ("a.cpp", "-std=c++17", QUEUE, "140", "violated", "can occur in reversed order"),
        ("a.cpp", "-std=c++20", SHARED, "9", "violated", "atomicity.h"),
        ("a.c", "-fopenmp", OPENMP, "140", "inconclusive", "OpenMP synchronises threads inside its library"),
    ],
    ids=["c11", "c11-log", "queue", "shared_ptr", "openmp"],
)
def test_threads(
    name: str, flags: str, source: str, output: str, status: str, reason: str, tmp_path: Path, shell: Shell
) -> None:
    """Threads of all kinds are recorded. The check accepts the program, or gives the true reason why it does not."""
    (tmp_path / name).write_text(source)
    done = shell("plait-c++" if name == "a.cpp" else "plait-cc", *flags.split(), name, "-o", "prog", code=None)
    if "omp" in done.stderr and done.returncode:
        pytest.skip("OpenMP is not installed: scripts/debian-packages.sh builds")
    assert done.returncode == 0, done.stderr
    recording = recorded(tmp_path / "prog")
    assert recording.output.decode() == f"{output}\n"
    assert len(recording.threads) > 2
    found = check(recording).verdict
    assert found.status == status
    assert reason in f"{found.message} {found.bound}"
    if status == "inconclusive":
        assert found.trace is None

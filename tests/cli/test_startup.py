"""What a command imports. `plait bench startup` measures the time; here, that nothing heavy comes along."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUN = """
import sys
import _plait_main
sys.argv = ["plait", *sys.argv[1:]]
_plait_main.main()
print("MODULES", *sys.modules)
"""
COUNTER = """int x = 0;
process adder[id in 1..2] { int t = 0; t = x; x = t + 1; }
always small: x <= 2;
"""
LOCKED = """#include <assert.h>
#include <pthread.h>
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
int x = 0;
void *add(void *unused) { pthread_mutex_lock(&m); x++; pthread_mutex_unlock(&m); return 0; }
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, add, 0);
    add(0);
    pthread_join(t, 0);
    assert(x == 2);
    return 0;
}
"""
THREADS = """import threading

total = 0

def add():
    global total
    total = total + 1

def main():
    thread = threading.Thread(target=add)
    thread.start()
    thread.join()
    assert total == 1
"""


def modules(folder: Path, *arguments: str) -> set[str]:
    """The modules that a command imports."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
    )
    assert "Traceback" not in done.stderr
    return set(done.stdout.rpartition("MODULES ")[2].split())


def roots(found: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in found}


def rooms(found: set[str]) -> set[str]:
    return {name.split(".")[1] for name in found if name.startswith("plait.")}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text"), [("counter.plait", COUNTER), ("locked.c", LOCKED), ("threads.py", THREADS)], ids=lambda t: t[:9]
)
def test_bmc_imports_no_solver_and_no_engine(tmp_path: Path, name: str, text: str) -> None:
    if name.endswith(".c"):
        pytest.importorskip("clang")
    (tmp_path / name).write_text(text)
    target = f"{name}:main" if name.endswith(".py") else name
    found = modules(tmp_path, "bmc", target, "--quiet")
    assert "plait.bmc.api" in found
    assert not roots(found) & {"z3", "lark", "rich", "multiprocessing"}
    assert rooms(found).isdisjoint({"check", "bench", "explore", "protocols", "rounds", "epa", "gyro"})
    if not name.endswith(".py"):  # its front end shares code with models. Otherwise, only the registry of readers.
        assert {n for n in found if n.startswith("plait.model.")} <= {
            "plait.model.loading",
            "plait.model.loading.readers",
        }
    assert not {n for n in found if n.startswith("plait.bmc.encoding")}
    if not name.endswith(".plait"):
        assert "plait.bmc.language.compiler" not in found


@pytest.mark.slow
def test_help_imports_no_model(tmp_path: Path) -> None:
    found = modules(tmp_path, "--help")
    assert rooms(found) <= {"cli", "kernel", "model"}
    assert {n for n in found if n.startswith("plait.model.")} <= {"plait.model.loading", "plait.model.loading.readers"}


def test_public_names_can_be_listed_and_imported() -> None:
    import plait
    import plait.bmc

    for package in (plait, plait.bmc):
        assert set(package.__all__) <= set(dir(package))
        assert all(getattr(package, name) is not None for name in package.__all__)
        with pytest.raises(AttributeError, match="no_such_name"):
            package.no_such_name  # noqa: B018

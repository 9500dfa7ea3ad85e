"""Exceptions that `finally` ends, and those of tasks. CPython runs the programs with one thread as well, as the oracle."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from plait.kernel.errors import PlaitError
from tests.bmc.python.programs import HEADER, load_text, violations

FINALLY: dict[str, str] = {
    "return": """
        def inner():
            try:
                raise KeyError
            finally:
                return 5
        def main():
            return inner()
    """,
    "break and continue": """
        def main():
            n = 0
            while True:
                try:
                    raise KeyError
                finally:
                    break
            for i in range(3):
                try:
                    if i != 1:
                        raise KeyError
                    n += 1
                finally:
                    n += 10
                    continue
            return n
    """,
    "another exception": """
        def main():
            try:
                try:
                    raise KeyError
                finally:
                    raise ValueError
            except ValueError:
                return 1
    """,
    "an exception of a call": """
        def inner():
            try:
                raise KeyError
            finally:
                queue.Queue().get_nowait()
        def main():
            try:
                inner()
            except queue.Empty:
                return 3
    """,
    "sometimes": """
        def inner(n):
            try:
                if n == 0:
                    raise KeyError
                if n == 1:
                    raise ValueError
                return 1
            except ValueError:
                return 2
            finally:
                if n == 2:
                    return 7
        def main():
            found = inner(1) + 10 * inner(2) + 100 * inner(3)
            try:
                inner(0)
            except KeyError:
                found += 1000
            return found
    """,
}


@pytest.mark.parametrize("name", FINALLY)
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_finally_ends_an_exception(name: str, tmp_path: Path) -> None:
    text = textwrap.dedent(FINALLY[name])
    names: dict[str, Any] = {}
    exec(HEADER + text, names)
    result = names["main"]()
    assert violations(load_text(tmp_path, f"{text}\ndef test():\n    assert main() == {result}\n", "test")) == set()
    wrong = f"{text}\ndef test():\n    assert main() != {result}\n"
    assert violations(load_text(tmp_path, wrong, "test")) == {"assertions"}


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_finally_that_does_not_return_keeps_the_exception(tmp_path: Path) -> None:
    text = """
    def main():
        n = random.randint(0, 1)
        try:
            raise KeyError
        finally:
            if n == 2:
                return
    """
    assert violations(load_text(tmp_path, text)) == {"assertions"}


TASK = """
    async def work():
        await asyncio.sleep(0)
        raise ValueError
"""
CAUGHT: dict[str, str] = {
    "await": """
    async def main():
        t = asyncio.create_task(work())
        try:
            await t  # here
        except ValueError:
            await asyncio.Event().wait()
    """,
    "gather": """
    async def main():
        try:
            await asyncio.gather(work())  # here
        except ValueError:
            await asyncio.Event().wait()
    """,
    "a call between": """
    async def inner(t):
        await t  # here
    async def main():
        try:
            await inner(asyncio.create_task(work()))
        except Exception:
            await asyncio.Event().wait()
    """,
    "through a task": """
    async def inner():
        await asyncio.create_task(work())
    async def main():
        t = asyncio.create_task(inner())
        try:
            await t  # here
        except ValueError:
            pass
    """,
    "finally": """
    async def main():
        t = asyncio.create_task(work())
        try:
            await t  # here
        finally:
            return
    """,
    "with": """
    class Guard:
        def __enter__(self):
            pass
        def __exit__(self, *exception):
            return True
    async def main():
        t = asyncio.create_task(work())
        with Guard():
            await t  # here
    """,
    "group": """
    async def main():
        try:
            async with asyncio.TaskGroup() as group:  # here
                group.create_task(work())
        except Exception:
            pass
    """,
    "in a group": """
    async def main():
        try:
            async with asyncio.TaskGroup() as group:
                raise KeyError  # here
        except KeyError:
            pass
    """,
    "executor": """
    def fail():
        raise ValueError
    def main():
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            future = pool.submit(fail)
            try:
                future.result()  # here
            except ValueError:
                pass
    """,
}


@pytest.mark.parametrize("name", CAUGHT)
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_exception_of_a_task_that_others_catch_is_refused(name: str, tmp_path: Path) -> None:
    text = textwrap.dedent(f"    import concurrent.futures\n{TASK}{CAUGHT[name]}")
    number = next(n for n, line in enumerate((HEADER + text).splitlines(), 1) if "# here" in line)
    with pytest.raises(PlaitError, match=f"line {number}, .* caught") as caught:
        load_text(tmp_path, text)
    assert caught.value.hint


def test_exception_of_a_task_that_nobody_catches(tmp_path: Path) -> None:
    text = """
    async def main():
        t = asyncio.create_task(work())
        try:
            await t
        except KeyError:
            pass
    """
    assert violations(load_text(tmp_path, TASK + text)) == {"assertions"}


def test_exception_that_the_task_catches(tmp_path: Path) -> None:
    text = """
    async def inner():
        try:
            await work()
        except ValueError:
            return 4
    async def main():
        try:
            assert await asyncio.create_task(inner()) == 4
        except ValueError:
            assert False
    """
    assert violations(load_text(tmp_path, TASK + text)) == set()


@pytest.mark.parametrize("body", ["return True", "return self.n", "if kind is not None:\n                self.n = 1"])
def test_exit_that_uses_an_exception_is_refused(body: str, tmp_path: Path) -> None:
    text = f"""
    class Guard:
        def __init__(self):
            self.n = 0
        def __enter__(self):
            return self
        def __exit__(self, kind, value, trace):
            {body}
    def main():
        try:
            with Guard():
                raise KeyError
        except KeyError:
            pass
    """
    with pytest.raises(PlaitError, match="KeyError may leave a `with` whose __exit__ uses the exception"):
        load_text(tmp_path, text)
    # Without an exception, there is nothing to see.
    assert violations(load_text(tmp_path, text.replace("raise KeyError", "pass"))) == set()
    fine = text.replace(body, "return False").replace("pass", "assert False")
    assert violations(load_text(tmp_path, fine)) == {"assertions"}


def test_raise_again(tmp_path: Path) -> None:
    text = """
    def main():
        n = random.randint(0, 1)
        found = 0
        try:
            try:
                if n:
                    raise KeyError
                raise IndexError
            except Exception:
                raise
        except LookupError:
            found = 1
        assert found
    """
    with pytest.raises(PlaitError, match="the exception that is raised again is IndexError or KeyError"):
        load_text(tmp_path, text)
    assert violations(load_text(tmp_path, text.replace("IndexError", "KeyError"))) == set()

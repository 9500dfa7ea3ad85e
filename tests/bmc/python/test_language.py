"""Each construct of the language: a program whose assertions hold, and a mutant that violates a known check."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.bmc.python.programs import load_text, violations


class Case(NamedTuple):
    """A program, and a change of its text that violates a check."""

    text: str
    old: str
    new: str
    check: str = "assertions"


CASES: dict[str, Case] = {
    "iteration of a dict": Case(
        """
        lock = threading.Lock()
        table = {1: 1}
        def add():
            with lock:
                table[2] = 2
        def read():
            with lock:
                for key in table:
                    assert table[key] == key
        def main():
            run(add, read)
        """,
        """with lock:
                for""",
        """if True:
                for""",
    ),
    "numbers with names": Case(
        """
        class Level(enum.IntEnum):
            LOW = 1
            HIGH = 5
        def main():
            assert Level.HIGH - Level.LOW == 4 and Level.LOW == 1
        """,
        "HIGH = 5",
        "HIGH = 6",
    ),
    "executor": Case(
        """
        from concurrent.futures import ThreadPoolExecutor
        running = 0
        lock = threading.Lock()
        def square(n):
            global running
            with lock:
                running += 1
            assert running <= 2
            with lock:
                running -= 1
            return n * n
        def main():
            with ThreadPoolExecutor(max_workers=2) as pool:
                futures = [pool.submit(square, i) for i in range(3)]
                assert [f.result() for f in futures] == [0, 1, 4]
        """,
        "max_workers=2",
        "max_workers=3",
    ),
    "tasks": Case(
        """
        async def child(gate, out, n):
            async with gate:
                out.append(n)
                await asyncio.sleep(0)
                out.append(n)
            return n
        async def main():
            gate = asyncio.Semaphore(1)
            out = []
            first = asyncio.create_task(child(gate, out, 1))
            second = asyncio.create_task(child(gate, out, 2))
            assert await first + await second == 3
            assert out == [1, 1, 2, 2] or out == [2, 2, 1, 1]
        """,
        "Semaphore(1)",
        "Semaphore(2)",
    ),
    "condition of asyncio": Case(
        """
        async def main():
            items = []
            ready = asyncio.Condition()
            async def consumer():
                async with ready:
                    await ready.wait_for(lambda: items)
                    return items.pop()
            task = asyncio.create_task(consumer())
            await asyncio.sleep(0)
            async with ready:
                items.append(4)
                ready.notify()
            assert await task == 4
        """,
        "ready.notify()",
        "pass",
        "deadlock",
    ),
    "event and queue of asyncio": Case(
        """
        async def main():
            queue = asyncio.Queue(maxsize=1)
            done = asyncio.Event()
            async def consumer():
                total = 0
                for _ in range(3):
                    total += await queue.get()
                    queue.task_done()
                done.set()
                return total
            async with asyncio.TaskGroup() as group:
                task = group.create_task(consumer())
                for i in range(3):
                    await queue.put(i)
                await done.wait()
            assert task.result() == 3
        """,
        "for _ in range(3)",
        "for _ in range(4)",
        "deadlock",
    ),
    "no switch without suspension": Case(
        """
        count = 0
        async def add(n):
            return n + 1
        async def work():
            global count
            before = count
            count = await add(before)
        async def main():
            await asyncio.gather(*[work() for _ in range(3)])
            assert count == 3
        """,
        "return n + 1",
        "await asyncio.sleep(0); return n + 1",
    ),
    "asyncio.run": Case(
        """
        def main():
            async def work():
                await asyncio.sleep(1)
                return 5
            assert asyncio.run(work()) == 5
        """,
        "== 5",
        "== 6",
    ),
    "kwargs of a thread": Case(
        """
        seen = []
        def work(a, b):
            seen.append(a - b)
        def main():
            t = Thread(target=work, args=(5,), kwargs={"b": 2})
            t.start()
            t.join()
            assert seen == [3]
        """,
        "args=(5,)",
        "args=(6,)",
    ),
    "old style of thread class": Case(
        """
        class Worker(Thread):
            def __init__(self, results):
                Thread.__init__(self, name="worker")
                self.results = results
            def run(self):
                self.results.append(1)
        def main():
            results = []
            w = Worker(results)
            w.start()
            w.join()
            assert results == [1]
        """,
        "w.join()",
        "pass",
    ),
    "arithmetic of lists": Case(
        """
        def main():
            a = [1] * 2 + [2]
            a += [3]
            a.extend((4, 5))
            assert a == [1, 1, 2, 3, 4, 5]
        """,
        "(4, 5)",
        "(4, 6)",
    ),
    "attribute that is set late": Case(
        """
        class Box:
            def __init__(self):
                self.filled = threading.Event()
        box = Box()
        def fill():
            box.item = 3
            box.filled.set()
        def use():
            box.filled.wait()
            assert box.item == 3
        def main():
            run(fill, use)
        """,
        "box.filled.wait()",
        "pass",
    ),
    "closure": Case(
        """
        def main():
            total = 0
            lock = threading.Lock()
            def work():
                nonlocal total
                with lock:
                    total += 1
            run(work, work)
            assert total == 2
        """,
        "with lock:",
        "if True:",
    ),
    "global": Case(
        """
        counter = 5
        lock = threading.Lock()
        def work():
            global counter
            lock.acquire()
            counter = counter * 2
            lock.release()
        def main():
            run(work, work)
            assert counter == 20
        """,
        "lock.release()",
        "pass",
        "deadlock",
    ),
    "thread subclass": Case(
        """
        class Worker(Thread):
            def __init__(self, n):
                super().__init__()
                self.n = n
                self.result = None
            def run(self):
                self.result = self.n * self.n
        def main():
            workers = [Worker(i) for i in range(3)]
            for w in workers:
                w.start()
            for w in workers:
                w.join()
            assert [w.result for w in workers] == [0, 1, 4]
        """,
        "    w.join()",
        "    pass",
    ),
    "condition": Case(
        """
        class Box:
            def __init__(self):
                self.item = None
                self.ready = threading.Condition()
            def put(self):
                with self.ready:
                    self.item = 7
                    self.ready.notify()
            def get(self):
                with self.ready:
                    while self.item is None:
                        self.ready.wait()
                    assert self.item == 7
        def main():
            box = Box()
            run(box.put, box.get)
        """,
        "self.ready.notify()",
        "pass",
        "deadlock",
    ),
    "wait_for": Case(
        """
        items = []
        ready = threading.Condition()
        def put():
            with ready:
                items.append(3)
                ready.notify_all()
        def get():
            with ready:
                ready.wait_for(lambda: len(items) > 0)
                assert items[0] == 3
        def main():
            run(get, put, get)
        """,
        "notify_all",
        "notify",
        "deadlock",
    ),
    "event": Case(
        """
        value = 0
        done = threading.Event()
        def first():
            global value
            value = 1
            done.set()
        def second():
            done.wait()
            assert value == 1
        def main():
            run(first, second)
        """,
        "done.wait()",
        "done.is_set()",
    ),
    "semaphore": Case(
        """
        inside = 0
        gate = threading.Semaphore(1)
        def work():
            global inside
            with gate:
                inside += 1
                assert inside == 1
                inside -= 1
        def main():
            run(work, work)
        """,
        "Semaphore(1)",
        "Semaphore(2)",
    ),
    "bounded semaphore": Case(
        """
        gate = threading.BoundedSemaphore(2)
        def main():
            gate.acquire()
            gate.release()
        """,
        "gate.acquire()",
        "gate.acquire(); gate.release()",
        "locks",
    ),
    "barrier": Case(
        """
        arrived = [0, 0]
        barrier = threading.Barrier(2)
        def work(me):
            arrived[me] = 1
            barrier.wait()
            assert arrived[1 - me] == 1
        def main():
            a = Thread(target=work, args=(0,))
            b = Thread(target=work, args=(1,))
            a.start(); b.start(); a.join(); b.join()
        """,
        "barrier.wait()",
        "pass",
    ),
    "queue": Case(
        """
        work = queue.Queue(maxsize=1)
        def producer():
            for i in range(3):
                work.put(i)
            work.put(None)
        def main():
            t = Thread(target=producer)
            t.start()
            seen = []
            while True:
                item = work.get()
                if item is None:
                    break
                seen.append(item)
            assert seen == [0, 1, 2]
            t.join()
        """,
        "work.put(None)",
        "pass",
        "deadlock",
    ),
    "queue nowait": Case(
        """
        jobs = queue.Queue()
        done = []
        def work():
            while True:
                try:
                    job = jobs.get_nowait()
                except queue.Empty:
                    return
                done.append(job)
                jobs.task_done()
        def main():
            for i in range(3):
                jobs.put(i)
            run(work, work)
            jobs.join()
            assert len(done) == 3 and sum(done) == 3
        """,
        "except queue.Empty",
        "except queue.Full",
    ),
    "lifo queue": Case(
        """
        stack = queue.LifoQueue()
        def main():
            stack.put(1)
            stack.put(2)
            assert stack.get() == 2
            assert stack.get() == 1
            assert stack.empty()
        """,
        "LifoQueue",
        "Queue",
    ),
    "rlock": Case(
        """
        lock = threading.RLock()
        def inner():
            with lock:
                return 3
        def main():
            with lock:
                assert inner() == 3
        """,
        "RLock",
        "Lock",
        "deadlock",
    ),
    "try lock": Case(
        """
        lock = threading.Lock()
        taken = 0
        def work():
            global taken
            if lock.acquire(blocking=False):
                taken += 1
                assert taken == 1
        def main():
            run(work, work)
            assert taken == 1
        """,
        "assert taken == 1",
        "assert taken == 0",
    ),
    "finally": Case(
        """
        lock = threading.Lock()
        def work(n):
            lock.acquire()
            try:
                if n:
                    return 1
                return 2
            finally:
                lock.release()
        def main():
            assert work(1) + work(0) == 3
        """,
        "finally:",
        "except ValueError:",
        "deadlock",
    ),
    "exception": Case(
        """
        class Failure(Exception):
            pass
        def check(n):
            if n > 2:
                raise Failure(f"too large: {n}")
            return n
        def main():
            found = 0
            try:
                found += check(1)
                found += check(3)
            except Failure as error:
                found += 10
            else:
                found += 100
            assert found == 11
        """,
        "except Failure",
        "except KeyError",
    ),
    "uncaught in thread": Case(
        """
        def work():
            numbers = {1: 2}
            numbers[3] = 4
            assert numbers[1] == 2
        def main():
            run(work)
        """,
        "numbers[1] == 2",
        "numbers[5] == 2",
        "bounds",
    ),
    "loops": Case(
        """
        def main():
            found = []
            for i in range(10):
                if i == 2:
                    continue
                if i == 5:
                    break
                found.append(i)
            else:
                found.append(99)
            assert found == [0, 1, 3, 4]
            n = 0
            while n < 3:
                n += 1
            else:
                n = 7
            assert n == 7
        """,
        "i == 5",
        "i == 6",
    ),
    "lists": Case(
        """
        def main():
            a = [3, 1, 2]
            a.append(5)
            assert a.pop() == 5 and a.pop(0) == 3
            a.insert(1, 9)
            assert a == [1, 9, 2]
            assert 9 in a and 4 not in a and a.index(2) == 2
            del a[1]
            a.remove(1)
            assert a == [2] and a[-1] == 2 and len(a) == 1
            assert max([4, 7, 5]) == 7 and min(1, 0) == 0 and sum([1, 2]) == 3
            assert all(x > 1 for x in a) and not any(x > 2 for x in a)
        """,
        "a.insert(1, 9)",
        "a.insert(2, 9)",
    ),
    "index error": Case(
        """
        def main():
            a = [1, 2]
            a[1] = 3
            assert a[1] == 3
        """,
        "a[1] = 3",
        "a[2] = 3",
        "bounds",
    ),
    "dicts": Case(
        """
        def main():
            d = {"a": 1}
            d["b"] = 2
            d["a"] += 5
            assert d["a"] == 6 and d.get("c") is None and d.get("c", 4) == 4
            total = 0
            for key, value in d.items():
                total += value
            assert total == 8 and "a" in d
            assert d.pop("a") == 6
            assert "a" not in d and len(d) == 1
            for key in d:
                assert key == "b"
        """,
        'd["a"] += 5',
        'd["a"] += 4',
    ),
    "sets and deques": Case(
        """
        def main():
            s = {1, 2}
            s.add(2)
            s.discard(1)
            assert 2 in s and len(s) == 1
            d = collections.deque()
            d.append(1)
            d.append(2)
            d.appendleft(0)
            assert d.popleft() == 0 and d.pop() == 2
        """,
        "s.discard(1)",
        "s.discard(2)",
    ),
    "classes": Case(
        """
        class Shape:
            sides = 0
            def __init__(self, size):
                self.size = size
            def area(self):
                return 0
            @property
            def double(self):
                return self.area() * 2
        class Square(Shape):
            sides = 4
            def area(self):
                return self.size * self.size
        class Line(Shape):
            def __init__(self, size):
                super().__init__(size + 1)
        def main():
            shapes = [Square(3), Line(4)]
            total = 0
            for shape in shapes:
                total += shape.double + shape.size
            assert total == 26 and Square.sides == 4 and shapes[1].sides == 0
        """,
        "super().__init__(size + 1)",
        "super().__init__(size)",
    ),
    "dataclass": Case(
        """
        @dataclasses.dataclass
        class Point:
            x: int
            y: int = 2
            seen: list = dataclasses.field(default_factory=list)
        def main():
            p = Point(1)
            q = Point(3, y=4)
            p.seen.append(q.x)
            assert p.x + p.y == 3 and q.x + q.y == 7 and len(q.seen) == 0 and p.seen[0] == 3
        """,
        "y: int = 2",
        "y: int = 1",
    ),
    "class attribute": Case(
        """
        class Counter:
            made = 0
            lock = threading.Lock()
            @classmethod
            def make(cls):
                with cls.lock:
                    cls.made += 1
            @staticmethod
            def twice(n):
                return 2 * n
        def main():
            run(Counter.make, Counter.make)
            assert Counter.twice(Counter.made) == 4
        """,
        "with cls.lock:",
        "if True:",
    ),
    "enum and texts": Case(
        """
        class Light(enum.Enum):
            RED = 1
            GREEN = 2
        def main():
            light = Light.RED
            name = "red" if light is Light.RED else "green"
            light = Light.GREEN
            assert name == "red" and light != Light.RED
        """,
        "light = Light.GREEN",
        "pass",
    ),
    "tuples": Case(
        """
        def swap(pair):
            a, b = pair
            return b, a
        def main():
            x, y = swap((1, 2))
            x, y = y, x
            assert (x, y) == (1, 2)
            config = (x, 5)
            assert config[1] == 5
        """,
        "return b, a",
        "return a, b",
    ),
    "operators": Case(
        """
        def main():
            a, b = 7, -2
            assert a // b == -4 and a % b == -1 and a ** 2 == 49
            assert 1 < a <= 7 and not 7 < a < 9
            assert (a and 0) == 0 and (0 or a) == 7 and (None or 3) == 3
            assert a & 3 == 3 and a | 8 == 15 and a ^ 1 == 6 and a << 1 == 14 and a >> 1 == 3 and ~a == -8
            assert abs(b) == 2 and -b == 2
        """,
        "a % b == -1",
        "a % b == 1",
    ),
    "division": Case(
        """
        def main():
            n = random.randint(1, 3)
            assert 6 // n >= 2
        """,
        "randint(1, 3)",
        "randint(0, 3)",
        "division",
    ),
    "defaults and keywords": Case(
        """
        def add(a, b=2, *, c=3):
            return a + 10 * b + 100 * c
        def main():
            assert add(1) == 321 and add(1, c=0) == 21 and add(b=1, a=2) == 312
            assert (lambda x, y=1: x + y)(3) == 4
        """,
        "b=2",
        "b=1",
    ),
    "recursion": Case(
        """
        def factorial(n):
            if n < 2:
                return 1
            return n * factorial(n - 1)
        def main():
            assert factorial(4) == 24
        """,
        "== 24",
        "== 25",
    ),
    "optional": Case(
        """
        class Node:
            def __init__(self, value, following):
                self.value = value
                self.following = following
        def main():
            chain = Node(1, Node(2, Node(3, None)))
            total = 0
            while chain is not None:
                total += chain.value
                chain = chain.following
            assert total == 6
        """,
        "while chain is not None",
        "while True",
    ),
    "daemon": Case(
        """
        lock = threading.Lock()
        def work():
            lock.acquire()
            lock.acquire()
        def main():
            Thread(target=work, daemon=True).start()
        """,
        "daemon=True",
        "daemon=False",
        "deadlock",
    ),
    "join timeout": Case(
        """
        gate = threading.Event()
        def main():
            t = Thread(target=gate.wait)
            t.start()
            t.join(timeout=0.1)
            assert t.is_alive()
            gate.set()
            t.join()
            assert not t.is_alive()
        """,
        "t.join()",
        "t.join(timeout=1)",
    ),
    "context manager": Case(
        """
        class Counted:
            def __init__(self):
                self.inside = 0
            def __enter__(self):
                self.inside += 1
                return self
            def __exit__(self, *error):
                self.inside -= 1
        def main():
            c = Counted()
            with c as same:
                assert same.inside == 1
            assert c.inside == 0
        """,
        "self.inside -= 1",
        "pass",
    ),
    "wrong release": Case(
        """
        lock = threading.Lock()
        def main():
            lock.acquire()
            lock.release()
        """,
        "lock.acquire()",
        "pass",
        "locks",
    ),
    "module state": Case(
        """
        class Account:
            def __init__(self, balance):
                self.balance = balance
        accounts = {1: Account(5), 2: Account(7)}
        limits = [1, 2, 3]
        limits.append(4)
        def main():
            accounts[1].balance += 1
            assert accounts[1].balance + accounts[2].balance == 13
            assert len(limits) == 4 and limits[3] == 4
        """,
        "limits.append(4)",
        "limits.append(5)",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_holds(name: str, tmp_path: Path) -> None:
    assert violations(load_text(tmp_path, CASES[name].text)) == set()


@pytest.mark.parametrize("name", CASES)
def test_mutant_is_violated(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    assert case.old in case.text
    assert case.check in violations(load_text(tmp_path, case.text.replace(case.old, case.new)))

"""The language itself: programs whose assertions hold, each with a mutant."""

from __future__ import annotations

from tests.bmc.python.programs import Case

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
    "default arguments of nested functions": Case(
        """
        out = []
        def main():
            x = len(out) + 1
            def f(a=x, b=[], *, c=x):
                b.append(a)
                return len(b) * 10 + c
            x = 2
            assert f() == 11 and f() == 21 and f(5, [], c=3) == 13
            threads = [Thread(target=lambda i=i: out.append(i)) for i in range(2)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            assert out == [0, 1] or out == [1, 0]
        """,
        "lambda i=i:",
        "lambda i=x:",
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
    "functions in a comprehension share its variable": Case(
        """
        out = []
        def main():
            threads = [threading.Thread(target=lambda: out.append(n)) for n in range(2)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            assert out == [1, 1]
        """,
        "lambda: out",
        "lambda n=n: out",
    ),
    "each round of a loop defines a function": Case(
        """
        out = []
        def main():
            threads = []
            for n in range(2):
                def work(n=n):
                    out.append(n)
                threads.append(threading.Thread(target=work))
            for t in threads:
                t.start()
                t.join()
            assert out == [0, 1]
        """,
        "work(n=n)",
        "work()",
    ),
}

"""Random programs with threads or tasks: small statements over shared objects. `main` returns what it sees at the end."""

from __future__ import annotations

import random

_INDENT = "    "


class Writer:
    """Writes the body of a function."""

    def __init__(self, choice: random.Random, *, tasks: bool) -> None:
        self.random, self.tasks = choice, tasks
        self.depth = 0
        self.counters = 0

    def number(self) -> str:
        return str(self.random.randint(0, 3))

    def value(self) -> str:
        return self.random.choice(["s.x", "s.y", "t", self.number(), "total", "len(s.items)"])

    def test(self) -> str:
        operator = self.random.choice(["<", "==", ">", "!="])
        simple = f"{self.value()} {operator} {self.number()}"
        joined = f"{simple} {self.random.choice(['and', 'or'])} {self.value()} > {self.number()}"
        return self.random.choice([simple, simple, joined, "s.items", f"not {self.value()}"])

    def target(self) -> str:
        return self.random.choice(["s.x", "s.y", "t", "total"])

    def simple(self) -> list[str]:
        target = self.target()
        return self.random.choice(
            [
                [f"{target} = {self.value()} + {self.value()}"],
                [f"{target} += {self.number()}"],
                [f"{target} += {self.value()}"],
                [f"{target} -= 1"],
                [f"s.items.append({self.value()})"],
                ["if s.items:", _INDENT + f"{target} = s.items.pop()"],
                [f"s.pair = ({self.value()}, {self.value()})"],
                ["t, u = s.pair", f"{target} = t - u"],
                [f"s.table[{self.random.randint(0, 1)}] = {self.value()}"],
                [f"{target} = s.table.get({self.random.randint(0, 1)}, 5)"],
                [f"s.table[0] += {self.number()}"],
                [f"{target} = s.add({self.value()})"],
                [f"{target} = {self.value()} if {self.test()} else {self.value()}"],
            ]
        )

    def blocking(self) -> list[str]:
        """A statement that synchronizes."""
        wait = "await " if self.tasks else ""
        with_ = "async with" if self.tasks else "with"
        lock = self.random.choice(["s.a", "s.a", "s.b"])
        inner = [_INDENT + line for line in self.block(1 if self.tasks else 2)]
        ways = [
            [f"{with_} {lock}:", *inner],
            [f"{with_} {lock}:", *inner],
            [f"s.q.put_nowait({self.value()})"],
            ["if not s.q.empty():", _INDENT + f"{self.target()} = {wait}s.q.get()"],
            ["s.e.set()"],
            [f"{wait}s.e.wait()"],
            [f"{wait}s.gate.acquire()", *self.block(1), "s.gate.release()"],
            [f"{with_} s.c:", _INDENT + "s.x += 1", _INDENT + "s.c.notify_all()"],
            [f"{with_} s.c:", _INDENT + "if s.x == 0:", _INDENT * 2 + f"{wait}s.c.wait()"],
        ]
        if self.tasks:
            ways += [["await asyncio.sleep(0)"]] * 4
        else:
            ways.append([f"if {lock}.acquire(False):", *inner, _INDENT + f"{lock}.release()"])
        return self.random.choice(ways)

    def block(self, size: int) -> list[str]:
        """Some statements."""
        found: list[str] = []
        for _ in range(self.random.randint(1, size)):
            self.depth += 1
            kind = self.random.random()
            if kind < 0.15 and self.depth < 3:
                found += [f"if {self.test()}:", *self.inner(2), "else:", *self.inner(1)]
            elif kind < 0.22 and self.depth < 3:
                self.counters += 1
                found += [f"for i{self.counters} in range(2):", *self.inner(1)]
            elif kind < 0.27 and self.depth < 3:
                found += ["try:", *self.inner(1), *([_INDENT + "return"] if self.random.random() < 0.3 else [])]
                found += ["finally:", *[_INDENT + line for line in self.simple()]]
            elif kind < 0.55 and self.depth < 3:
                found += self.blocking()
            else:
                found += self.simple()
            self.depth -= 1
        return found

    def inner(self, size: int) -> list[str]:
        return [_INDENT + line for line in self.block(size)]


def random_program(seed: int, *, tasks: bool = False) -> str:
    """The text of a program."""
    choice = random.Random(seed)
    module = "asyncio" if tasks else "threading"
    queue = "asyncio.Queue()" if tasks else "queue.Queue()"
    define = "async def" if tasks else "def"
    lines = [
        "class Shared:",
        "    def __init__(self):",
        "        self.x = 0",
        "        self.y = 1",
        "        self.items = []",
        "        self.pair = (0, 1)",
        "        self.table = {0: 1}",
        f"        self.a = {module}.Lock()",
        f"        self.b = {module}.Lock()",
        f"        self.c = {module}.Condition()",
        f"        self.e = {module}.Event()",
        f"        self.gate = {module}.Semaphore(1)",
        f"        self.q = {queue}",
        "    def add(self, n):",
        "        self.y += n",
        "        return self.y",
        "",
        "total = 0",
        "",
    ]
    threads = choice.choice([2, 2, 2, 3])
    for n in range(threads):
        writer = Writer(choice, tasks=tasks)
        lines += [f"{define} work{n}(s, t):", "    global total", "    u = 0"]
        lines += [_INDENT + line for line in writer.block(4 if threads == 2 else 3)]
        lines += [""]
    lines += [f"{define} main():", "    s = Shared()"]
    if tasks:
        calls = ", ".join(f"work{n}(s, {n})" for n in range(threads))
        lines += [f"    await asyncio.gather({calls})"]
    else:
        made = ", ".join(f"threading.Thread(target=work{n}, args=(s, {n}))" for n in range(threads))
        lines += [f"    threads = [{made}]", "    for t in threads:", "        t.start()"]
        lines += ["    for t in threads:", "        t.join()"]
    lines += ["    result = (s.x, s.y, total, len(s.items), sum(s.items), s.q.qsize(), s.table[0])"]
    return "\n".join([*lines, "    return result", ""])


def with_assertion(text: str, outcome: tuple[int, ...]) -> str:
    """The program that asserts that the outcome is another one."""
    return text.replace("    return result\n", f"    assert result != {outcome}\n")

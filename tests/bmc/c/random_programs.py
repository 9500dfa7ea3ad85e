"""Random C programs, their outcomes when compiled with gcc and run, and the outcomes that the translation allows."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

from msgspec import structs

from plait.bmc import check
from plait.bmc.c.load import load_c
from plait.bmc.execution.interpreter import Interpreter
from plait.bmc.options import Encoding
from plait.bmc.program.arithmetic import operation, wrapped
from plait.bmc.program.definition import Constant, Ended, Expr, Property, Read
from plait.bmc.program.source import Place

TYPES = [
    "signed char",
    "unsigned char",
    "short",
    "unsigned short",
    "int",
    "unsigned",
    "long",
    "unsigned long",
    "_Bool",
    "long long",
]
CONSTANTS = ["0", "1", "2", "3", "7", "-1", "100", "127", "128", "255", "65535", "1000", "0x7fffffff", "40000u", "5L"]
CONSTANTS += ["0x80000000u", "0xffffffffffUL", "-70000", "'a'"]
BINARY = ["+", "-", "*", "&", "|", "^", "<", "<=", ">", ">=", "==", "!=", "&&", "||"]

_SECONDS = 15.0
"""The time of a search for an outcome: a solver may need longer, then the comparison is left out."""

Outcome = tuple[int, ...]


def kept(watched: list[str]) -> str:
    """Assign all variables once, so that the translation keeps them: those that nobody assigns are constants for it."""
    cells = {"a": "a[0]", "m": "m[0][0]", "arr": "arr[0]"}
    return " ".join(f"{cells.get(name, name)} = {cells.get(name, name)};" for name in watched)


def outcomes(source: str, folder: Path, watched: list[str]) -> set[Outcome]:
    """The final values of variables in all runs of the translated program."""
    file = folder / "program.c"
    file.write_text(source, encoding="utf-8")
    program = load_c(file)
    interpreter = Interpreter(program)
    named = {v.name: v for v in program.variables}
    found: set[Outcome] = set()
    seen = set(interpreter.initial_states())
    todo = list(seen)
    while todo:
        state = todo.pop()
        after = [taken.state for taken in interpreter.successors(state)]
        if not after:
            values: list[int] = []
            for name in watched:
                shown = interpreter.shown(state, named[name])
                values += shown if isinstance(shown, list) else [shown]
            found.add(tuple(wrapped(int(v), 64, True) for v in values))
        for next_ in after:
            if next_ not in seen:
                seen.add(next_)
                todo.append(next_)
    return found


def reachable(source: str, folder: Path, watched: list[str], outcome: Outcome, encoding: Encoding) -> bool | None:
    """Whether a search calls an outcome possible. None: it did not decide this in time."""
    file = folder / "program.c"
    file.write_text(source, encoding="utf-8")
    program = load_c(file)
    named = {v.name: v for v in program.variables}
    cells = [(named[name], k) for name in watched for k in range(named[name].cells)]
    wanted: Expr = Ended(0)
    for (variable, k), value in zip(cells, outcome, strict=True):
        exact = wrapped(value, variable.bits or 64, variable.signed)
        cell = Read(variable, None if variable.size is None else Constant(k))
        wanted = operation("&&", wanted, operation("==", cell, Constant(exact)))
    seen = Property("seen", "reachable", wanted, Place(1, 1))
    asked = structs.replace(program, properties=(seen,))
    status = check(asked, encoding=encoding, properties=["seen"], timeout=_SECONDS).properties[0].status
    return None if status == "inconclusive" else status == "holds"


def compiled(source: str, folder: Path) -> Path:
    """The executable that gcc makes of a program."""
    file, binary = folder / "program.c", folder / "program"
    file.write_text(source, encoding="utf-8")
    command = ["gcc", "-w", "-O0", "-fwrapv", "-pthread", "-DRUN", str(file), "-o", str(binary)]
    subprocess.run(command, check=True, capture_output=True)
    return binary


def run(binary: Path, seed: int) -> Outcome:
    """What one run of a program prints."""
    done = subprocess.run([str(binary), str(seed)], check=True, capture_output=True, text=True, timeout=60)
    return tuple(map(int, done.stdout.split()))


# -- sequential programs -------------------------------------------------------------------------------------------------


class Sequential:
    """A random program with one thread, all kinds of statements and expressions, and one outcome."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.variables = {f"g{n}": self.random.choice(TYPES) for n in range(5)}
        self.names = [*self.variables, "s.a", "s.in.b", "a[1]"]
        self.loops = 0
        self.watched = [*self.variables, "s.a", "s.in.b", "a", "m"]

    def source(self) -> str:
        """The text of the program."""
        r = self.random
        lines = ["#include <stdio.h>", "#include <stdlib.h>"]
        lines += [f"{t} {name} = {r.choice(CONSTANTS)};" for name, t in self.variables.items()]
        lines += ["struct inner { short b; };", "struct outer { long a; struct inner in; } s = {3, {4}}, z;"]
        lines += ["int a[4] = {1, -2, [3] = 9}, m[2][3] = {{1, 2}, {3}};", "int *p = &a[1];"]
        lines += [f"static {r.choice(TYPES)} f(int x, {r.choice(TYPES)} y) {{"]
        self.names.append("x")
        self.names.append("y")
        lines += [f"  static int calls; calls++; {self.statement(1)}", f"  return {self.expression(2)} + calls; }}"]
        lines += ["static void g(int *q, struct outer *o) { *q += 3; o->in.b = o->in.b + *q; z = *o; o->a -= z.in.b; }"]
        del self.names[-2:]
        lines += ["int main(void) {", "  int i, n; unsigned char l = 3; long k = -5;"]
        lines += ["  int u[3]; struct outer o, y; long *h = malloc(2 * sizeof(long)); h[1] = -7; y.a = 2; o = y;"]
        lines += ["  for (i = 0; i < 3; i++) u[i] = i; o.in.b = 1; *h = 8;"]
        self.names += ["l", "k", "u[0]", "u[2]", "o.a", "o.in.b", "y.a", "h[1]", "*h"]
        lines += [f"  {self.statement(3)}" for _ in range(r.randint(4, 9))]
        lines.append(f"  {kept(self.watched)}")
        for name in self.watched:
            if name == "a":
                lines.append('  for (i = 0; i < 4; i++) printf("%lld ", (long long)a[i]);')
            elif name == "m":
                lines.append('  for (i = 0; i < 6; i++) printf("%lld ", (long long)m[i / 3][i % 3]);')
            else:
                lines.append(f'  printf("%lld ", (long long){name});')
        lines += ["  return 0; }"]
        return "\n".join(lines) + "\n"

    def expression(self, depth: int) -> str:
        r = self.random
        if depth == 0 or r.random() < 0.15:
            return r.choice(CONSTANTS) if r.random() < 0.35 else r.choice(self.names)
        e = self.expression(depth - 1)
        match r.randrange(10):
            case 0:
                return f"({r.choice(['-', '~', '!', '+'])}{self.expression(depth - 1)})".replace("--", "- -")
            case 1:
                return f"(({r.choice(TYPES)})({e}))"
            case 2:
                return f"({e} {r.choice('/%')} (({self.expression(depth - 1)} & 7) + 1))"
            case 3:
                return f"({e} {r.choice(['<<', '>>'])} ({self.expression(depth - 1)} & 15))"
            case 4:
                return f"({self.expression(depth - 1)} ? {e} : {self.expression(depth - 1)})"
            case 5:
                return f"a[({e}) & 3]"
            case 6:
                return r.choice([f"(*p + {e})", f"p[({e}) & 1]", "(p - a)", f"(({e}), *p)", "sizeof(s.in) + 1"])
            case _:
                return f"({e} {r.choice(BINARY)} {self.expression(depth - 1)})".replace("--", "- -")

    def statement(self, depth: int) -> str:
        r = self.random
        target = r.choice([*self.names, "*p", f"m[{r.randrange(2)}][{r.randrange(3)}]", f"a[{r.randrange(4)}]"])
        inner = max(depth - 1, 0)
        match r.randrange(12 if depth > 0 else 4):
            case 0 | 1:
                return f"{target} = {self.expression(3)};"
            case 2:
                operator = r.choice(["+", "-", "*", "&", "|", "^", ">>", "<<"])
                value = f"({self.expression(2)} & 7)" if operator in ("<<", ">>") else self.expression(2)
                return f"{target} {operator}= {value};"
            case 3:
                # C leaves open whether `*p = f(…)` reads p before the call, so f does not assign p.
                move = f"p = &a[({self.expression(1)}) & 1];" if "x" not in self.names else f"({target})--;"
                return r.choice([f"({target})++;", f"--{target};", move])
            case 4 | 5:
                otherwise = f" else {{ {self.statement(inner)} }}" if r.random() < 0.6 else ""
                return f"if ({self.expression(2)}) {{ {self.statement(inner)} {self.statement(inner)} }}{otherwise}"
            case 6:
                if self.loops:
                    return f"{target} = {self.expression(2)};"
                self.loops += 1
                stop = r.choice(["", f"if ({self.expression(2)}) break;", f"if ({self.expression(2)}) continue;"])
                body = f"{{ {stop} {self.statement(inner)} }}"
                self.loops -= 1
                return f"for (int v = 0; v < {r.randint(1, 4)}; v++) {body}"
            case 7:
                if self.loops:
                    return f"{target} ^= {self.expression(2)};"
                body = f"do {{ {target} += w; w--; }} while (w > 0 && {self.expression(1)});"
                return f"{{ int w = {r.randint(1, 3)}; {body} }}"
            case 8:
                cases = "".join(
                    f" case {n}: {target} = {self.expression(1)}; {r.choice(['break;', ''])}" for n in range(3)
                )
                return f"switch (({self.expression(2)}) & 3) {{{cases} default: ({target})++; }}"
            case 9:
                if "x" in self.names:
                    return f"{target} -= 2;"
                return f"{target} = f({self.expression(1)}, {self.expression(1)});"
            case 10:
                return "g(p, &s);" if "x" not in self.names else ";"
            case _:
                return f"{target} = {self.expression(2)}, s.a++;"


# -- programs with threads -----------------------------------------------------------------------------------------------


class Threaded:
    """A random program with two or three threads. Each expression reads one shared variable at most."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.variables = {f"g{n}": self.random.choice(TYPES[:6]) for n in range(3)}
        self.watched = [*self.variables, "arr"]

    def source(self) -> str:
        """The text of the program."""
        r = self.random
        count = r.choice([2, 2, 3])
        lines = ["#include <pthread.h>", "#include <stdio.h>", "#include <stdlib.h>", "#ifdef RUN"]
        lines += ["#include <sched.h>", "#include <unistd.h>", "static __thread unsigned z; static unsigned seed;"]
        lines += ["static void Y(void) { z = z * 1103515245u + 12345u; unsigned c = (z >> 16) % 8;"]
        lines += ["  if (c < 3) sched_yield(); else if (c == 3) usleep((z >> 20) % 60); }"]
        lines += ["#define START(n) z = seed * 7919u + n"]
        lines += ["#else", "#define Y() ((void)0)", "#define START(n) ((void)0)", "#endif"]
        lines += [f"{t} {name} = {r.choice(['0', '1', '100', '200', '-1'])};" for name, t in self.variables.items()]
        lines += ["int arr[2] = {5, 6};", "pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;"]
        length = 4 if count == 2 else 2
        for n in range(count):
            lines.append(f"void *t{n}(void *p) {{ START({n}); int l = {r.randint(0, 3)}; Y();")
            lines += [f"  {self.statement()} Y();" for _ in range(r.randint(1, length))]
            lines.append("  return 0; }")
        lines += ["int main(int argc, char **argv) {", f"  pthread_t t[{count}];", "#ifdef RUN"]
        lines += ["  seed = atoi(argv[1]);", "#endif"]
        lines += [f"  pthread_create(&t[{n}], 0, t{n}, 0);" for n in range(count)]
        lines += [f"  pthread_join(t[{n}], 0);" for n in range(count)]
        lines.append(f"  {kept(self.watched)}")
        lines += [f'  printf("%lld ", (long long){name});' for name in self.variables]
        lines += ['  for (int i = 0; i < 2; i++) printf("%lld ", (long long)arr[i]);', "  return 0; }"]
        return "\n".join(lines) + "\n"

    def statement(self, locked: bool = False) -> str:
        r = self.random
        target = r.choice([*self.variables, "arr[0]", "arr[l & 1]"])
        source = r.choice([*self.variables, "arr[1]"])
        match r.randrange(7 if not locked else 5):
            case 0:
                return f"{target} = {r.choice(CONSTANTS)};"
            case 1:
                return f"{target} = {source} {r.choice(['+', '*', '-', '^', '<<'])} {r.randint(1, 4)};"
            case 2:
                return f"{r.choice(list(self.variables))} {r.choice(['+=', '-=', '*='])} {r.randint(1, 90)};"
            case 3:
                return f"l = {source} + l;"
            case 4:
                return f"{target} = l * {r.randint(1, 99)};"
            case 5:
                inner = " Y(); ".join(self.statement(locked=True) for _ in range(2))
                return f"pthread_mutex_lock(&m); {inner} pthread_mutex_unlock(&m);"
            case _:
                return f"if ({source} > {r.randint(0, 99)}) {{ {self.statement(locked=True)} }}"

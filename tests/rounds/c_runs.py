"""All runs of an emitted C program, by a C compiler: `main` runs once for each combination of choices.

The assertions are counted, and after each turn the local state of each process is printed.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

from plait.rounds.emit.c.program import emitted
from plait.rounds.emit.c.types import Type, fields_of
from plait.rounds.emit.description import Description

_DRIVER = """
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
extern char __data_start, _end;  // of the linker: all variables of the program are between these
typedef struct { jmp_buf over; int script[10000]; int length, at; long failed; char *before; } driver_t;
static driver_t *driver;  // what survives from run to run
bool __VERIFIER_nondet_bool(void) {
    if (driver->at == driver->length) driver->script[driver->length++] = 0;
    return driver->script[driver->at++];
}
void __VERIFIER_assume(int c) { if (!c) longjmp(driver->over, 1); }
#define count(c) driver->failed += c
#define assert(c) do { if (!(c)) { driver->failed++; longjmp(driver->over, 1); } } while (0)
"""
_MAIN = """
int main(void) {
    driver = calloc(1, sizeof *driver);
    size_t size = &_end - &__data_start;
    driver->before = malloc(size);
    setvbuf(stdout, malloc(1 << 20), _IOFBF, 1 << 20);
    memcpy(driver->before, &__data_start, size);
    do {
        memcpy(&__data_start, driver->before, size);
        driver->at = 0;
        if (!setjmp(driver->over)) program();
        driver->length = driver->at;
        while (driver->length > 0 && driver->script[driver->length - 1]) driver->length--;
        if (driver->length > 0) driver->script[driver->length - 1] = 1;
    } while (driver->length > 0);
    printf("failed %ld\\n", driver->failed);
    return 0;
}
"""


def run(described: Description, folder: Path) -> tuple[set[tuple[int, str]], int]:
    """The local states of all runs, each with the number of the process; and the number of failed assertions."""
    text, unit = emitted(described)
    text = text.replace("#include <assert.h>\n", "").replace("int main(void)", "static int program(void)")
    text = re.sub(r"#define CAPACITY \d+", "#define CAPACITY 16", text)
    fields = unit.fields
    lines = []
    for p, cls in enumerate(described.system.classes):
        lines.append(f'    printf("{p} ");')
        for name in cls.__plait_fields__:
            lines += _printed(f"s_{name}[{p}]", fields[name], 0)
        lines.append('    printf("\\n");')
    observe = "static void observe(void) {\n" + "\n".join(lines) + "\n}\n"
    head, properties = text.split("// The properties, after each turn.\nstatic void check(void) {")
    properties, rest = properties.split("\n}\n", 1)
    properties = properties.replace("assert(", "count(!")  # a violation does not end the run
    text = f"{head}{observe}static void check(void) {{\n    observe();\n{properties}\n}}\n{rest}"
    source, binary = folder / "program.c", folder / "program"
    source.write_text(_DRIVER + text + _MAIN)
    subprocess.run(["gcc", "-O1", "-w", "-o", binary, source], check=True)
    output = subprocess.run([binary], check=True, capture_output=True, text=True).stdout.splitlines()
    states = {(int(line.split()[0]), line.partition(" ")[2]) for line in output[:-1]}
    return states, int(output[-1].split()[1])


def _printed(text: str, type_: Type, depth: int) -> list[str]:
    """Statements that print a value."""
    if type_.scalar:
        return [f'    printf("%d ", (int){text});']
    if type_.kind == "sequence":
        i = f"i{depth}"
        inner = _printed(f"{text}.at[{i}]", type_.parts[0], depth + 1)
        return [
            '    printf("[ ");',
            f"    for (int {i} = 0; {i} < {text}.length; {i}++) {{",
            *inner,
            "    }",
            '    printf("] ");',
        ]
    members = [(f"_{n}", t) for n, t in enumerate(type_.parts)] or list(fields_of(type_.cls).items())  # type: ignore[arg-type]
    return [line for name, t in members for line in _printed(f"{text}.{name}", t, depth)]


def shown(value: Any, type_: Type, numbers: dict[str, int]) -> str:
    """A value of Python as the C program prints it."""
    if value is None:
        return "-2147483648 "
    if type_.kind == "text":
        return f"{numbers[value]} "
    if type_.scalar:
        return f"{int(value)} "
    if type_.kind == "sequence":
        return "[ " + "".join(shown(v, type_.parts[0], numbers) for v in value) + "] "
    return "".join(shown(v, t, numbers) for v, t in zip(value, type_.parts, strict=True))

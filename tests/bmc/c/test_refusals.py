"""What is outside of the supported part of C is refused: the message names the construct, the file and the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.bmc.c.load import load_c
from plait.kernel.errors import PlaitError

HEAD = "#include <pthread.h>\n#include <stdlib.h>\nint x;\n"

REFUSED = {
    "float": ("double d = 1.5;", "int main(void) { d = d + 1; return 0; }", "floating-point numbers", 4),
    "float literal": ("", "int main(void) { x = (int)1.5; return 0; }", "floating-point numbers", 5),
    "union": (
        "union u { int i; char c; } v;",
        "int main(void) { v.i = 1; return 0; }",
        "a union with several members",
        4,
    ),
    "bit-field": ("struct s { int a : 3; } v;", "int main(void) { v.a = 1; return 0; }", "the bit-field a", 4),
    "variable length": ("", "int main(void) { x++; int n = x, a[n]; return a[0]; }", "length is not a constant", 5),
    "assembly": ("", 'int main(void) { __asm__("nop"); return 0; }', "inline assembly", 5),
    "no body": ("int mystery(int);", "int main(void) { return mystery(1); }", "the function mystery", 5),
    "no body behind a pointer": (
        "void (*f)(void *) = free;",
        "int main(void) { f(&x); return 0; }",
        "a call through a pointer to free",
        5,
    ),
    "errno": ("#include <errno.h>", "int main(void) { errno = x; return 0; }", "errno", 5),
    "variadic": (
        "int f(int n, ...) { return n; }",
        "int main(void) { return f(1, 2); }",
        "variable number of arguments",
        4,
    ),
    "computed goto": ("", "int main(void) { void *p = &&l; goto *p; l: return 0; }", "the address of a label", 5),
    "thread function": (
        "void *f(void *p) { return p; } void *(*table[1])(void *) = {f};",
        "int main(void) { pthread_t t; pthread_create(&t, 0, table[x], 0); return 0; }",
        "a thread whose start function is not known",
        5,
    ),
    "end of a number": (
        "",
        "int main(int argc, char **argv) { char *end; return strtol(argv[0], &end, 10); }",
        "a pointer to the end of the number",
        5,
    ),
    "text of main": ("", "int main(int argc, char **argv) { return argv[0][0]; }", "argv, an argument of main", 5),
    "format": (
        "#include <stdio.h>\nchar s[9];",
        'int main(void) { return scanf("%8s", s); }',
        "other conversions than those of integers",
        6,
    ),
    "memcpy of bytes": (
        "#include <string.h>\nint a[2]; char b[8];",
        "int main(void) { memcpy(b, a, 8); return 0; }",
        "memcpy between objects of different types",
        6,
    ),
    "half an element": (
        "#include <string.h>\nint a[2];",
        "int main(void) { memset(a, 0, 6); return 0; }",
        "memset of a part of an element",
        6,
    ),
    "thread of CBMC": ("", "int main(void) { __CPROVER_ASYNC_1: x = 1; return 0; }", "a thread of CBMC", 5),
    "size of malloc": ("", "int main(void) { x++; int *p = malloc(x); return 0; }", "size is not a constant", 5),
    "type of malloc": ("void *v;", "int main(void) { v = malloc(12); return 0; }", "of unknown type", 5),
    "undefined variable": ("extern int y;", "int main(void) { return y; }", "the variable y", 5),
    "copy of a mutex": (
        "struct s { pthread_mutex_t m; } p, q;",
        "int main(void) { p = q; return 0; }",
        "the copy of a mutex",
        5,
    ),
    "128 bits": ("__int128 w;", "int main(void) { w = 1; return 0; }", "128-bit integers", 4),
    "section": (
        "void __VERIFIER_atomic_begin(void);",
        "int main(void) { if (x) __VERIFIER_atomic_begin(); x = 2; return 0; }",
        "an atomic section that begins or ends on one of two paths only",
        5,
    ),
    "thread-specific data": (
        "int pthread_setspecific(unsigned, const void *);",
        "int main(void) { pthread_setspecific(0, 0); return 0; }",
        "the function pthread_setspecific",
        5,
    ),
    "longjmp": (
        "int setjmp(int *);",
        "int main(void) { int b[1]; return setjmp(b); }",
        "the function setjmp",
        5,
    ),
    "complex": ("_Complex double c;", "int main(void) { c = 1; return 0; }", "complex numbers", 4),
    "argv": (
        "",
        "int main(int argc, char **argv) { if (argc > 1) x = argv[1][0]; return 0; }",
        "argv, an argument of main,",
        5,
    ),
    "length 0": ("int *a[2][0];", "int main(void) { return a[0] == 0; }", "an array of length 0", 4),
    "anonymous struct": (
        "struct o { struct { int a; int b; }; int c; } o = {{1, 2}, 3};",
        "int main(void) { return o.a; }",
        "a struct or union without a name inside of a struct",
        4,
    ),
    "generic": ("", "int main(void) { return _Generic(x, int: 1, default: 2); }", "_Generic", 5),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_construct_is_refused_by_name_and_line(name: str, tmp_path: Path) -> None:
    globals_, main, message, line = REFUSED[name]
    file = tmp_path / "refused.c"
    file.write_text(f"{HEAD}{globals_}\n{main}\n", encoding="utf-8")
    with pytest.raises(PlaitError) as caught:
        load_c(file)
    text = str(caught.value)
    assert message in text
    assert f"{file}, line {line}," in text
    assert caught.value.hint


def test_what_is_not_c_is_an_error_with_the_line(tmp_path: Path) -> None:
    file = tmp_path / "wrong.c"
    file.write_text("int main(void) {\n  return y;\n}\n", encoding="utf-8")
    with pytest.raises(PlaitError, match=r"wrong\.c, line 2, column 10: this is not valid C: .*'y'"):
        load_c(file)


def test_a_file_without_main_and_a_missing_file(tmp_path: Path) -> None:
    file = tmp_path / "library.c"
    file.write_text("int f(void) { return 1; }\n", encoding="utf-8")
    with pytest.raises(PlaitError, match="has no function main"):
        load_c(file)
    with pytest.raises(PlaitError, match=r"missing\.c cannot be read"):
        load_c(tmp_path / "missing.c")


@pytest.mark.parametrize("option", ["unwind", "objects", "threads"])
def test_a_bound_is_at_least_one(option: str, tmp_path: Path) -> None:
    file = tmp_path / "empty.c"
    file.write_text("int main(void) { return 0; }\n", encoding="utf-8")
    with pytest.raises(PlaitError, match=f"{option}=0 is too small"):
        load_c(file, **{option: 0})  # type: ignore[arg-type]


def test_unused_functions_may_contain_anything(tmp_path: Path) -> None:
    file = tmp_path / "unused.c"
    file.write_text("double half(double d) { return d / 2; }\nint main(void) { return 0; }\n", encoding="utf-8")
    assert [code.name for code in load_c(file).processes] == ["main"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    ["".join(f"if (x == {n}) x++; else " for n in range(1500)) + "x = 0;", f"x = {'+'.join(['x'] * 3000)};"],
    ids=["else if", "sum"],
)
def test_deep_nesting_is_an_error(body: str, tmp_path: Path) -> None:
    file = tmp_path / "deep.c"
    file.write_text(f"int x; int main(void) {{ {body} return 0; }}\n", encoding="utf-8")
    with pytest.raises(PlaitError, match=r"deep\.c, line 1, .*deep nesting"):
        load_c(file)

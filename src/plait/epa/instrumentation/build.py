"""`plait epa build`: from C and C++ sources to a program that records itself (Saissi 2019, section 5.4.1, step 1)."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import msgspec

from plait.epa.instrumentation.instrument import Instrumentation
from plait.epa.instrumentation.llvm import Llvm
from plait.epa.instrumentation.table import FORMAT, Table
from plait.epa.instrumentation.toolchain import Toolchain, find
from plait.kernel.errors import UsageError

_C, _CPP = {".c"}, {".cc", ".cpp", ".cxx", ".C"}
_FLAGS = ["-O0", "-g", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer", "-pthread", "-fPIE"]
_NAMES = ["-fno-discard-value-names", "-Xclang", "-disable-O0-optnone"]
_GENERATE = ["-O2", "-Xclang", "-disable-llvm-passes", "-fPIE"]
"""The program is not optimized. Code generation is, so that the inserted code costs little."""
_LINK = ["-pthread", "-rdynamic", "-pie", "-ldl", "-lm"]


def build(
    sources: Sequence[Path], output: Path, flags: Sequence[str] = (), *, version: int | None = None, lean: bool = True
) -> tuple[Table, Toolchain]:
    """Compile, instrument and link. The table of sites is part of the program.

    Without `lean`, the program also records results that the reader can compute. The tests compare the two versions.
    """
    for source in sources:
        if not source.is_file():
            raise UsageError(f"{source}: there is no such file", hint="give C or C++ source files")
        if source.suffix not in _C | _CPP:
            raise UsageError(
                f"{source} is neither C nor C++", hint=f"the file name must end in one of {' '.join(sorted(_C | _CPP))}"
            )
    if not sources:
        raise UsageError("no source file was given", hint="for example plait epa build prog.c -o prog.epa")
    if output.is_dir() or not output.parent.is_dir():
        raise UsageError(f"{output} cannot be written", hint="give a file name in an existing folder")
    toolchain = find(version)
    with tempfile.TemporaryDirectory(prefix="plait-epa-") as name:
        folder = Path(name)
        recorder, inlined = _recorder(toolchain, folder)
        program = Instrumentation(Llvm(toolchain.library), inlined, sources, lean=lean)
        objects = []
        for i, source in enumerate(sources):
            raw, instrumented, compiled = (folder / f"{i}{suffix}" for suffix in (".bc", ".epa.bc", ".o"))
            compiler = toolchain.clang_cpp if source.suffix in _CPP else toolchain.clang
            _run(
                [
                    compiler,
                    *flags,
                    *_FLAGS,
                    *_NAMES,
                    "-Qunused-arguments",
                    "-emit-llvm",
                    "-c",
                    str(source),
                    "-o",
                    str(raw),
                ]
            )
            program.instrument(raw, instrumented)
            _run([toolchain.clang, *_GENERATE, "-c", str(instrumented), "-o", str(compiled)])
            objects.append(str(compiled))
        table = Table(
            program.sites,
            program.globals,
            str(toolchain.version),
            [str(s) for s in sources],
            program.functions,
            program.pieces,
            program.formulas,
            FORMAT,
        )
        objects += [*recorder, _embed(toolchain, folder, table)]
        linker = toolchain.clang_cpp if any(s.suffix in _CPP for s in sources) else toolchain.clang
        _run([linker, *objects, "-o", str(output), *flags, *_LINK, "-Qunused-arguments"])
    return table, toolchain


def _recorder(toolchain: Toolchain, folder: Path) -> tuple[list[str], Path]:
    """Compile the recorder: its object files, and the bitcode of the part that is linked into every module."""
    for source in files("plait.epa").joinpath("recorder").iterdir():
        (folder / source.name).write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    flags = ["-O2", "-fno-omit-frame-pointer", "-fPIE", "-pthread", "-fexceptions"]
    objects = [folder / f"{name}.o" for name in ("recorder", "interpose")]
    for compiled in objects:
        _run([toolchain.clang, *flags, "-c", str(compiled.with_suffix(".c")), "-o", str(compiled)])
    inlined = folder / "inline.bc"
    _run([toolchain.clang, *flags, "-emit-llvm", "-c", str(folder / "inline.c"), "-o", str(inlined)])
    return [str(compiled) for compiled in objects], inlined


def _embed(toolchain: Toolchain, folder: Path, table: Table) -> str:
    """The table as an object file with two symbols, for its begin and its end."""
    data, assembly, compiled = folder / "table.json", folder / "table.s", folder / "table.o"
    data.write_bytes(msgspec.json.encode(table))
    assembly.write_text(
        ".section .rodata\n.globl epa_table\n.hidden epa_table\nepa_table:\n"
        f'.incbin "{data}"\n.globl epa_table_end\n.hidden epa_table_end\nepa_table_end:\n'
        '.section .note.GNU-stack,"",%progbits\n',
        encoding="utf-8",
    )
    _run([toolchain.clang, "-c", str(assembly), "-o", str(compiled)])
    return str(compiled)


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        first = next((line for line in lines if "error" in line), lines[0] if lines else "no message")
        raise UsageError(
            f"{Path(command[0]).name} failed: {first}",
            hint="compile the program without Plait, with the same flags, to see the error",
        )

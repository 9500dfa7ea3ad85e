"""`plait epa build`: from C and C++ sources to a program that records itself (Saissi 2019, section 5.4.1, step 1)."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path

import msgspec

from plait.epa.instrumentation.instrument import Instrumentation
from plait.epa.instrumentation.llvm import Llvm
from plait.epa.instrumentation.table import FORMAT, Table
from plait.epa.instrumentation.toolchain import Toolchain, find
from plait.kernel.errors import UsageError

_C, _CPP = {".c"}, {".cc", ".cpp", ".cxx", ".C"}
DEBUG = ["-O0", "-g", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer", "-pthread"]
NAMES = ["-fno-discard-value-names", "-Xclang", "-disable-O0-optnone"]
_GENERATE = ["-O2", "-Xclang", "-disable-llvm-passes", "-fPIE"]
"""The program is not optimized. Code generation is, so that the inserted code costs little."""
_RECORDER = ["-O2", "-fno-omit-frame-pointer", "-fPIE", "-pthread", "-fexceptions"]
_OBJECTS = "recorder", "interpose", "locks", "replay", "files", "cpp"
_SHOWN = 5
"""The maximal number of shown errors."""
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
        modules = [folder / f"{i}.bc" for i in range(len(sources))]
        for source, module in zip(sources, modules, strict=True):
            compiler = toolchain.clang_cpp if source.suffix in _CPP else toolchain.clang
            emit = ["-Qunused-arguments", "-emit-llvm", "-c", str(source), "-o", str(module)]
            _run([compiler, *flags, *DEBUG, *NAMES, "-fPIE", *emit])
        # Source files keep the names that the user gave.
        names = {str(source.resolve()): str(source) for source in sources}
        objects, recorder, table = instrumented(
            toolchain, folder, modules, name=lambda file: names.get(file, file), lean=lean
        )
        linker = toolchain.clang_cpp if any(s.suffix in _CPP for s in sources) else toolchain.clang
        _run([linker, *objects, *recorder, "-o", str(output), *flags, *_LINK, "-Qunused-arguments"])
    return table, toolchain


def instrumented(
    toolchain: Toolchain, folder: Path, modules: Sequence[Path], *, name: Callable[[str], str], lean: bool = True
) -> tuple[list[str], list[str], Table]:
    """Instrument the bitcode modules of a program: their object files, those of the recorder, and the table.

    `name` gives the name of a source file that the table shows. The table is part of the recorder.
    """
    recorder, inlined = _recorder(toolchain)
    program = Instrumentation(Llvm(toolchain.library), inlined, name, lean=lean)
    objects = []
    for module in modules:
        result, compiled = module.with_suffix(".epa.bc"), module.with_suffix(".o")
        program.instrument(module, result)
        _run([toolchain.clang, *_GENERATE, "-c", str(result), "-o", str(compiled)])
        objects.append(str(compiled))
    table = Table(
        program.sites,
        program.globals,
        str(toolchain.version),
        program.sources,
        program.functions,
        program.pieces,
        program.formulas,
        FORMAT,
    )
    return objects, [*recorder, _embed(toolchain, folder, table)], table


def _recorder(toolchain: Toolchain) -> tuple[list[str], Path]:
    """The compiled recorder: its object files, and the bitcode of the part that is linked into every module.

    It is compiled once per user, version of clang and version of the recorder. Build systems link many programs.
    """
    sources = {f.name: f.read_bytes() for f in files("plait.epa").joinpath("recorder").iterdir()}
    content = repr((toolchain, _RECORDER, sorted(sources.items())))
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "plait"
    made = cache / f"recorder-{hashlib.sha256(content.encode()).hexdigest()[:24]}"
    if not made.is_dir():
        try:
            cache.mkdir(parents=True, exist_ok=True)
            folder = Path(tempfile.mkdtemp(prefix="recorder-", dir=cache))
        except OSError as error:
            raise UsageError(
                f"{cache} cannot be written: {error.strerror}", hint="set XDG_CACHE_HOME to another folder"
            ) from None
        for name, text in sources.items():
            (folder / name).write_bytes(text)
        for name in _OBJECTS:
            _run([toolchain.clang, *_RECORDER, "-c", str(folder / f"{name}.c"), "-o", str(folder / f"{name}.o")])
        _run(
            [toolchain.clang, *_RECORDER, "-emit-llvm", "-c", str(folder / "inline.c"), "-o", str(folder / "inline.bc")]
        )
        try:
            folder.rename(made)
        except OSError:  # another process was faster
            shutil.rmtree(folder)
    return [str(made / f"{name}.o") for name in _OBJECTS], made / "inline.bc"


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
        wrong = [line for line in lines if re.search(r"error:|undefined reference|multiple definition", line)]
        causes = [line for line in wrong if "linker command failed" not in line] or wrong or lines or ["no message"]
        more = [f"and {len(causes) - _SHOWN} more"] if len(causes) > _SHOWN else []
        raise UsageError(
            f"{Path(command[0]).name} failed: " + "\n  ".join([*causes[:_SHOWN], *more]),
            hint="compile the program without Plait, with the same flags, to see all messages",
        )

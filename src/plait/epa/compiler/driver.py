"""`plait-cc` and `plait-c++`: clang with two changes. Both take the arguments of clang.

- Compiled objects also contain the LLVM bitcode of the unoptimized program. So `make`, CMake, `ar` and `ld -r` can use
  them as usual.
- Programs are linked by `linker.py`, which instruments this bitcode.

Clang itself does everything else: preprocessing, dependency files, assembly, `--version`, response files.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from plait.epa.compiler.objects import rename
from plait.epa.instrumentation.build import DEBUG, NAMES
from plait.epa.instrumentation.toolchain import Toolchain, find
from plait.kernel.errors import PlaitError, UsageError

VERSION = "PLAIT_CLANG"
"""The environment variable with the version of clang. Default: the newest installed version."""
_EMBED = ["-Xclang", "-fembed-bitcode=all", "-fno-lto"]


def cc() -> int:
    """The command `plait-cc`."""
    return _main("plait-cc", sys.argv[1:], cpp=False)


def cpp() -> int:
    """The command `plait-c++`."""
    return _main("plait-c++", sys.argv[1:], cpp=True)


def _main(name: str, arguments: Sequence[str], *, cpp: bool) -> int:
    try:
        return compile_(arguments, _wanted(), cpp=cpp)
    except PlaitError as error:
        sys.stderr.write(f"{name}: error: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130


def _wanted() -> Toolchain:
    version = os.environ.get(VERSION, "")
    if version and not version.isdigit():
        raise UsageError(f"{VERSION}={version} is not a version of clang", hint=f"for example {VERSION}=19")
    return find(int(version) if version else None)


def compile_(arguments: Sequence[str], toolchain: Toolchain, *, cpp: bool = False) -> int:
    """Run clang with arguments, and return its exit code."""
    with tempfile.TemporaryDirectory(prefix="plait-cc-") as folder:
        linker = Path(folder) / "ld"
        real = _linker(arguments, toolchain)
        command = [sys.executable, "-P", "-m", "plait.epa.compiler.linker", str(toolchain.version), real]
        linker.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', encoding="utf-8")
        linker.chmod(0o755)
        command = [toolchain.clang_cpp if cpp else toolchain.clang, *_changed(arguments, linker)]
        code = subprocess.run(command, check=False).returncode
        for made in _objects(command):
            rename(made)
        return code


def _objects(command: Sequence[str]) -> list[Path]:
    """The object files that a command of clang makes, as clang says it."""
    said = subprocess.run([*command, "-###"], capture_output=True, text=True, errors="surrogateescape", check=False)
    found = []
    for line in said.stderr.splitlines():
        if '"-cc1"' in line or '"-cc1as"' in line:
            job = shlex.split(line)
            if "-o" in job:
                found.append(Path(job[job.index("-o") + 1]))
    return found


def _changed(arguments: Sequence[str], linker: Path) -> list[str]:
    """The arguments with ours around them. Clang does not warn if ours are not used."""
    quiet = "--start-no-unused-arguments", "--end-no-unused-arguments"
    ours = [quiet[0], *DEBUG, *NAMES, *_EMBED, f"--ld-path={linker}", quiet[1]]
    end = arguments.index("--") if "--" in arguments else len(arguments)
    # The user decides between -fPIE, -fPIC and -fno-pie: the last of them counts.
    return [quiet[0], "-fPIE", quiet[1], *arguments[:end], *ours, *arguments[end:]]


def _linker(arguments: Sequence[str], toolchain: Toolchain) -> str:
    """The linker that clang would use."""
    chosen = "ld"
    for argument in arguments:
        if argument.startswith("--ld-path="):
            chosen = argument.partition("=")[2]
        elif argument.startswith("-fuse-ld=") and argument != "-fuse-ld=":
            chosen = f"ld.{argument.partition('=')[2]}"
    beside = Path(toolchain.clang).resolve().with_name(chosen)
    found = str(beside) if beside.exists() else shutil.which(chosen)
    if found is None:
        raise UsageError(
            f"the linker {chosen} was not found", hint="apt-get install binutils, or choose another linker"
        )
    return found

"""The linker of `plait-cc`: it links twice. Clang runs it with the arguments of `ld`.

The first link is the usual one. It reports undefined symbols, and lists the objects and the members of archives that
the program uses. The bitcode of these objects is instrumented. The second link has the instrumented objects in the same
places, and the recorder.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from plait.epa.compiler.objects import is_archive, members, modules
from plait.epa.instrumentation.build import instrumented
from plait.epa.instrumentation.toolchain import Toolchain, find
from plait.kernel.errors import PlaitError, UsageError

_VALUES = ("-o", "--output", "-T", "--script", "-R", "--just-symbols", "-soname", "-h", "-rpath", "-m", "-z", "-u", "-e",
           "-dynamic-linker", "--dynamic-linker", "-Map", "--version-script", "--dynamic-list")  # fmt: skip
"""Options of ld whose value is the next argument."""
_PLAIN = {"-shared", "--shared", "-Bshareable", "-r", "--relocatable", "-i"}
"""Options whose result is not a program. These links are not changed."""
_STATIC = {"-static", "--static", "-Bstatic", "-dn", "-non_shared"}
_MEMBER = re.compile(r"\((?P<archive>.+)\)(?P<member>[^()]+)|(?P<other>.+)\((?P<inside>[^()]+)\)")
"""How linkers name a member of an archive: `(libx.a)a.o` (GNU ld) or `libx.a(a.o)`."""


def main() -> int:
    """Link. The first two arguments are the version of clang and the linker, the others come from clang."""
    version, real, *arguments = sys.argv[1:]
    try:
        return link(_expanded(arguments), real, find(int(version)))
    except PlaitError as error:
        sys.stderr.write(f"plait-cc: error: {error}\n")
        return 1


def _expanded(arguments: Sequence[str]) -> list[str]:
    """The arguments with the content of response files."""
    found: list[str] = []
    for argument in arguments:
        file = Path(argument[1:])
        if argument.startswith("@") and file.is_file():
            found += _expanded(shlex.split(file.read_text(encoding="utf-8")))
        else:
            found.append(argument)
    return found


def link(arguments: list[str], real: str, toolchain: Toolchain) -> int:
    """Link, and return the exit code of the linker."""
    if _PLAIN & set(arguments):
        return _run([real, *arguments])
    with tempfile.TemporaryDirectory(prefix="plait-ld-") as name:
        folder = Path(name)
        trial = [real, *arguments, "-o", str(folder / "program"), "-t", "-t"]
        first = subprocess.run(trial, stdout=subprocess.PIPE, text=True, errors="surrogateescape", check=False)
        if first.returncode:
            return first.returncode
        used = _Used(first.stdout.splitlines(), folder)
        replaced = used.replace(arguments)
        if not used.bitcode:
            sys.stderr.write(
                "plait-cc: warning: no object was compiled by plait-cc: the program cannot record itself\n"
            )
            return _run([real, *arguments])
        if _static(arguments):
            raise UsageError(
                "a static program cannot record itself: the recorder needs the dynamic linker",
                hint="link without -static (static archives and -static-libstdc++ are possible)",
            )
        made, recorder, _ = instrumented(toolchain, folder, used.bitcode, name=_shown)
        compiled = dict(zip(map(str, used.bitcode), made, strict=True))
        final = [compiled.get(argument, argument) for argument in replaced]
        extra = ["--export-dynamic", "-ldl", "-lpthread", "-lm"]
        if "lld" in Path(real).name:
            extra += ["-z", "nostart-stop-gc"]  # the lists of globals are found by the names of their sections
        # The recorder comes before the libraries that it needs, and after all objects.
        last = max(i for i, argument in enumerate(final) if argument in compiled.values()) + 1
        return _run([real, *final[:last], *recorder, *final[last:], *extra])


def _run(command: list[str]) -> int:
    return subprocess.run(command, check=False).returncode


def _static(arguments: Sequence[str]) -> bool:
    """Whether the program is static. Libraries can be static in a program that is not (-Bstatic, then -Bdynamic)."""
    return bool(_STATIC & set(arguments)) and not any(a in arguments for a in ("-dynamic-linker", "--dynamic-linker"))


def _shown(file: str) -> str:
    """The name of a source file: relative, if it is below this folder."""
    path = os.path.relpath(file)
    return file if path.startswith("..") else path


class _Used:
    """The files that a link uses."""

    def __init__(self, trace: Sequence[str], folder: Path) -> None:
        self.folder = folder
        self.files = {line for line in trace if os.path.exists(line)}  # noqa: PTH110 as the linker wrote it
        self.resolved = {Path(file).resolve() for file in self.files}
        self.members: Counter[tuple[str, str]] = Counter()
        for line in trace:
            if line not in self.files and (match := _MEMBER.fullmatch(line)):
                self.members[match["archive"] or match["other"], match["member"] or match["inside"]] += 1
        self.bitcode: list[Path] = []
        """The modules to instrument, in the order of the link."""

    def replace(self, arguments: Sequence[str]) -> list[str]:
        """The arguments with the files of bitcode modules instead of objects, and with members instead of archives."""
        found: list[str] = []
        folders = [a[2:] for a in arguments if a.startswith("-L")]
        seen: set[str] = set()
        for before, argument in zip(["", *arguments], arguments, strict=False):
            file = argument if before not in _VALUES else ""
            if argument.startswith("-l"):
                file = self._library(argument[2:], folders)
            if file not in self.files or not Path(file).is_file():
                found.append(argument)
                continue
            content = Path(file).read_bytes()
            if not is_archive(content):
                found += self._modules(content) or [argument]
            elif file not in seen:
                taken = self._taken(Path(file), file)
                found += [argument] if taken is None else taken
                seen |= {file} if taken is not None else set()
        return found

    def _library(self, name: str, folders: Sequence[str]) -> str:
        """The file that `-l` found; empty if it is not in a given folder."""
        names = [name[1:]] if name.startswith(":") else [f"lib{name}.so", f"lib{name}.a"]
        for folder in folders:
            for file in (f"{folder}/{n}" for n in names):
                if file in self.files:
                    return file
        return ""

    def _taken(self, archive: Path, shown: str) -> list[str] | None:
        """The members of an archive that the program uses, as files. None: no member has bitcode."""
        all_members = members(archive)
        if not any(modules(m.content) for m in all_members):
            return None
        count = Counter(m.name for m in all_members)
        found: list[str] = []
        for i, member in enumerate(all_members):
            if member.thin:  # linkers name the file
                times = int((archive.parent / member.name).resolve() in self.resolved)
            else:
                times = self.members[shown, member.name]
            if not times:
                continue
            if times < count[member.name] > 1:
                raise UsageError(
                    f"{archive} has {count[member.name]} members {member.name}, and the program does not use all",
                    hint="give the source files different names",
                )
            made = self._modules(member.content)
            if not made:
                file = self.folder / f"{len(self.bitcode)}-{i}.o"
                file.write_bytes(member.content)
                made = [str(file)]
            found += made
        return found

    def _modules(self, content: bytes) -> list[str]:
        made = []
        for module in modules(content):
            file = self.folder / f"module-{len(self.bitcode)}.bc"
            file.write_bytes(module)
            self.bitcode.append(file)
            made.append(str(file))
        return made


if __name__ == "__main__":
    sys.exit(main())

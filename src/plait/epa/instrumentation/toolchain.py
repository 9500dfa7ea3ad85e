"""Find clang and libLLVM. Both must have the same version, because bitcode is not portable between versions."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from plait.kernel.errors import UsageError

VERSIONS = (19, 16, 15, 14)
"""The tested versions. Others between the first and the last may work too."""
_LIBRARY = re.compile(r"libLLVM(?:-(\d+)\.so(?:\.\d+)*|\.so\.(\d+)(?:\.\d+)*)")
_FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib")


class Toolchain(NamedTuple):
    """A clang, and the LLVM library of the same version."""

    version: int
    clang: str
    library: Path

    @property
    def clang_cpp(self) -> str:
        """The C++ driver next to clang."""
        return re.sub(r"clang(?!.*clang)", "clang++", self.clang)


def _libraries() -> dict[int, Path]:
    found: dict[int, Path] = {}
    folders = [Path(f) for f in _FOLDERS] + [p / "lib" for p in sorted(Path("/usr/lib").glob("llvm-*"))]
    for folder in folders:
        for path in sorted(folder.glob("libLLVM*.so*")) if folder.is_dir() else ():
            if match := _LIBRARY.fullmatch(path.name):
                found.setdefault(int(match[1] or match[2]), path)
    return found


def _version(clang: str) -> int | None:
    try:
        said = subprocess.run([clang, "--version"], capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r"clang version (\d+)", said)
    return int(match[1]) if match else None


def find_all() -> list[Toolchain]:
    """All usable toolchains, the newest first."""
    libraries = _libraries()
    found: dict[int, Toolchain] = {}
    for name in [f"clang-{v}" for v in VERSIONS] + ["clang"]:
        clang = shutil.which(name)
        version = _version(clang) if clang else None
        if clang and version and version >= min(VERSIONS) and version in libraries and version not in found:
            found[version] = Toolchain(version, clang, libraries[version])
    return [found[v] for v in sorted(found, reverse=True)]


def find(version: int | None = None) -> Toolchain:
    """The newest toolchain, or the one of a version."""
    found = find_all()
    for toolchain in found:
        if version in (None, toolchain.version):
            return toolchain
    have = ", ".join(str(t.version) for t in found) or "none"
    wanted = f"clang {version}" if version else "clang 14 or later"
    raise UsageError(
        f"{wanted} with its libLLVM was not found (usable here: {have})",
        hint=f"apt-get install clang-{version or 14}, or another of {', '.join(map(str, VERSIONS))}",
    )

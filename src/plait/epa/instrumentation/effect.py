"""One memory access of an external function."""

from __future__ import annotations

from typing import Literal, NamedTuple

Access = Literal[
    "read", "write", "read string", "wrote string", "copy", "stream", "stdin", "stdout", "stderr", "file", "descriptor",
    "descriptors", "printed", "scanned", "C++ stream", "string", "changed string", "list", "tree",
]  # fmt: skip


class Effect(NamedTuple):
    """A memory access at the address in argument `at`. Its length: the product of the arguments `length` (or `bytes`).

    A `stream` is a FILE: all operations of threads on one stream depend on each other. A `file` is a stream whose
    operation also accesses its file (`bytes`: it writes). A `descriptor` is the same for the number of a file (`bytes`: 2
    does not use its offset). `printed` and `scanned` are arguments after a format. `wrote string` is seen after the call.
    Of C++: a `C++ stream` with its state, a `string` (`bytes`: it is written) and a `changed string` (after the call) with
    their characters, a node of a `list` with its neighbours, the `tree` that a node belongs to.
    """

    access: Access
    at: int
    length: tuple[int, ...] = ()
    source: int = 0
    bytes: int = 0

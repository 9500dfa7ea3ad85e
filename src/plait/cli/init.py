"""`plait init`: writes a folder with a small model, its test and a README, to start from."""

from __future__ import annotations

import importlib.util
import keyword
import symtable
from collections.abc import Iterator
from pathlib import Path

from plait.cli.output import emit
from plait.kernel.errors import UsageError

MODEL = '''\
"""Clients add to a counter over a network that may lose messages. A client repeats a request that is not answered."""

from plait import Message, Pid, Process, System, action, always, field, init, on, reachable, unordered


class Add(Message):
    """Asks the server to add one."""


class Added(Message):
    """The answer to it."""


class Client(Process):
    repeats: int  # how often the client may still repeat its request
    answered: bool = False

    @init
    def ask(self):
        self.send(Server.pid(0), Add())

    @action(when=lambda self: not self.answered and self.repeats > 0)
    def repeat(self):
        self.repeats -= 1
        self.send(Server.pid(0), Add())

    @on(Added)
    def finish(self, m: Added):
        self.answered = True


class Server(Process):
    remembers: bool
    total: int = 0
    served: set[Pid] = field(default_factory=set)

    @on(Add)
    def add(self, m: Add):
        if not self.remembers or m.sender not in self.served:
            self.total += 1
        self.served.add(m.sender)
        self.send(m.sender, Added())


@always
def adds_once(s):
    """No client is counted twice."""
    return all(server.total == len(server.served) for server in s[Server])


@reachable
def all_answered(s):
    """Every client can get its answer."""
    return all(client.answered for client in s[Client])


def NAME(clients: int = 2, repeats: int = 1, remembers: bool = True) -> System:
    """Clients that repeat requests, and a server that `remembers` which clients it has served, or not."""
    return System(
        [Server(remembers=remembers), *(Client(repeats=repeats) for _ in range(clients))],
        network=unordered(lossy=True),
        properties=[adds_once, all_answered],
    )
'''
TEST = '''\
"""The model holds, and the fault that it can have is found. Run it with pytest."""

import pytest
from plait import check

from NAME import NAME


@pytest.mark.plait
@pytest.mark.parametrize("clients", [1, 2])
def test_NAME(clients):
    """Each property is a test of its own."""
    return NAME(clients)


def test_a_server_that_forgets():
    verdict = check(NAME(clients=1, remembers=False))
    assert verdict.property == "adds_once"
    assert len(verdict.trace) == 3, "repeat, add, add"
'''
README = """\
# NAME

A model for Plait. Clients add to a counter over a network that may lose messages, and repeat a request that is not answered.

| file | |
|---|---|
| `NAME.py` | the model: messages, processes, properties, and a function that makes the system |
| `test_NAME.py` | its tests, for pytest |

Check the model in this folder:

```console
$ plait check NAME.py
HOLDS 2 properties  in NAME.py:NAME
…
```

A server that does not remember which clients it has served adds twice. Plait prints a shortest run that shows this, and the
command that replays it:

```console
$ plait check NAME.py -p remembers=false
VIOLATED adds_once  in NAME.py:NAME
…
$ plait replay .plait/NAME-adds_once-remembers=false.itf.json --quiet
reproduced: property adds_once is violated after 3 steps
```

Run the tests (`pip install pytest`):

```console
$ pytest
…
… 5 passed in …
```

Then change the model:

- `plait check NAME.py --watch` checks it again whenever you save.
- `plait replay FILE --pdb` stops in your debugger, inside the handler of the last step.
- `plait show NAME.py` lists what the model has. `plait check NAME.py --coverage` lists what the search has exercised.
- `plait --help` lists all commands.
"""


def init(name: str, /) -> int:
    """Write a model to start from (the help text is in `plait.cli.main`).

    Parameters
    ----------
    name
        The name of the new folder, of the model, and of its file.
    """
    folder = Path(name)
    _require_free(name, folder)
    files = {f"{name}.py": MODEL, f"test_{name}.py": TEST, "README.md": README}
    try:
        folder.mkdir()
        for file, text in files.items():
            (folder / file).write_text(text.replace("NAME", name), encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{error.filename or folder} cannot be written: {error.strerror}",
            hint="run plait init in a folder in which you may write",
        ) from None
    about = ("the model", "its tests", "what to do with them")
    longest = max(len(file) for file in files)
    emit(
        "\n".join(
            f"{folder / file}{' ' * (longest - len(file))}  {text}" for file, text in zip(files, about, strict=True)
        )
    )
    emit(f"next: cd {folder} && plait check {name}.py")
    return 0


def _require_free(name: str, folder: Path) -> None:
    """Refuse a name that cannot be the name of the folder, of the module and of the function."""
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        raise UsageError(
            f"{name!r} is not a public name in Python", hint="use letters, digits and _: plait init token_ring"
        )
    if name.startswith("test_"):
        raise UsageError(
            f"{name}.py would be a file of tests for pytest", hint=f"leave test_ out: plait init {name[5:]}"
        )
    if name in _names(symtable.symtable(MODEL, "model", "exec")):
        raise UsageError(f"the model that plait init writes uses the name {name!r}", hint="choose another name")
    if folder.exists() or folder.is_symlink():
        raise UsageError(f"{folder} is there already", hint="choose another name, or another folder")
    spec = importlib.util.find_spec(name)
    if spec is not None:
        raise UsageError(
            f"{name}.py would hide a module of that name: {spec.origin or 'a package'}", hint="choose another name"
        )


def _names(table: symtable.SymbolTable) -> Iterator[str]:
    """The global and built-in names that a module uses."""
    for symbol in table.get_symbols():
        if symbol.is_global() or table.get_type() == "module":
            yield symbol.get_name()
    for inner in table.get_children():
        yield from _names(inner)

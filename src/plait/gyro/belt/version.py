"""The version of a cluster: what its servers execute, and on which tables. The log has all versions, with numbers.

A server starts only with the content of the newest version, or of one that may run *beside* it. The first server of a
new cluster writes version 1. A later version is written only by a server that is started with `upgrade`, and only if
`obstacles` finds none: routes and tables are the same, and rows that local operations have written are where the new
operations look for them. While other servers run, it must also be true that one of the versions covers all
(`covered`). `log.agree` decides between servers that write at the same time. A change of the configuration that brings
another program begins a new *lineage*.

**Why an upgrade is right.** Rows that a local operation wrote are at one server only. So every new operation that
accesses them must execute there. Routes are the same, so it is enough that one analysis has compared the old writes
with the new accesses. The analysis of the new version has, if the new operations still have all writes of the old
local ones. The analysis of the old version has, if the new operations have no access that the old ones did not have.

**Why versions may run beside each other.** Let each operation of each version have only accesses that it also has in
version *m*. Routes are the same. So a conflict between two operations, of any two versions, is a conflict between the
same two operations in *m*, and the analysis of *m* has classified them with it.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType

import msgspec

from plait.gyro.belt.databases.database import Database
from plait.gyro.belt.logs.log import Log
from plait.gyro.belt.routing import Route
from plait.kernel.classification import FORMAT, Classification
from plait.kernel.errors import UsageError


class Content(msgspec.Struct, frozen=True):
    """What the servers of a cluster execute. Hashes stand for texts that are only compared."""

    format: int = FORMAT
    """The format of the analysis. It changes if the mapping of keys to servers changes, too."""
    servers: int = 0
    routes: dict[str, str] = {}
    """The class and the keys of each operation."""
    sources: dict[str, str] = {}
    """The source of each operation, and of each module of the application."""
    declared: dict[str, str] = {}
    """The statements of the schema."""
    tables: dict[str, str] = {}
    """The tables, constraints, triggers, views, … of the DBMS."""
    accesses: dict[str, list[str]] | None = None
    """All reads and writes of each operation; None if they are not known."""
    kept: dict[str, list[str]] | None = None
    """The writes of each operation that may execute without the token: the rows are at its server only."""


class Version(msgspec.Struct, frozen=True):
    """A content and its number, from 1."""

    number: int
    content: Content
    lineage: int = 0
    """The configuration that has begun with version 1 of this lineage."""
    beside: bool = False
    """Whether servers of the version before it may still run."""


def analyzed(classification: Classification, declared: Mapping[str, str]) -> Content:
    """The part of the content that the analysis and the schema determine."""
    operations = classification.operations
    known = all(a.digest for o in operations for a in (*o.reads, *o.writes))
    return Content(
        format=classification.format,
        declared={name: _hash(text) for name, text in declared.items()},
        accesses={o.name: sorted({a.digest for a in (*o.reads, *o.writes)}) for o in operations} if known else None,
        kept={o.name: sorted({a.digest for a in o.writes}) for o in operations if o.classed != "global"}
        if known
        else None,
    )


def content(
    part: Content, servers: int, routes: Mapping[str, Route], module: ModuleType, database: Database
) -> Content:
    """The content of this server: `part` with its routes, its code, and the tables of its DBMS."""
    tables = dict(line.partition(": ")[::2] for line in database.schema().splitlines())
    shown = {name: _route(route) for name, route in routes.items()}
    return msgspec.structs.replace(part, servers=servers, routes=shown, sources=sources(module, routes), tables=tables)


def sources(module: ModuleType, operations: Iterable[str]) -> dict[str, str]:
    """A hash of each operation, and of each module in the folder of the application that it has imported."""
    found = {}
    for name in operations:
        try:
            found[name] = _hash(inspect.getsource(inspect.unwrap(getattr(module, name))))
        except (OSError, TypeError, AttributeError):
            continue  # it has no source of its own; its module has
    folder = Path(str(module.__file__)).resolve().parent
    for other in list(sys.modules.values()):
        file = Path(getattr(other, "__file__", None) or "").resolve()
        if file.suffix == ".py" and file.is_relative_to(folder) and _belongs(module, other, file):
            found[f"the module {file.relative_to(folder)}"] = _hash(file.read_text(encoding="utf-8", errors="replace"))
    return found


def _belongs(module: ModuleType, other: ModuleType, file: Path) -> bool:
    """Whether a module in the folder of the application is part of it, and not installed there."""
    inside = file.relative_to(Path(str(module.__file__)).resolve().parent)
    if "site-packages" in inside.parts or other.__name__.partition(".")[0] in ("plait", "__main__"):
        return False
    return hasattr(module, "__path__") or not file.is_relative_to(Path(sys.prefix).resolve())


def lineage(
    number: int, part: Content, servers: int, routes: Mapping[str, Route], code: dict[str, str], tables: dict[str, str]
) -> Version:
    """Version 1 of the program that a configuration has brought."""
    shown = {name: _route(route) for name, route in routes.items()}
    made = msgspec.structs.replace(part, servers=servers, routes=shown, sources=code, tables=tables)
    return Version(1, made, number)


def versions(log: Log, begun: Version | None = None) -> list[Version]:
    """All versions of a lineage."""
    found = [begun] if begun is not None else []
    origin = begun.lineage if begun is not None else 0
    while (text := log.agreed(_key(len(found) + 1, origin))) is not None:
        found.append(msgspec.json.decode(text, type=Version))
    return found


def allowed(found: Sequence[Version]) -> list[Version]:
    """The versions that may run: the newest, and those that it may run beside."""
    first = max((n for n, version in enumerate(found) if not version.beside), default=0)
    return list(found[first:])


def superseded(version: Version, log: Log) -> bool:
    """Whether the log has a newer version that this one may not run beside."""
    number = version.number + 1
    while (text := log.agreed(_key(number, version.lineage))) is not None:
        try:
            if not msgspec.json.decode(text, type=Version).beside:
                return True
        except msgspec.DecodeError:  # of a later release
            return True
        number += 1
    return False


def settle(
    mine: Content, log: Log, *, upgrade: bool, running: Callable[[], list[int]], begun: Version | None = None
) -> Version:
    """The version with this content; UsageError if the cluster has another one. `running` has the servers that answer."""
    known = versions(log, begun)
    if not known:
        if log.agreed("classification") is not None:
            raise UsageError(
                "this cluster was started by a release of Plait that recorded no versions",
                hint="use this release, or begin a new cluster",
            )
        known = [_write(Version(1, mine), log)]
    now = allowed(known)
    for version in reversed(now):
        if version.content == mine:
            return version
    found = now[-1]
    changed = _changed(found.content, mine)
    if reasons := next(filter(None, (obstacles(version.content, mine) for version in reversed(now))), []):
        more = f"; and {len(reasons) - 1} more" if len(reasons) > 1 else ""
        raise UsageError(
            f"{reasons[0]}{more}",
            hint=f"use the application and the schema of version {found.number} for all servers; "
            "to change them while the servers work, see `plait gyro change`",
        )
    beside = covered([*(version.content for version in now), mine])
    if not upgrade:
        how = "start the servers one by one" if beside else "stop all servers, then start all of them"
        raise UsageError(
            f"{changed} of version {found.number} of the cluster", hint=f"{how} with `plait gyro serve --upgrade`"
        )
    others = running()
    if others and not beside:
        raise UsageError(
            f"server {others[0]} still executes version {found.number}, and no version has all accesses of both",
            hint="stop all servers, then start all of them with the new application; or see `plait gyro change`",
        )
    written = _write(Version(found.number + 1, mine, found.lineage, bool(others)), log)
    if written.content != mine:
        raise UsageError(
            f"{_changed(written.content, mine)} of version {written.number}, which another server has just written",
            hint="use the same application for all servers",
        )
    return written


def covered(contents: Sequence[Content]) -> bool:
    """Whether one of the versions has all accesses of all of them."""
    return any(all(_within(each, most) for each in contents) for most in contents)


def _within(content: Content, most: Content) -> bool:
    """Whether each operation has only accesses that it also has in another version."""
    if content.accesses is None or most.accesses is None:
        return False
    known = most.accesses
    return all(name in known and {*found} <= {*known[name]} for name, found in content.accesses.items())


def obstacles(old: Content, new: Content) -> list[str]:
    """Why servers with the old content cannot go on with the new one."""
    found = []
    if old.format != new.format:
        found.append(f"the analysis has the format {new.format}, but that of the cluster has {old.format}")
    if old.servers != new.servers:
        found.append(
            f"the number of servers differs from that of the cluster (here: {new.servers}; there: {old.servers}): it "
            "determines the mapping of keys"
        )
    for here, there, what in ((new.tables, old.tables, "here"), (new.declared, old.declared, "declared")):
        for name in _differing(there, here):
            detail = f" (here: {here.get(name, 'none')[:200]}; there: {there.get(name, 'none')[:200]})"
            found.append(f"the schema differs from that of the cluster: {name}{detail if what == 'here' else ''}")
    for name in sorted(old.routes.keys() & new.routes.keys()):
        if old.routes[name] != new.routes[name]:
            found.append(
                f"the classification differs from that of the cluster: {name} was {old.routes[name]}, and is "
                f"{new.routes[name]}; rows may be at another server"
            )
    if None in (old.kept, new.kept, old.accesses, new.accesses):
        found.append("the reads and writes of operations are not known: rows may be at another server")
    elif not found and (lost := _lost(old, new)) is not None:
        found.append(
            f"{lost} does not write all rows that it wrote before, and some operations access more than before: they may "
            "look for these rows at another server"
        )
    return found


def _lost(old: Content, new: Content) -> str | None:
    """An operation whose old local rows no analysis has compared with the new accesses; None if there is none."""
    kept, known = new.kept or {}, old.accesses or {}
    gone = [name for name, writes in (old.kept or {}).items() if not {*writes} <= {*kept.get(name, ())}]
    more = any(not {*accesses} <= {*known.get(name, ())} for name, accesses in (new.accesses or {}).items())
    return gone[0] if gone and more else None


def _changed(old: Content, new: Content) -> str:
    """Which operations or modules differ, as the beginning of a sentence."""
    names = _differing(old.sources, new.sources)
    operations = [n for n in names if not n.startswith("the module ")] or names
    if not operations:
        return "the reads and writes of operations differ from those"
    shown = ", ".join(operations[:5]) + (", …" if len(operations) > 5 else "")
    return f"the code of {shown} differs from that"


def _differing(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    return sorted(n for n in old.keys() | new.keys() if old.get(n) != new.get(n))


def _route(route: Route) -> str:
    keys = " and ".join(f"{k} ({route.kinds.get(k, '?')})" for k in route.keys)
    return f"{route.classed}{', read-only' if route.read_only else ''}, by {keys or 'no key'}"


def _write(version: Version, log: Log) -> Version:
    key = _key(version.number, version.lineage)
    return msgspec.json.decode(log.agree(key, msgspec.json.encode(version).decode()), type=Version)


def _key(number: int, lineage: int) -> str:
    return f"version {lineage}.{number}" if lineage else f"version {number}"


def _hash(text: str) -> str:
    return hashlib.blake2b("\n".join(text.splitlines()).encode(), digest_size=8).hexdigest()

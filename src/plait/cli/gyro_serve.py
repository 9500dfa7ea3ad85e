"""`plait gyro serve` and `plait gyro status`: run an application on several servers, and show their state."""

from __future__ import annotations

import os
import secrets
import signal
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from plait.cli.options import AtLeastOne, Flag
from plait.cli.output import FOLDER, emit, emit_json, note, ready
from plait.kernel.errors import UsageError
from plait.kernel.extras import require
from plait.report.wording import plural

if TYPE_CHECKING:
    from plait.gyro.belt.databases.postgresql_server import PostgresServer
    from plait.gyro.belt.routing import Route

SECRET = "PLAIT_GYRO_SECRET"
_UNREACHABLE = 1


def serve(
    application: str,
    /,
    *,
    servers: AtLeastOne = 3,
    db: Literal["sqlite", "postgresql"] = "sqlite",
    dsn: Annotated[tuple[str, ...], Parameter(name="--dsn", negative=(), show_default=False)] = (),
    schema: Annotated[Path | None, Parameter(name="--schema")] = None,
    data: Annotated[Path | None, Parameter(name="--data")] = None,
    classification: Annotated[Path | None, Parameter(name="--classification")] = None,
    log: str = "embedded",
    folder: Annotated[Path, Parameter(name="--folder")] = FOLDER / "gyro",
    host: str = "127.0.0.1",
    port: AtLeastOne = 8400,
    url: Annotated[tuple[str, ...], Parameter(name="--url", negative=(), show_default=False)] = (),
    only: Annotated[tuple[int, ...], Parameter(name="--only", negative=(), show_default=False)] = (),
) -> int:
    """Run an application on several servers (the help text is in `plait.cli.main`).

    Parameters
    ----------
    application
        A Python file or package whose functions execute SQL.
    servers
        The number of servers.
    db
        The DBMS of each server: sqlite or postgresql.
    dsn
        The connection string of the PostgreSQL of a server; once per server. Default: start a PostgreSQL per server.
    schema
        A file with the DDL. Default: the constant SCHEMA, schema.sql next to the application, or SQLAlchemy Tables.
    data
        A file with SQL that fills the tables of every server at the first start.
    classification
        A file with the output of `plait gyro analyze --json`. Default: analyze the application now.
    log
        The log of global operations: embedded (a file, for servers on one machine) or etcd:URL.
    folder
        The folder for databases, log and settings. Servers that restart in it keep their state.
    host
        The address to listen at. With the default, only this machine can connect.
    port
        The port of server 0. The other servers use the next ports.
    url
        The URL of a server; once per server, if servers run on several machines.
    only
        Start only the server with this number (from 0). The other servers run on other machines.
    """
    require("serve")
    from plait.gyro.belt.application import load, schema_of, written_schema
    from plait.gyro.belt.settings import Settings
    from plait.gyro.belt.supervisor import Supervisor

    count = len(url) or servers or 3
    urls = [u.rstrip("/") for u in url] or [f"http://{_reachable(host)}:{(port or 8400) + n}" for n in range(count)]
    _validate(count, url, only, dsn, db, log, port or 8400)
    module = load(application)
    ddl = schema_of(application, module, schema, dialect=db)
    try:
        ready(folder / "schema.sql")
        if written_schema(application, module, schema) is None:
            schema = folder / "schema.sql"  # the schema of SQLAlchemy is more complete than the source
            schema.write_text(ddl, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--folder: {folder}: {error.strerror}", hint="choose another folder") from None
    if data is not None:
        ddl += "\n" + _text(data, "--data")
    routes = _routes(application, classification, schema, db, count)
    with ExitStack() as stack:
        dsns = list(dsn)
        started: list[PostgresServer] = []
        if db == "postgresql" and not dsns:
            from plait.gyro.belt.databases.postgresql_server import PostgresServer

            for number in range(count):
                own = PostgresServer((folder / f"server-{number}").resolve())
                stack.callback(own.close)
                if not only or number in only:
                    own.start()
                    started.append(own)
                dsns.append(own.dsn)
        settings = Settings(
            application=application,
            routes=routes,
            schema=ddl,
            urls=urls,
            folder=str(folder.resolve()),
            db=db,
            dsns=dsns,
            log=log,
            secret=os.environ.get(SECRET) or _kept_secret(folder),
            host=host,
        )
        supervisor = Supervisor(settings, tell=note, only=only)
        for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(name, lambda *_: supervisor.end())
        stack.callback(supervisor.stop)
        supervisor.start()
        kinds = [r.classed for r in routes.values()]
        classes = ", ".join(f"{kinds.count(k)} {k}" for k in ("local", "global", "local/global") if k in kinds)
        note(f"{Path(application).name}: {len(kinds)} operations ({classes}) on {count} servers")
        for number, where in enumerate(urls):
            if not only or number in only:
                note(f"server {number}: {where}")
        note("press Ctrl-C to stop all servers; plait gyro status shows their state")
        supervisor.run(also=lambda: _restart(started))
    note("stopped")
    return 0


def _restart(started: list[PostgresServer]) -> None:
    """Restart each PostgreSQL that has died. Its server reconnects."""
    for own in started:
        if not own.running:
            note("PostgreSQL died and is restarted")
            own.start()


def _validate(
    count: int, url: tuple[str, ...], only: tuple[int, ...], dsn: tuple[str, ...], db: str, log: str, port: int
) -> None:
    if dsn and (db != "postgresql" or len(dsn) != count):
        raise UsageError(
            f"{len(dsn)} times --dsn, but {count} servers with --db {db}",
            hint="give --dsn once per server, with --db postgresql",
        )
    if log != "embedded" and not log.startswith("etcd:http"):
        raise UsageError(f"--log {log}: expected embedded or etcd:http://HOST:PORT", hint="choose one of these")
    if only and any(not 0 <= n < count for n in only):
        raise UsageError(
            f"--only {only[0]}: expected a number from 0 to {count - 1}", hint="choose the number of a server"
        )
    if only and len(only) < count and log == "embedded" and url:
        raise UsageError("the embedded log needs all servers on one machine", hint="use --log etcd:URL")
    if only and url and not os.environ.get(SECRET):
        raise UsageError(
            "servers on several machines need a common secret", hint=f"set {SECRET} to the same value everywhere"
        )
    if port + count > 65536:
        raise UsageError(
            f"--port {port}: {count} servers need ports up to {port + count - 1}", hint="choose a smaller port"
        )
    if any(not u.startswith("http://") or not u.rstrip("/").rpartition(":")[2].isdigit() for u in url):
        raise UsageError(f"--url {url[0]}: expected http://HOST:PORT", hint="give the host and the port")


def _reachable(host: str) -> str:
    return socket.gethostname() if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host


def _text(file: Path, option: str) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{option}: {file} cannot be read: {error}", hint="give a file with SQL") from None


def _kept_secret(folder: Path) -> str:
    """The secret of the cluster in this folder. It is created once."""
    file = folder / "secret"
    if not file.exists():
        file.touch(mode=0o600)
        file.write_text(secrets.token_hex(32), encoding="ascii")
    return file.read_text(encoding="ascii").strip()


def _routes(
    application: str, classification: Path | None, schema: Path | None, db: str, servers: int
) -> dict[str, Route]:
    from plait.gyro.analysis import analyze
    from plait.gyro.belt.routing import routes
    from plait.kernel.classification import Classification

    if classification is None:
        note(f"analyzing {application}")
        dialect: Any = "sqlite" if db == "sqlite" else "postgres"
        found = analyze(application, schema=schema, servers=max(servers, 2), dialect=dialect)
        for warning in found.warnings:
            note(f"warning: {warning}")
        return routes(found)
    import msgspec

    try:
        return routes(msgspec.json.decode(_text(classification, "--classification"), type=Classification))
    except msgspec.DecodeError as error:
        raise UsageError(
            f"--classification: {classification} is not a classification: {error}",
            hint="create the file with plait gyro analyze --json",
        ) from None


def status(target: str = "", /, *, json: Flag = False) -> int:
    """Show the state of servers (the help text is in `plait.cli.main`).

    Parameters
    ----------
    target
        The URL of a server, or the folder of the servers (default: .plait/gyro).
    json
        Print exactly one JSON object on stdout.
    """
    import msgspec

    from plait.gyro.belt.http import ask
    from plait.gyro.belt.supervisor import known_cluster

    if target.startswith("http"):
        try:
            answer = ask(target, "/cluster")[1]
            urls: list[str] = msgspec.json.decode(answer)["urls"]
        except (OSError, msgspec.DecodeError, KeyError, TypeError):
            raise UsageError(
                f"{target} does not answer like a server of plait gyro", hint="give the URL of one server"
            ) from None
    else:
        urls = known_cluster(Path(target) if target else FOLDER / "gyro")
        if not urls:
            raise UsageError(
                f"the folder {target or FOLDER / 'gyro'} has no servers",
                hint="start servers with plait gyro serve, or give the URL of a server",
            )
    found: list[dict[str, Any] | None] = []
    for url in urls:
        try:
            found.append(msgspec.json.decode(ask(url, "/status")[1]))
        except (OSError, msgspec.DecodeError):
            found.append(None)
    last = max((f["known"] for f in found if f is not None), default=0)
    for facts in filter(None, found):
        facts["lag"] = last - facts["applied"]  # compared with the newest update that any server knows
    if json:
        shown = [{"url": u, "up": f is not None, **(f or {})} for u, f in zip(urls, found, strict=True)]
        emit_json({"token": _token(found), "updates": last, "servers": shown})
    else:
        emit(_table(urls, found, last))
    return 0 if all(f is not None and f["broken"] is None for f in found) else _UNREACHABLE


def _token(found: list[dict[str, Any] | None]) -> dict[str, Any] | None:
    """The server that had the token last, and whether it still holds it; only servers that answer count."""
    seen = [f for f in found if f is not None and f["turn"] >= 0]
    if not seen:
        return None
    latest = max(seen, key=lambda f: (f["epoch"], f["turn"]))
    return {k: latest[k] for k in ("server", "epoch", "turn")} | {"held": latest["holds_token"]}


def _table(urls: list[str], found: list[dict[str, Any] | None], last: int) -> str:
    """One line per server, then the token."""
    rows = [("server", "url", "token", "queue", "applied", "lag", "ops/s", "local", "global")]
    for number, (url, facts) in enumerate(zip(urls, found, strict=True)):
        if facts is None:
            rows.append((str(number), url, "does not answer", "", "", "", "", "", ""))
            continue
        token = "here" if facts["holds_token"] else f"turn {facts['turn']}" if facts["turn"] >= 0 else "not yet"
        counts = facts["operations"]
        rows.append(
            (
                str(number),
                url,
                token,
                str(facts["queue"]),
                str(facts["applied"]),
                str(facts["lag"]),
                f"{facts['throughput']:.1f}",
                str(counts["local"]),
                str(counts["global"]),
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.rjust(w) if i > 2 else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    if (seen := _token(found)) is None:
        lines.append("the position of the token is not known")
    else:
        where = "at" if seen["held"] else "has left"
        lines.append(
            f"token {seen['epoch']} {where} server {seen['server']}, turn {seen['turn']}; {plural(last, 'update')}"
        )
    lines += [f"server {f['server']} has stopped: {f['broken']}" for f in found if f is not None and f["broken"]]
    return "\n".join(lines)

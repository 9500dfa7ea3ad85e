"""`plait gyro serve`: run an application on several servers."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import sys
import urllib.parse
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from cyclopts import Parameter, validators

from plait.cli.options import AtLeastOne, Count, Flag
from plait.cli.output import FOLDER, ready
from plait.cli.output import note as plain_note
from plait.kernel.errors import UsageError
from plait.kernel.extras import require
from plait.report.wording import plural

if TYPE_CHECKING:
    from plait.gyro.belt.databases.mariadb.server import MariadbServer
    from plait.gyro.belt.databases.postgresql.server import PostgresServer
    from plait.gyro.belt.service.certificates import Tls
    from plait.gyro.belt.service.events import LogFormat
    from plait.gyro.belt.settings import Settings
    from plait.kernel.classification import Classification

    Dbms = PostgresServer | MariadbServer

Replicate = Literal["none", "background", "acknowledged"]
Tell = Callable[[str], None]
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
SECRET = "PLAIT_GYRO_SECRET"
_SHORTEST = 16
"""The fewest characters of a secret."""


def serve(
    application: str,
    /,
    *,
    config: Annotated[Path | None, Parameter(name="--config")] = None,
    servers: AtLeastOne = 3,
    db: Literal["sqlite", "postgresql", "mariadb"] = "sqlite",
    dsn: Annotated[tuple[str, ...], Parameter(name="--dsn", negative=(), show_default=False)] = (),
    schema: Annotated[Path | None, Parameter(name="--schema")] = None,
    data: Annotated[Path | None, Parameter(name="--data")] = None,
    classification: Annotated[Path | None, Parameter(name="--classification")] = None,
    recording: Annotated[Path | None, Parameter(name="--recording")] = None,
    log: str = "embedded",
    fence: str = "",
    folder: Annotated[Path, Parameter(name="--folder")] = FOLDER / "gyro",
    host: str = "127.0.0.1",
    port: AtLeastOne = 8400,
    url: Annotated[tuple[str, ...], Parameter(name="--url", negative=(), show_default=False)] = (),
    only: Annotated[tuple[int, ...], Parameter(name="--only", negative=(), show_default=False)] = (),
    replicate: Annotated[Replicate | None, Parameter(name="--replicate")] = None,
    rebuild: Annotated[int | None, Parameter(name="--rebuild")] = None,
    older_copy: Annotated[tuple[int, ...], Parameter(name="--older-copy", negative=(), show_default=False)] = (),
    join: str = "",
    upgrade: Flag = False,
    secret_file: Annotated[Path | None, Parameter(name="--secret-file")] = None,
    log_format: Literal["text", "json"] = "text",
    max_lag: Count = 1000,
    client_rate: Annotated[float, Parameter(validator=validators.Number(gte=0))] = 5000,
    rate: Annotated[float, Parameter(validator=validators.Number(gte=0))] = 20000,
    queue: AtLeastOne = 1000,
    trusted_proxy: Annotated[tuple[str, ...], Parameter(name="--trusted-proxy", negative=(), show_default=False)] = (),
    tls_certificate: Annotated[Path | None, Parameter(name="--tls-certificate")] = None,
    tls_key: Annotated[Path | None, Parameter(name="--tls-key")] = None,
    tls_ca: Annotated[Path | None, Parameter(name="--tls-ca")] = None,
    tls_clients: Literal["none", "optional", "required"] = "none",
) -> int:
    """Run an application on several servers (the help text is in `plait.cli.main`).

    Parameters
    ----------
    application
        A Python file or package whose functions execute SQL; with --recording, a web application: MODULE:app.
    config
        A TOML file with options, for example `port = 8400`. The command line wins. It may also have the `application`.
    servers
        The number of servers.
    db
        The DBMS of each server: sqlite, postgresql or mariadb.
    dsn
        The connection string of the DBMS of a server; once per server. Default: start a PostgreSQL or MariaDB per server.
    schema
        A file with the DDL. Default: the constant SCHEMA, schema.sql next to the application, or SQLAlchemy Tables.
    data
        A file with SQL that fills the tables of every server at the first start.
    classification
        A file with the output of `plait gyro analyze --json`. Default: analyze the application now.
    recording
        The recording of a web application (plait gyro record). It contains the schema.
    log
        The log of global operations: embedded (a file, for servers on one machine), etcd:URL,… or nats:URL,…
        (with --fence). Options follow, as in etcd:https://a:2379,https://b:2379?ca=FILE&user=NAME.
    fence
        With --log nats:…, the etcd that has the epochs: etcd:URL,…
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
    replicate
        Ship the rows that local operations write to the log: none; background; or acknowledged, where replies wait for
        it. Default: acknowledged with etcd or NATS, none with the embedded log, or what the folder was started with.
    rebuild
        Rebuild the lost database of this server from the log before the start. The old database is refused from then on.
    older_copy
        Go on with an older copy of the database of this server. Local operations that it executed since then are lost.
        It is only for clusters without --replicate; others are rebuilt.
    join
        Start a new server at this URL, which builds its database from the log and waits for plait gyro change --add URL.
    upgrade
        Go on with other code of the operations than before. If the new code has all accesses of the old one, or the other
        way round, start the servers one by one. Otherwise all servers must be stopped first.
    secret_file
        A file with the secret of the cluster. Default: the variable PLAIT_GYRO_SECRET, or a secret of the folder.
    log_format
        The format of log lines on stderr: text, or json (one JSON object per line).
    max_lag
        A server that has more updates to apply is not ready (GET /ready).
    client_rate
        The maximal number of requests per second of one client address at one server; 0 means no limit.
    rate
        The maximal number of requests per second at one server; 0 means no limit.
    queue
        The maximal number of global operations that wait for the token at one server.
    trusted_proxy
        The address of a proxy whose X-Forwarded-For header is believed; once per proxy.
    tls_certificate
        A PEM file with the certificate of this machine. The servers then use HTTPS.
    tls_key
        A PEM file with the private key of the certificate.
    tls_ca
        A PEM file with the authorities that verify other servers and clients. Default: those of the system.
    tls_clients
        Whether clients need a certificate: none, optional or required.
    """
    require("serve")
    from plait.gyro.belt.application import load, schema_of, written_schema
    from plait.gyro.belt.routing import routes as routes_of
    from plait.gyro.belt.service.lifetime import tell_systemd
    from plait.gyro.belt.service.occupation import occupied
    from plait.gyro.belt.service.private import private_umask
    from plait.gyro.belt.settings import DIALECTS, Settings
    from plait.gyro.belt.supervisor import Supervisor
    from plait.gyro.belt.version import analyzed
    from plait.gyro.sql.schema import definitions

    note = _teller(log_format)
    tls = _tls(tls_certificate, tls_key, tls_ca, tls_clients)
    scheme = "http" if tls is None else "https"
    count = len(url) or servers or 3
    urls = [u.rstrip("/") for u in url] or [f"{scheme}://{_reachable(host)}:{(port or 8400) + n}" for n in range(count)]
    changed = _changed(folder, db)
    if changed is not None:
        count = len(changed.urls)
        urls = urls if len(url) == count else changed.urls
        note(f"configuration {changed.configuration} of the cluster: servers {', '.join(map(str, changed.numbers))}")
    numbers = changed.numbers if changed is not None else list(range(count))
    _validate(numbers, url, only, dsn, db, log, fence, port or 8400, bool(join))
    _validate_urls((*url, *((join,) if join else ())), scheme)
    if scheme == "http" and any(urllib.parse.urlsplit(u).hostname not in _LOOPBACK for u in url):
        note("warning: servers on several machines without TLS send the secret and all data unencrypted")
    secret = _given_secret(secret_file)
    if only and url and not secret:
        raise UsageError(
            "servers on several machines need a common secret",
            hint=f"set {SECRET} to the same value everywhere, or give the same --secret-file",
        )
    if rebuild is not None and rebuild not in (only or numbers):
        raise UsageError(
            f"--rebuild {rebuild}: this server is not started here", hint="choose a server that is started"
        )
    if wrong := [n for n in older_copy if n not in (only or numbers)]:
        raise UsageError(
            f"--older-copy {wrong[0]}: this server is not started here", hint="choose a server that is started"
        )
    recorded = _recorded(recording, schema, db) if recording is not None else ""
    module = None
    if recording is not None:
        from plait.gyro.source.listing import schema_text

        ddl = schema_text(recording)
    else:
        module = load(application)
        ddl = schema_of(application, module, schema, dialect=db)
    dialect = DIALECTS[db]
    declared = definitions(ddl, dialect=dialect)
    own = db != "sqlite" and not dsn
    with ExitStack() as stack:
        stack.enter_context(private_umask())
        try:
            _make(folder, shared=own and os.geteuid() == 0)
            stack.enter_context(occupied(folder, () if join else only or numbers, alone=bool(join)))
            if module is not None and written_schema(application, module, schema) is None:
                schema = folder / "schema.sql"  # the schema of SQLAlchemy is more complete than the source
                schema.write_text(ddl, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"--folder: {folder}: {error.strerror}", hint="choose another folder") from None
        if data is not None:
            ddl += "\n" + _text(data, "--data")
        source = str(recording) if recording is not None else application
        first = changed.first if changed is not None else count
        found = _classified(source, classification, schema, dialect, first, note)
        routes = routes_of(found)
        started = _dbms(db, folder, numbers, only, stack) if own else {}
        settings = Settings(
            application=application,
            routes=routes,
            schema=ddl,
            urls=urls,
            folder=str(folder.resolve()),
            db=db,
            dsns=[started[n].dsn if n in started else "" for n in range(max(numbers) + 1)] if own else list(dsn),
            recording=recorded,
            log=log,
            replicate=replicate or _replicate(folder, log),
            fence=fence,
            secret=secret or kept_secret(folder),
            host=host,
            analyzed=analyzed(found, declared),
            upgrade=bool(upgrade),
            older=list(older_copy),
            tls=tls,
            log_format=log_format,
            lag=max_lag,
            client_rate=client_rate,
            rate=rate,
            queue=queue or 1,
            proxies=list(trusted_proxy),
            members=changed.members if changed is not None else [],
            configuration=changed.configuration if changed is not None else 0,
            first=changed.first if changed is not None else 0,
        )
        if rebuild is not None:
            _rebuild(rebuild, settings, note)
        joining = _join(join.rstrip("/"), settings) if join else {}
        supervisor = Supervisor(settings, tell=note, only=only, joining=joining)
        for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(name, lambda *_: supervisor.end())
        if not sys.stderr.isatty():  # a closed terminal ends the servers; for a service, SIGHUP means: read again
            signal.signal(signal.SIGHUP, lambda *_: supervisor.reload())
        stack.callback(supervisor.stop)
        supervisor.start()
        kinds = [r.classed for r in routes.values()]
        classes = ", ".join(f"{kinds.count(k)} {k}" for k in ("local", "global", "local/global") if k in kinds)
        what = "operations" if recording is None else "endpoints"
        note(f"{Path(application).name}: {len(kinds)} {what} ({classes}) on {count} servers")
        for number, where in joining.items():
            note(f"server {number} joins: {where}; make it a member with plait gyro change --add {where}")
        for number, where in zip(numbers, urls, strict=True):
            if not joining and (not only or number in only):
                note(f"server {number}: {where}")
        note("press Ctrl-C to stop all servers; plait gyro status shows their state")
        stack.callback(tell_systemd, "STOPPING=1")
        tell_systemd("READY=1")
        supervisor.run(also=lambda: _restart(list(started.values()), note))
    note("stopped")
    return 0


def _changed(folder: Path, db: str) -> Settings | None:
    """The settings of a cluster whose configuration has changed since its first start; the log has them, too."""
    from plait.gyro.belt.settings import load_settings

    if not (folder / "settings.json").exists():
        return None
    known = load_settings(folder / "settings.json")
    if known.db != db:
        raise UsageError(
            f"--db {db}: the servers of {folder} were started with {known.db}, and have their rows there",
            hint=f"use --db {known.db}; or begin a new cluster: another --folder, and another --log or secret",
        )
    return known if known.configuration else None


def _join(url: str, settings: Settings) -> dict[int, str]:
    """The number of a server that joins at a URL: it is reserved in the log."""
    from plait.gyro.belt.configuration.follower import reserve
    from plait.gyro.belt.logs.log import LogGoneError
    from plait.gyro.belt.replication.rebuild import check_rebuild
    from plait.gyro.belt.server import open_log

    try:
        with closing(open_log(settings)) as log:
            check_rebuild(max(settings.numbers) + 1, log)
            number = reserve(log, max(settings.numbers), url)
    except LogGoneError as error:
        raise UsageError(f"--join {url}: {error}", hint="start the log, and try again") from None
    if settings.dsns:
        settings.dsns[:] = [""] * number + settings.dsns[-1:]
    return {number: url}


def _make(folder: Path, *, shared: bool) -> None:
    """Make the folder, for its owner only. If root runs the DBMS as another user, that user may pass through."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    ready(folder / "schema.sql")
    if shared:
        for each in missing:
            each.chmod(0o711)


def _dbms(db: str, folder: Path, numbers: list[int], only: tuple[int, ...], stack: ExitStack) -> dict[int, Dbms]:
    """Start a PostgreSQL or a MariaDB for each server of this machine."""
    started = {}
    for number in only or numbers:
        own = started[number] = dbms(db, (folder / f"server-{number}").resolve())
        stack.callback(own.close)
        own.start()
    return started


def dbms(db: str, folder: Path) -> Dbms:
    """A DBMS that can be started in a folder."""
    if db == "mariadb":
        from plait.gyro.belt.databases.mariadb.server import MariadbServer

        return MariadbServer(folder)
    from plait.gyro.belt.databases.postgresql.server import PostgresServer

    return PostgresServer(folder)


def _teller(log_format: LogFormat) -> Tell:
    """How this process reports: notes for people, or JSON lines."""
    if log_format == "text":
        return plain_note
    from plait.gyro.belt.service.events import configure, event, logger

    configure("json")
    return lambda text: logger.info("%s", text, extra=event("supervisor"))


def _restart(started: list[Dbms], note: Tell) -> None:
    """Restart each DBMS that has died. Its server reconnects."""
    for own in started:
        if not own.running:
            note("the DBMS of a server died and is restarted")
            own.start()


def check_log(log: str, fence: str = "") -> None:
    """Refuse the address of an unknown log."""
    if log != "embedded" or fence:
        from plait.gyro.belt.logs.address import addresses

        addresses(log, fence)


def _replicate(folder: Path, log: str) -> Replicate:
    """How this folder was started before. A new cluster replicates if the log is not on the disk of a server."""
    from plait.gyro.belt.settings import load_settings

    if (folder / "settings.json").exists():
        return load_settings(folder / "settings.json").replicate
    return "none" if log == "embedded" else "acknowledged"


def _rebuild(number: int, settings: Settings, note: Tell) -> None:
    """Rebuild the database of a server from the log."""
    import msgspec

    from plait.gyro.belt.configuration.follower import newest
    from plait.gyro.belt.configuration.request import followed
    from plait.gyro.belt.logs.log import LogGoneError
    from plait.gyro.belt.records import DatabaseGoneError
    from plait.gyro.belt.replication.rebuild import check_rebuild, initial, rebuild
    from plait.gyro.belt.server import open_database, open_log
    from plait.gyro.belt.supervisor import answers

    try:
        with closing(open_log(settings)) as log:
            now = newest(log)
            if now is not None and now.number > settings.configuration:
                settings = followed(settings, now)
    except LogGoneError as error:
        raise UsageError(f"--rebuild {number}: {error}", hint="start the log, and try again") from None
    if number in settings.numbers and answers(settings.url(number)):
        raise UsageError(
            f"--rebuild {number}: server {number} answers at {settings.url(number)}",
            hint="a server is only rebuilt if its database is lost: stop it, and move its database away",
        )
    try:
        with closing(open_log(settings)) as log:
            check_rebuild(number, log)
            again = msgspec.structs.replace(settings, schema=initial(log))
            with closing(open_database(number, again, lambda _: None, log.largest)) as database:
                updates, local = rebuild(number, database, log)
    except (LogGoneError, DatabaseGoneError) as error:
        raise UsageError(f"--rebuild {number}: {error}", hint="start the log and the DBMS, and try again") from None
    note(f"server {number} is rebuilt: {plural(updates, 'global update')}, {plural(local, 'local update')}")


def _validate(
    numbers: list[int],
    url: tuple[str, ...],
    only: tuple[int, ...],
    dsn: tuple[str, ...],
    db: str,
    log: str,
    fence: str,
    port: int,
    join: bool,
) -> None:
    count = len(numbers)
    if dsn and (db == "sqlite" or len(dsn) != (1 if join else max(numbers) + 1)):
        raise UsageError(
            f"{len(dsn)} times --dsn, but {count} servers with --db {db}",
            hint="give --dsn once per server, with --db postgresql or --db mariadb",
        )
    check_log(log, fence)
    if only and any(n not in numbers for n in only):
        raise UsageError(
            f"--only {only[0]}: expected one of {', '.join(map(str, numbers))}", hint="choose the number of a server"
        )
    if only and len(only) < count and log == "embedded" and url:
        raise UsageError("the embedded log needs all servers on one machine", hint="use --log etcd:URL")
    if port + count > 65536:
        raise UsageError(
            f"--port {port}: {count} servers need ports up to {port + count - 1}", hint="choose a smaller port"
        )


def _validate_urls(url: tuple[str, ...], scheme: str) -> None:
    for each in url:
        if not each.startswith(f"{scheme}://") or not each.rstrip("/").rpartition(":")[2].isdigit():
            hint = "give the host and the port; https needs --tls-certificate and --tls-key"
            raise UsageError(f"--url {each}: expected {scheme}://HOST:PORT", hint=hint)
        if url.count(each) > 1:
            raise UsageError(f"--url {each} is given twice", hint="give the URL of each server once, in their order")


def _tls(certificate: Path | None, key: Path | None, ca: Path | None, clients: str) -> Tls | None:
    """The files of TLS, checked."""
    from plait.gyro.belt.service.certificates import Certificates, Tls

    if certificate is None:
        if key is not None or ca is not None or clients != "none":
            raise UsageError("TLS needs a certificate", hint="give --tls-certificate and --tls-key")
        return None
    names = [str(file.resolve()) if file is not None else "" for file in (certificate, key or certificate, ca)]
    tls = msgspec.convert({"certificate": names[0], "key": names[1], "ca": names[2], "clients": clients}, Tls)
    Certificates(tls)
    return tls


def _reachable(host: str) -> str:
    return socket.gethostname() if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host


def _text(file: Path, option: str) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{option}: {file} cannot be read: {error}", hint="give a file with SQL") from None


def _given_secret(file: Path | None) -> str:
    """The secret of the environment or of a file; empty if there is none."""
    where = SECRET if file is None else f"--secret-file: {file}"
    try:
        found = os.environ.get(SECRET, "") if file is None else file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{where} cannot be read: {error}", hint="give a file with the secret") from None
    if len(found) < _SHORTEST and (found or file is not None):
        raise UsageError(f"{where} has {len(found)} characters", hint=f"use at least {_SHORTEST} random characters")
    return found


def _recorded(recording: Path, schema: Path | None, db: str) -> str:
    """The text of a recording that can be served."""
    from plait.gyro.web.contract import contract

    if schema is not None:
        raise UsageError("--recording and --schema: the recording has a schema", hint="leave out --schema")
    if db != "sqlite":
        raise UsageError(f"--recording and --db {db}: web applications need SQLite", hint="use --db sqlite")
    text = _text(recording, "--recording")
    contract(text, source=str(recording))
    return text


def kept_secret(folder: Path) -> str:
    """The secret of the cluster in this folder. It is created once."""
    file = folder / "secret"
    if not file.exists():
        file.touch(mode=0o600)
        file.write_text(secrets.token_hex(32), encoding="ascii")
    return file.read_text(encoding="ascii").strip()


def _classified(
    application: str, classification: Path | None, schema: Path | None, dialect: Any, servers: int, note: Tell
) -> Classification:
    from plait.gyro.analysis import analyze
    from plait.kernel.classification import FORMAT, Classification

    if classification is None:
        note(f"analyzing {application}")
        found = analyze(application, schema=schema, servers=max(servers, 2), dialect=dialect)
        for warning in found.warnings:
            note(f"warning: {warning}")
        return found
    try:
        found = msgspec.json.decode(_text(classification, "--classification"), type=Classification)
    except msgspec.DecodeError as error:
        raise UsageError(
            f"--classification: {classification} is not a classification: {error}",
            hint="create the file with plait gyro analyze --json",
        ) from None
    if found.format != FORMAT:
        raise UsageError(
            f"--classification: {classification} has the format {found.format}, expected {FORMAT}",
            hint="create the file with plait gyro analyze --json of this release",
        )
    return found

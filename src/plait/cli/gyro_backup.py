"""`plait gyro backup` and `plait gyro restore`: one consistent cut of a cluster, in one file."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from plait.cli.output import FOLDER, emit, note
from plait.kernel.errors import UsageError
from plait.kernel.extras import require
from plait.report.wording import plural

if TYPE_CHECKING:
    from plait.gyro.belt.replication.backup import Contents
    from plait.gyro.belt.settings import Settings

_CHUNK = 1 << 16
_SECRET = "PLAIT_GYRO_SECRET"


def backup(file: Path, target: str = "", /) -> int:
    """Write a backup of a cluster to a file (the help text is in `plait.cli.main`).

    Parameters
    ----------
    file
        The new file. Only its owner can read it.
    target
        The folder of the servers (default: .plait/gyro), or the URL of a server; then PLAIT_GYRO_SECRET is needed.
    """
    require("serve")
    from plait.gyro.belt.configuration.follower import newest
    from plait.gyro.belt.logs.log import LogGoneError
    from plait.gyro.belt.replication.backup import frames, save
    from plait.gyro.belt.server import open_log
    from plait.gyro.belt.settings import load_settings

    if target.startswith("http"):
        _summary(file, save(_download(target.rstrip("/")), file))
        return 0
    folder = Path(target) if target else FOLDER / "gyro"
    if not (folder / "settings.json").exists():
        raise UsageError(f"the folder {folder} has no servers", hint="give the folder of plait gyro serve, or a URL")
    settings = load_settings(folder / "settings.json")
    if settings.log == "embedded" and not (Path(settings.folder) / "log.db").exists():
        raise UsageError(f"the folder {settings.folder} has no log", hint="give the folder of plait gyro serve")
    try:
        log = open_log(settings)
        try:
            now = newest(log)
            streams = settings.servers if now is None else now.used + 1
            made = save(frames(log, streams, settings.db, settings.replicate), file)
        finally:
            log.close()
    except LogGoneError as error:
        raise UsageError(f"the log does not answer: {error}", hint="start the log, and try again") from None
    _summary(file, made)
    return 0


def _download(url: str) -> Iterator[bytes]:
    """The backup that a server sends."""
    from plait.gyro.belt.transport import SECRET

    request = urllib.request.Request(f"{url}/belt/backup", headers={SECRET: os.environ.get(_SECRET, "")})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            while piece := answer.read(_CHUNK):
                yield piece
    except urllib.error.HTTPError as error:
        if error.code == 403:
            raise UsageError(
                f"{url} does not accept the secret", hint=f"set {_SECRET} to the secret of the cluster (FOLDER/secret)"
            ) from None
        said = error.read(1000).decode(errors="replace")
        raise UsageError(f"{url}: {said}", hint="see the message of the server") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{url}: {error}", hint="give the URL of one server") from None


def _summary(file: Path, made: Contents) -> None:
    total, local = made.updates
    emit(f"{file}: {plural(made.header.servers, 'server')}, {plural(total, 'global update')}, "
         f"{plural(local, 'local update')}")  # fmt: skip


def restore(
    file: Path,
    /,
    *,
    folder: Annotated[Path, Parameter(name="--folder")],
    log: str = "embedded",
    fence: str = "",
    dsn: Annotated[tuple[str, ...], Parameter(name="--dsn", negative=(), show_default=False)] = (),
    only: Annotated[tuple[int, ...], Parameter(name="--only", negative=(), show_default=False)] = (),
) -> int:
    """Make a new cluster from a backup (the help text is in `plait.cli.main`).

    Parameters
    ----------
    file
        The file that plait gyro backup wrote.
    folder
        A new folder for databases, log and secret.
    log
        The log of the new cluster, as for plait gyro serve: embedded, or etcd:URL, or nats:URL with --fence.
    fence
        With --log nats:URL: the etcd that has the epochs, etcd:URL.
    dsn
        The connection string of an empty database of a server, in PostgreSQL or MariaDB; once per server.
    only
        Restore only the database of this server here. Rebuild the others on their machines with serve --rebuild.
    """
    require("serve")
    import msgspec

    from plait.cli.gyro_serve import check_log, kept_secret
    from plait.gyro.belt.configuration.follower import newest
    from plait.gyro.belt.configuration.request import followed
    from plait.gyro.belt.logs.log import LogGoneError
    from plait.gyro.belt.records import DatabaseGoneError
    from plait.gyro.belt.replication.backup import check, load
    from plait.gyro.belt.server import open_log
    from plait.gyro.belt.settings import Dbms, Settings

    check_log(log, fence)
    contents = check(file)
    header = contents.header
    try:
        db = msgspec.convert(header.db, Dbms)
    except msgspec.ValidationError:
        raise UsageError(f"{file}: the DBMS {header.db} is not known", hint="use a newer release of Plait") from None
    numbers = list(only) or list(range(header.servers))
    if any(not 0 <= n < header.servers for n in numbers):
        raise UsageError(
            f"--only: expected numbers from 0 to {header.servers - 1}", hint="choose servers of the backup"
        )
    if dsn and (header.db == "sqlite" or len(dsn) != header.servers):
        raise UsageError(
            f"{len(dsn)} times --dsn, but the backup has {header.servers} servers with {header.db}",
            hint="give --dsn once per server, for postgresql or mariadb only",
        )
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"--folder: {folder} is not empty", hint="choose a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    settings = Settings(
        application="",
        routes={},
        schema=contents.schema,
        urls=[""] * header.servers,
        folder=str(folder.resolve()),
        db=db,
        dsns=list(dsn),
        log=log,
        fence=fence,
        secret=os.environ.get(_SECRET) or kept_secret(folder),
    )
    try:
        made = open_log(settings)
        try:
            load(file, contents, made)
            now = newest(made)
        finally:
            made.close()
        if now is not None:
            settings = followed(settings, now)
            urls = [f"http://127.0.0.1:{8400 + rank}" for rank in range(len(now.members))]
            settings = msgspec.structs.replace(settings, urls=urls, replicate=header.replicate)
            settings.save()
            numbers = [n for n in numbers if n in now.numbers]
        for number in numbers:
            _build(number, settings)
            note(f"server {number} is restored")
    except LogGoneError as error:
        raise UsageError(f"the log does not answer: {error}", hint="start the log, and choose a new folder") from None
    except DatabaseGoneError as error:
        raise UsageError(
            f"the database does not answer: {error}", hint="correct this, and choose a new folder"
        ) from None
    _summary(file, contents)
    where = f" --log {log}" * (log != "embedded") + f" --fence {fence}" * bool(fence)
    options = f"--folder {folder} --servers {settings.servers} --db {header.db}{where} --replicate {header.replicate}"
    emit(f"start it with: plait gyro serve APPLICATION {options}")
    return 0


def _build(number: int, settings: Settings) -> None:
    from plait.cli.gyro_serve import dbms
    from plait.gyro.belt.replication.rebuild import build
    from plait.gyro.belt.server import open_database, open_log

    with ExitStack() as stack:
        if settings.db != "sqlite" and not settings.dsns:
            own = dbms(settings.db, Path(settings.folder) / f"server-{number}")
            stack.callback(own.close)
            own.start()
            settings = msgspec.structs.replace(settings, dsns=[own.dsn] * (number + 1))
        log = open_log(settings)
        stack.callback(log.close)
        database = open_database(number, settings, lambda _: None, log.largest)
        stack.callback(database.close)
        build(number, database, log)

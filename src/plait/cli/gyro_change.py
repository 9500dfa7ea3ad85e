"""`plait gyro change`: add and remove servers, and change operations and tables, while the servers work."""

from __future__ import annotations

import os
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import Parameter, validators

from plait.cli.options import Flag
from plait.cli.output import FOLDER, emit, emit_json, note
from plait.kernel.errors import UsageError
from plait.kernel.extras import require
from plait.report.wording import plural

if TYPE_CHECKING:
    from plait.gyro.belt.configuration.configuration import Member, Program
    from plait.gyro.belt.http import TlsContext
    from plait.gyro.belt.settings import Settings

_SECRET = "PLAIT_GYRO_SECRET"
_PAUSE = 0.05
_FORBIDDEN = 403


def change(
    target: str = "",
    /,
    *,
    add: Annotated[tuple[str, ...], Parameter(name="--add", negative=(), show_default=False)] = (),
    remove: Annotated[tuple[int, ...], Parameter(name="--remove", negative=(), show_default=False)] = (),
    dead: Flag = False,
    application: Annotated[str | None, Parameter(name="--application")] = None,
    schema: Annotated[Path | None, Parameter(name="--schema")] = None,
    recording: Annotated[Path | None, Parameter(name="--recording")] = None,
    migration: Annotated[Path | None, Parameter(name="--migration")] = None,
    abort: Flag = False,
    patience: Annotated[float, Parameter(validator=validators.Number(gt=0))] = 60.0,
    json: Flag = False,
) -> int:
    """Change a cluster while its servers work (the help text is in `plait.cli.main`).

    Parameters
    ----------
    target
        The folder of the servers (default: .plait/gyro), or the URL of a server; then PLAIT_GYRO_SECRET is needed.
    add
        The URL of a server to add. If its host is this machine's, the running plait gyro serve starts it.
    remove
        The number of a server to remove; several times for several servers.
    dead
        The servers to remove are lost. Go on with what the log has of them; the log refuses them from now on.
    application
        The new application: a Python file or package, at this path on every machine; with --recording, a web application.
    schema
        The DDL of the new application. Default: as for plait gyro serve.
    recording
        The recording of the new application, if the servers run a web application. It contains the schema.
    migration
        A file with SQL that changes the old tables into those of the new schema. Every server executes it.
    abort
        Abort the change that is under way.
    patience
        Abort the change if it is not activated after this many seconds.
    json
        Print exactly one JSON object on stdout.
    """
    require("serve")
    from plait.gyro.belt.configuration.request import ChangeRequest, check_kind

    settings = _settings(target)
    cluster = _Cluster(settings)
    if abort:
        cluster.post("/belt/abort", b"")
        note("the change is being aborted")
        return 0
    for option, given in (("--migration", migration), ("--recording", recording)):
        if given is not None and application is None:
            raise UsageError(f"{option} needs --application", hint="give the application, too")
    if not add and not remove and application is None:
        raise UsageError("nothing to change", hint="give --add, --remove or --application")
    before = cluster.state()
    text = _text(migration, "--migration") if migration is not None else ""
    program = None
    if application is not None:
        check_kind(settings, bool(recording))
    if application is not None and recording is not None:
        program = _web_program(application, recording, schema, settings, before)
    elif application is not None:
        program = _program(application, schema, settings, before)
    added = [cluster.joined(url, settings, before) for url in add]
    request = ChangeRequest(
        add=added, remove=list(remove), dead=bool(dead), program=program, migration=text, patience=patience
    )
    begin = time.monotonic()
    accepted = msgspec.json.decode(cluster.post("/belt/change", msgspec.json.encode(request)))
    number, members = int(accepted["number"]), [m["server"] for m in accepted["members"]]
    note(f"configuration {number}: {plural(len(members), 'server')} ({', '.join(map(str, members))})")
    cluster.watch(number, [m["url"] for m in accepted["members"]], patience, int(before.get("aborts", 0)))
    seconds = round(time.monotonic() - begin, 2)
    if json:
        emit_json({"configuration": number, "members": accepted["members"], "seconds": seconds})
    else:
        emit(f"configuration {number} works: {plural(len(members), 'server')}, after {seconds:.1f} s")
    return 0


def _settings(target: str) -> Settings:
    """The settings of a folder; or the servers that a URL tells."""
    from plait.gyro.belt.http import ask
    from plait.gyro.belt.settings import Settings, load_settings

    secret = os.environ.get(_SECRET, "")
    if target.startswith("http"):
        try:
            found = msgspec.json.decode(ask(target.rstrip("/"), "/cluster")[1], type=dict[str, Any])
            return Settings("", {}, "", found["urls"], "", secret=secret, members=found.get("members", []))
        except (OSError, msgspec.DecodeError, KeyError) as error:
            raise UsageError(
                f"{target} does not answer like a server: {error}", hint="give the URL of a server"
            ) from None
    folder = Path(target) if target else FOLDER / "gyro"
    if not (folder / "settings.json").exists():
        raise UsageError(f"the folder {folder} has no servers", hint="give the folder of plait gyro serve, or a URL")
    known = load_settings(folder / "settings.json")
    return msgspec.structs.replace(known, secret=secret) if secret else known


class _Cluster:
    """The servers that an operator talks to."""

    def __init__(self, settings: Settings) -> None:
        from plait.gyro.belt.service.certificates import client_context

        self._settings = settings
        tls = settings.tls
        self._tls: TlsContext | None = None
        if tls is not None:
            context = client_context(tls.ca, tls.certificate, tls.key)
            self._tls = lambda: context

    def status(self, url: str) -> dict[str, Any] | None:
        """The status of a server; None if it does not answer."""
        from plait.gyro.belt.http import ask

        try:
            status, answer = ask(url, "/status", timeout=5.0, tls=self._tls)
            return msgspec.json.decode(answer, type=dict[str, Any]) if status == 200 else None
        except (OSError, msgspec.DecodeError):
            return None

    def state(self) -> dict[str, Any]:
        """The newest state of the configuration that a server knows."""
        found = [f for url in self._settings.urls if (f := self.status(url)) is not None and "joining" not in f]
        if not found:
            raise UsageError("no server answers", hint="start the servers with plait gyro serve")
        if "configuration" not in found[0]:
            raise UsageError(
                "the cluster cannot be changed: the rows that local operations write are at one server only, because local "
                "updates are not replicated, or this DBMS cannot merge them",
                hint="replication must be on since the first start: plait gyro serve --replicate acknowledged",
            )
        return max(found, key=lambda f: (int(f["configuration"]), int(f.get("aborts", 0))))

    def post(self, path: str, body: bytes) -> bytes:
        """Send a request to the first server that answers."""
        from plait.gyro.belt.http import Peer
        from plait.gyro.belt.transport import SECRET

        reason = ""
        for url in self._settings.urls:
            peer = Peer(url, timeout=30.0, tls=self._tls)
            try:
                status, answer = peer.request("POST", path, body, {SECRET: self._settings.secret})
            except OSError as error:
                reason = f": {error}"
                continue
            finally:
                peer.close()
            if status < 300:
                return answer
            said = msgspec.json.decode(answer)
            if status == _FORBIDDEN and os.environ.get(_SECRET):
                raise UsageError(
                    f"the servers have another secret than {_SECRET}",
                    hint=f"{_SECRET} wins over the secret of the folder: correct or unset it",
                )
            raise UsageError(said["error"], hint=said.get("hint"))
        raise UsageError(f"no server answers{reason}", hint="start the servers with plait gyro serve")

    def joined(self, url: str, settings: Settings, before: dict[str, Any]) -> Member:
        """A server that has joined at a URL. If nobody answers there, the supervisor of this folder starts it."""
        from plait.gyro.belt.configuration.configuration import Member
        from plait.gyro.belt.configuration.follower import reserve
        from plait.gyro.belt.server import open_log
        from plait.gyro.belt.supervisor import JOINING

        url = url.rstrip("/")
        scheme = "http" if settings.tls is None else "https"
        if not url.startswith(f"{scheme}://") or not url.rpartition(":")[2].isdigit():
            raise UsageError(f"--add {url}: expected {scheme}://HOST:PORT", hint="give the host and the port")
        found = self.status(url)
        if found is None:
            number = int(before["used"]) + 1
            missing = settings.db != "sqlite" and number >= len(settings.dsns)  # the DSN of its own DBMS
            if settings.folder and settings.log == "embedded" and missing:
                raise UsageError(
                    f"--add {url}: the running plait gyro serve starts new servers with SQLite only, not with {settings.db}",
                    hint="use a log that servers on other machines reach (--log etcd:… or nats:…), and start it with --join",
                )
            if not settings.folder or settings.log != "embedded":
                raise UsageError(
                    f"--add {url}: no server answers there",
                    hint=f"start it on its machine first: plait gyro serve … --join {url}",
                )
            with closing(open_log(settings)) as log:
                number = reserve(log, int(before["used"]), url)
            file = Path(settings.folder) / JOINING
            known = msgspec.json.decode(file.read_bytes(), type=dict[int, str]) if file.exists() else {}
            file.write_bytes(msgspec.json.encode({**known, number: url}))
            note(f"server {number} builds its database from the log")
        deadline = time.monotonic() + 600
        while (found := self.status(url)) is None or not found.get("joining") or found["lag"] > settings.lag:
            if found is not None and not found.get("joining"):
                raise UsageError(f"--add {url}: server {found.get('server')} is a member already", hint="nothing to do")
            if time.monotonic() > deadline:
                raise UsageError(
                    f"--add {url}: the server does not join", hint="see the output of plait gyro serve for the reason"
                )
            time.sleep(_PAUSE)
        return Member(int(found["server"]), url)

    def watch(self, number: int, urls: list[str], patience: float, aborts: int) -> None:
        """Report progress until all new members work with the configuration."""
        deadline = time.monotonic() + patience + 60
        shown = ""
        while time.monotonic() < deadline:
            found = {url: self.status(url) for url in {*urls, *self._settings.urls}}
            known = [f for f in found.values() if f is not None and "configuration" in f]
            if all(
                (f := found[url]) is not None and f.get("configuration", -1) >= number and not f["broken"]
                for url in urls
            ):
                return
            for facts in known:
                if facts["configuration"] < number and facts["change"] is None and facts["aborts"] > aborts:
                    raise UsageError(f"the change was aborted: {facts['aborted']}", hint="nothing has changed")
            pending = [f["change"] for f in known if f["change"] is not None]
            if pending:
                newest = max(pending, key=lambda each: len(each["ready"]))  # servers learn of it one after the other
                text = f"ready: {newest['ready']}, missing: {newest['missing']}"
                if text != shown:
                    note(text)
                    shown = text
            time.sleep(_PAUSE)
        raise UsageError(
            f"configuration {number} does not work on all servers yet",
            hint="see plait gyro status, and start missing servers",
        )


def _program(application: str, schema: Path | None, settings: Settings, before: dict[str, Any]) -> Program:
    """Analyze the new application."""
    from plait.gyro.analysis import analyze
    from plait.gyro.belt.application import load, schema_of, written_schema
    from plait.gyro.belt.configuration.configuration import Program
    from plait.gyro.belt.routing import routes as routes_of
    from plait.gyro.belt.settings import DIALECTS
    from plait.gyro.belt.version import analyzed, sources
    from plait.gyro.sql.schema import definitions

    if not settings.folder:
        raise UsageError("--application needs the folder of the servers", hint="give the folder, and not a URL")
    path = str(Path(application).resolve()) if Path(application).exists() else application
    dialect = DIALECTS[settings.db]
    module = load(path)
    ddl = schema_of(path, module, schema, dialect=settings.db)
    if written_schema(path, module, schema) is None:
        schema = Path(settings.folder) / "schema.sql"
        schema.write_text(ddl, encoding="utf-8")
    note(f"analyzing {application}")
    found = analyze(path, schema=schema, servers=max(len(before["members"]), 2), dialect=dialect)
    for warning in found.warnings:
        note(f"warning: {warning}")
    routes = routes_of(found)
    return Program(path, routes, ddl, analyzed(found, definitions(ddl, dialect=dialect)), sources(module, routes))


def _web_program(
    application: str, recording: Path, schema: Path | None, settings: Settings, before: dict[str, Any]
) -> Program:
    """Analyze the recording of a new web application."""
    from plait.gyro.analysis import analyze
    from plait.gyro.belt.configuration.changes import sources_of
    from plait.gyro.belt.configuration.configuration import Program
    from plait.gyro.belt.routing import routes as routes_of
    from plait.gyro.belt.settings import DIALECTS
    from plait.gyro.belt.version import analyzed
    from plait.gyro.sql.schema import definitions
    from plait.gyro.web.contract import contract

    if schema is not None:
        raise UsageError("--recording and --schema: the recording has a schema", hint="leave out --schema")
    text, dialect = _text(recording, "--recording"), DIALECTS[settings.db]
    ddl = contract(text, dialect=dialect, source=str(recording)).schema
    where, colon, name = application.partition(":")
    path = f"{Path(where).resolve()}{colon}{name}" if Path(where).exists() else application
    note(f"analyzing {recording}")
    found = analyze(recording, servers=max(len(before["members"]), 2), dialect=dialect)
    for warning in found.warnings:
        note(f"warning: {warning}")
    routes = routes_of(found)
    part = analyzed(found, definitions(ddl, dialect=dialect))
    return Program(path, routes, ddl, part, sources_of(path, list(routes), ddl), text)


def _text(file: Path, option: str) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{option}: {file} cannot be read: {error}", hint="give another file") from None

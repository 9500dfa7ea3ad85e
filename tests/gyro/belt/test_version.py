"""Versions: a server with other code, routes or tables than its cluster does not start, unless an upgrade is safe."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from plait.gyro.analysis import analyze
from plait.gyro.belt.application import load
from plait.gyro.belt.client import Client
from plait.gyro.belt.databases.sqlite.database import SqliteDatabase
from plait.gyro.belt.http import ask
from plait.gyro.belt.logs.embedded import EmbeddedLog
from plait.gyro.belt.logs.log import Log
from plait.gyro.belt.routing import routes
from plait.gyro.belt.settings import Settings
from plait.gyro.belt.supervisor import answers, free_ports
from plait.gyro.belt.version import (
    Content,
    Version,
    analyzed,
    content,
    covered,
    obstacles,
    settle,
    superseded,
    versions,
)
from plait.gyro.sql.schema import definitions
from plait.kernel.errors import UsageError
from tests.gyro.belt.variants import needs_mariadb, needs_postgresql
from tests.support.engines import Engine, Mariadb, Postgresql, Sqlite
from tests.support.patience import PATIENCE, until

SCHEMA = "CREATE TABLE notes (owner INTEGER PRIMARY KEY, text TEXT); CREATE TABLE stars (owner INTEGER PRIMARY KEY)"
NOTES = f'''
SCHEMA = "{SCHEMA}"


def write(db, owner, text):
    db.execute("INSERT INTO notes (owner, text) VALUES (?, ?)", (owner, text))


def star(db, owner):
    db.execute("INSERT INTO stars (owner) VALUES (?)", (owner,))


def read(db, owner):
    return db.execute("SELECT text FROM notes WHERE owner = ?", (owner,)).fetchone()
'''
EDITS: list[tuple[str, str, str, str | None, str]] = [
    ("a comment", "def read(db, owner):", "def read(db, owner):  # one", None, "the code of read differs"),
    (
        "a new operation",
        "def read(db",
        "def mine(db, owner):\n    return db.execute('SELECT owner FROM stars WHERE owner = ?', (owner,)).fetchall()\n\n\n"
        "def read(db",
        None,
        "the code of mine differs",
    ),
    (
        "a write less",
        'db.execute("INSERT INTO stars (owner) VALUES (?)", (owner,))',
        "pass",
        None,
        "the code of star differs",
    ),
    (
        "another route",
        "SELECT text FROM notes WHERE owner = ?",
        "SELECT text FROM notes WHERE text = ?",
        "the classification differs from that of the cluster: read was local, read-only, by owner (number)",
        "",
    ),
    (
        "a write less, and a query that reads these rows everywhere",
        """db.execute("INSERT INTO stars (owner) VALUES (?)", (owner,))


""",
        """pass


def best(db):
    return db.execute("SELECT owner FROM stars").fetchall()


""",
        "star does not write all rows that it wrote before",
        "",
    ),
    (
        "a column more",
        "text TEXT",
        "text TEXT, more TEXT",
        "the schema differs from that of the cluster: table notes",
        "",
    ),
    ("a default", "text TEXT", "text TEXT DEFAULT 'x'", "the schema differs from that of the cluster: table notes", ""),
]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    found = EmbeddedLog(tmp_path / "log.db")
    yield found
    found.close()


def made(source: str, folder: Path) -> Content:
    """The content of a server that runs this application on tables of the first one."""
    folder.mkdir(exist_ok=True)
    file = folder / "notes_app.py"
    file.write_text(source, encoding="utf-8")
    found = analyze(file)
    database = SqliteDatabase(folder.parent / "app.db", schema=SCHEMA)
    try:
        part = analyzed(found, definitions(source.split('"')[1]))
        return content(part, 2, routes(found), load(str(file)), database)
    finally:
        database.close()


def nobody() -> list[int]:
    return []


def test_the_same_application_starts_again(log: Log, tmp_path: Path) -> None:
    one = made(NOTES, tmp_path / "one")
    assert settle(one, log, upgrade=False, running=nobody).number == 1
    assert settle(made(NOTES, tmp_path / "other"), log, upgrade=True, running=nobody).number == 1
    assert versions(log) == [settle(one, log, upgrade=False, running=lambda: [1])]


@pytest.mark.parametrize(("before", "after", "obstacle", "said"), [e[1:] for e in EDITS], ids=[e[0] for e in EDITS])
def test_edits(before: str, after: str, obstacle: str | None, said: str, log: Log, tmp_path: Path) -> None:
    assert before in NOTES
    old, new = made(NOTES, tmp_path / "old"), made(NOTES.replace(before, after), tmp_path / "new")
    settle(old, log, upgrade=False, running=nobody)
    if obstacle is not None:
        for upgrade in (False, True):
            with pytest.raises(UsageError) as refused:
                settle(new, log, upgrade=upgrade, running=nobody)
            assert obstacle in refused.value.message
            assert "version 1" in str(refused.value.hint)
        assert settle(old, log, upgrade=False, running=nobody).number == 1
        return
    with pytest.raises(UsageError, match=said) as refused:
        settle(new, log, upgrade=False, running=nobody)
    assert "--upgrade" in str(refused.value.hint)
    if not covered([old, new]):
        with pytest.raises(UsageError, match="server 1 still executes version 1"):
            settle(new, log, upgrade=True, running=lambda: [1])
    assert settle(new, log, upgrade=True, running=nobody).number == 2
    assert settle(new, log, upgrade=False, running=nobody).number == 2
    with pytest.raises(UsageError, match=r"differs? from .*version 2"):
        settle(old, log, upgrade=False, running=nobody)


def test_versions_run_beside_each_other_if_one_has_all_accesses(log: Log, tmp_path: Path) -> None:
    """Servers are upgraded one by one: meanwhile, both versions may start."""
    old = made(NOTES, tmp_path / "old")
    more = (
        NOTES
        + """

def shout(db, owner):
    db.execute("UPDATE notes SET text = upper(text) WHERE owner = ?", (owner,))
"""
    )
    new = made(more, tmp_path / "new")
    assert covered([old, new])
    first = settle(old, log, upgrade=False, running=nobody)
    with pytest.raises(UsageError) as refused:
        settle(new, log, upgrade=False, running=lambda: [1])
    assert "one by one" in str(refused.value.hint)
    second = settle(new, log, upgrade=True, running=lambda: [1])
    assert (second.number, second.beside) == (2, True)
    assert settle(old, log, upgrade=False, running=lambda: [1]) == first, "an old server that has crashed starts again"
    assert not superseded(first, log)
    third = settle(made(more + "# 3\n", tmp_path / "third"), log, upgrade=True, running=nobody)
    assert not third.beside
    assert superseded(first, log)
    assert superseded(second, log)


def test_no_version_covers_the_others() -> None:
    """Each of two versions has an access that the other one does not have: no analysis has compared the two."""
    one = Content(accesses={"a": ["x"], "b": ["y"]})
    other = Content(accesses={"a": ["x", "z"], "b": []})
    both = Content(accesses={"a": ["x", "z"], "b": ["y"]})
    assert not covered([one, other])
    assert covered([one, other, both])
    assert covered([one, Content(accesses={"a": ["x"]})]), "an operation less"
    assert not covered([one, Content()]), "the accesses are not known"


def test_a_version_between_others_is_compared_with_all_of_them(log: Log, tmp_path: Path) -> None:
    old = made(NOTES, tmp_path / "old")
    assert old.accesses is not None
    more = msgspec.structs.replace(old, accesses={**old.accesses, "new": ["x"]}, sources={"new": "1"})
    aside = msgspec.structs.replace(old, accesses={**old.accesses, "other": ["y"]}, sources={"other": "1"})
    settle(old, log, upgrade=False, running=nobody)
    settle(more, log, upgrade=True, running=lambda: [1])
    with pytest.raises(UsageError, match="no version has all accesses of both"):
        settle(aside, log, upgrade=True, running=lambda: [1])
    assert isinstance(settle(aside, log, upgrade=True, running=nobody), Version)


def test_other_formats_and_unknown_footprints(log: Log, tmp_path: Path) -> None:
    old = made(NOTES, tmp_path / "old")
    replace = msgspec.structs.replace
    assert "format" in obstacles(old, replace(old, format=old.format + 1))[0]
    assert "number of servers" in obstacles(old, replace(old, servers=3))[0]
    assert "not known" in obstacles(old, replace(old, accesses=None, sources={}))[0]
    log.agree("classification", "of an earlier release")
    with pytest.raises(UsageError, match="recorded no versions"):
        settle(old, log, upgrade=True, running=nobody)


def test_two_servers_upgrade_to_different_code(log: Log, tmp_path: Path) -> None:
    old, one, other = (made(NOTES + f"# {n}\n", tmp_path / str(n)) for n in range(3))
    settle(old, log, upgrade=False, running=nobody)

    def meanwhile() -> list[int]:
        settle(one, log, upgrade=True, running=nobody)
        return []

    with pytest.raises(UsageError, match="version 2, which another server has just written"):
        settle(other, log, upgrade=True, running=meanwhile)


BASE = "CREATE TABLE b (k INTEGER PRIMARY KEY); CREATE TABLE a (k INTEGER PRIMARY KEY, s VARCHAR(5)); "
CHANGES = {
    "a type": ("VARCHAR(5)", "VARCHAR(6)"),
    "a default": ("VARCHAR(5)", "VARCHAR(5) DEFAULT 'x'"),
    "not null": ("VARCHAR(5)", "VARCHAR(5) NOT NULL"),
    "a check": ("VARCHAR(5)", "VARCHAR(5) CHECK (length(s) > 1)"),
    "a unique key": ("VARCHAR(5)", "VARCHAR(5) UNIQUE"),
    "a foreign key": ("VARCHAR(5)", "VARCHAR(5), r INTEGER REFERENCES b (k)"),
    "an index": ("; CREATE TABLE a", "; CREATE INDEX i ON b (k); CREATE TABLE a"),
    "a view": ("; CREATE TABLE a", "; CREATE VIEW v AS SELECT k FROM b; CREATE TABLE a"),
}
TRIGGERS = {
    Sqlite: "CREATE TRIGGER t AFTER INSERT ON a BEGIN UPDATE a SET s = {}; END;",
    Postgresql: "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.s := {}; RETURN NEW; END';"
    "CREATE TRIGGER t BEFORE INSERT ON a FOR EACH ROW EXECUTE FUNCTION f();",
    Mariadb: "CREATE TRIGGER t BEFORE INSERT ON a FOR EACH ROW BEGIN SET NEW.s = {}; END;",
}


@pytest.mark.parametrize(
    "kind",
    [
        Sqlite,
        pytest.param(Postgresql, marks=[pytest.mark.slow, needs_postgresql]),
        pytest.param(Mariadb, marks=[pytest.mark.slow, needs_mariadb]),
    ],
)
def test_the_schema_of_the_dbms_has_all_that_matters(kind: type[Engine], tmp_path: Path) -> None:
    variants = {"base": BASE, "base again": BASE} | {n: BASE.replace(*change) for n, change in CHANGES.items()}
    variants |= {f"trigger {n}": BASE + TRIGGERS[kind].format(n) for n in (1, 2)}  # type: ignore[index]
    found = {}
    for number, (name, ddl) in enumerate(variants.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        engine = kind(folder, ddl)
        database = engine.open(number % 2, 2, lambda _: None)
        found[name] = database.schema()
        database.close()
        engine.close()
    assert found.pop("base again") == found["base"]
    assert len(set(found.values())) == len(found)
    assert not any("gyro_" in text for text in found.values())


@contextmanager
def served(file: Path, port: int, *more: str) -> Iterator[str]:
    """The command as a user has it; the URL of server 0."""
    command = [
        sys.executable,
        "-m",
        "plait.cli.main",
        "gyro",
        "serve",
        str(file),
        "--servers",
        "1",
        "--port",
        str(port),
    ]
    command += ["--folder", str(file.parent / "folder"), *more]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    url = f"http://127.0.0.1:{port}"
    try:
        until(lambda: answers(url), "the server answers")
        yield url
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)


def refused(file: Path, port: int, *more: str) -> str:
    command = [
        sys.executable,
        "-m",
        "plait.cli.main",
        "gyro",
        "serve",
        str(file),
        "--servers",
        "1",
        "--port",
        str(port),
    ]
    command += ["--folder", str(file.parent / "folder"), *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2, done.stderr
    return done.stderr


@pytest.mark.slow
def test_serve_with_an_upgrade(tmp_path: Path) -> None:
    file = tmp_path / "notes.py"
    file.write_text(NOTES, encoding="utf-8")
    (port,), found = free_ports(1), []
    with served(file, port) as url:
        client = Client(url)
        for owner in range(4):
            client.call("write", owner=owner, text=f"note {owner}")
        client.close()
    file.write_text(NOTES.replace("fetchone()", "fetchone()[0]"), encoding="utf-8")
    assert "the code of read differs from that of version 1 of the cluster" in refused(file, port)
    with served(file, port, "--upgrade") as url:
        client = Client(url)
        found = [client.call("read", owner=owner) for owner in range(4)]
        client.close()
        assert msgspec.json.decode(ask(url, "/status")[1])["version"] == 2
    assert found == [f"note {owner}" for owner in range(4)]
    file.write_text(NOTES.replace("text TEXT", "text TEXT DEFAULT ''"), encoding="utf-8")
    assert "the schema differs from that of the cluster: table notes" in refused(file, port, "--upgrade")


@pytest.mark.slow
def test_a_server_of_an_older_version_ends(tmp_path: Path) -> None:
    """It was suspended during the upgrade, say, so that nobody noticed it."""
    file = tmp_path / "notes.py"
    file.write_text(NOTES, encoding="utf-8")
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    saved = Settings(str(file), routes(analyze(file)), SCHEMA, [url], str(tmp_path), secret="s").save()
    command = [sys.executable, "-m", "plait.gyro.belt.server", str(saved), "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        until(lambda: answers(url), "the server answers")
        log = EmbeddedLog(tmp_path / "log.db")
        log.agree("version 2", "another one")
        log.close()
        _, said = process.communicate(timeout=PATIENCE)
    assert (process.returncode, "the cluster has a newer version than 1" in said) == (2, True), said


def test_a_helper_module_is_part_of_the_version(tmp_path: Path) -> None:
    from plait.gyro.belt.version import sources

    (tmp_path / "helper_of_notes.py").write_text("X = 1\n", encoding="utf-8")
    file = tmp_path / "with_helper.py"
    file.write_text("import helper_of_notes\n\n\ndef f(db):\n    return helper_of_notes.X\n", encoding="utf-8")
    module = load(str(file))
    found = sources(module, ["f"])
    assert set(found) == {"f", "the module helper_of_notes.py", "the module with_helper.py"}
    (tmp_path / "helper_of_notes.py").write_text("X = 2\n", encoding="utf-8")
    again = sources(module, ["f"])
    assert {n for n in found if found[n] != again[n]} == {"the module helper_of_notes.py"}

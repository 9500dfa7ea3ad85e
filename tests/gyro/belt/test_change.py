"""The configuration of real servers changes under load: one history, and nothing acknowledged is lost."""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path

import msgspec
import pytest

from plait.bench.gyro.faults import board
from plait.gyro.analysis import analyze
from plait.gyro.belt.http import ask
from plait.gyro.belt.routing import routes
from plait.gyro.belt.settings import load_settings
from plait.gyro.belt.supervisor import unready
from plait.gyro.belt.version import analyzed
from plait.gyro.sql.schema import definitions
from plait.kernel.errors import UsageError
from tests.gyro.belt.authority import Authority
from tests.gyro.belt.changing import MIGRATION, TABLES, changing, killed, load, meanwhile, new_program
from tests.gyro.belt.log_engines import Etcd, Nats
from tests.gyro.belt.processes import ServerFiles
from tests.gyro.belt.variants import needs_mariadb, needs_postgresql
from tests.support.further import further
from tests.support.patience import PATIENCE, until

DBMS = [
    pytest.param({}, id="sqlite"),
    pytest.param({"postgresql": True}, marks=needs_postgresql, id="postgresql"),
    pytest.param({"mariadb": True}, marks=[needs_mariadb, pytest.mark.long], id="mariadb"),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "dbms",
    [{}, pytest.param({"postgresql": True}, marks=[needs_postgresql, pytest.mark.long])],
    ids=["sqlite", "postgresql"],
)
def test_servers_are_added_and_removed_under_load(dbms: dict[str, bool]) -> None:
    with changing(2, **dbms) as running:
        with meanwhile(lambda: load(running, 1, 80)):
            running.add()
            running.change(remove=(0,))
            running.add()
        assert running.now().numbers == [1, 2, 3]
        assert running.wrong() == []
        assert len(running.stages()) == 4


@pytest.mark.slow
@pytest.mark.parametrize("step", ["activate", *further("ready", "switched")])
def test_a_server_that_is_killed_in_a_change_loses_nothing(step: str) -> None:
    killed(step, 0, seed=2)


@pytest.mark.slow
@pytest.mark.parametrize("dbms", DBMS)
def test_operations_and_tables_change_under_load(dbms: dict[str, bool], tmp_path: Path) -> None:
    """Every row of the old tables is there; the new column and the new table are filled the same way everywhere.

    With MariaDB, a server also dies in the middle of the migration.
    """
    with changing(1 if dbms.get("mariadb") else 2, **dbms) as running:
        program = new_program(running, tmp_path)
        with meanwhile(lambda: load(running, 3, 60)):
            time.sleep(1.0)
            if dbms.get("mariadb"):
                running.doom(0, "migrate@0")
                until(lambda: unready(running.settings.url(0)) is None, "the server is ready")
                running.add(**program)
            else:
                wrong = tmp_path / "wrong.sql"
                wrong.write_text(MIGRATION.replace("NOT NULL DEFAULT 'plain'", ""), encoding="utf-8")
                with pytest.raises(
                    UsageError, match=r"aborted: the migration is refused: .*column (people\.)?style is"
                ):
                    running.change(**program | {"migration": wrong})
                running.change(**program)
                running.client.refresh()
                assert running.client.call("frame", person=4, style="gold")[0][1] == "gold"
                running.client.call("like", person=4)
                running.add()
        running.client.refresh()
        assert running.client.call("frame", person=4, style="silver")[0][1] == "silver"
        running.client.call("like", person=4)
        running.settle()
        ranks = range(len(running.now().numbers))
        likes = {tuple(map(tuple, running.client.send("likes", {}, at=rank).reply)) for rank in ranks}
        assert len(likes) == 1
        assert dict(next(iter(likes)))[4] == 99
        assert len(next(iter(likes))) == 6
        assert running.wrong() == []
        assert running.now().numbers == ([0, 1] if dbms.get("mariadb") else [0, 1, 2])
        died = {told.partition(" (")[0] for told in running._died if "died" in told}
        assert died == ({"server 0 died"} if dbms.get("mariadb") else set())


@pytest.mark.slow
def test_servers_change_with_another_log_and_over_tls(tmp_path: Path) -> None:
    """NATS has the updates, etcd the epochs."""
    etcd, nats = Etcd(tmp_path), Nats(tmp_path)
    tls = Authority(tmp_path).tls("server", clients="required")
    try:
        with changing(1, log=nats.where, fence=etcd.where, tls=tls) as running:
            with meanwhile(lambda: load(running, 9, 25)):
                url = running.add()
            assert url.startswith("https:")
            assert running.wrong() == []
            assert len(running.stages()) == 2
    finally:
        nats.close()
        etcd.close()


@pytest.mark.slow
def test_a_dead_server_is_removed_and_what_it_acknowledged_is_kept() -> None:
    with changing(3) as running:
        load(running, 4, 10)
        with pytest.raises(UsageError, match="server 1 answers, so it is not dead"):
            running.change(remove=(1,), dead=True)
        with running._paused():
            running.supervisor.kill(1)
            with pytest.raises(UsageError, match="server 1 does not answer"):
                running.change(remove=(0,))
            running.change(remove=(1,), dead=True)
            running.supervisor.spawn(1, dict(os.environ))
            assert running.supervisor._processes[1].wait(timeout=PATIENCE) in (2, 4), "the log refuses it"
        load(running, 5, 10)
        ids = [e.reply for e in running.events if e.operation == "draw"]
        assert len(ids) == len(set(ids))
        assert running.wrong() == []


@pytest.mark.slow
def test_a_server_that_does_not_answer_is_noticed_and_operations_go_on() -> None:
    with changing(2) as running:
        running.call("note", {"owner": 1, "value": 1}, request="one")
        os.kill(running.supervisor._processes[1].pid, signal.SIGSTOP)
        try:
            with pytest.raises(UsageError, match="server 1 does not answer"):
                running.add()
        finally:
            os.kill(running.supervisor._processes[1].pid, signal.SIGCONT)
        assert running.call("note", {"owner": 1, "value": 2}, request="two") == " 1 2"
        assert running.wrong() == []


@pytest.mark.slow
def test_what_cannot_be_changed_is_refused() -> None:
    with changing(1, replicate="none") as running, pytest.raises(UsageError, match="local updates are not replicated"):
        running.change(remove=(0,))
    with changing(1) as running:
        for options, said in (
            ({"remove": (0,)}, "a cluster needs a server"),
            ({"remove": (5,)}, "server 5 is not a member"),
            ({"add": ("ftp://x",)}, "expected http://HOST:PORT"),
            ({}, "nothing to change"),
            ({"migration": Path("m.sql")}, "--migration needs --application"),
            ({"abort": True}, "no change is under way"),
        ):
            with pytest.raises(UsageError, match=said):
                running.change(**options)


@pytest.mark.slow
def test_a_changed_cluster_is_rebuilt_and_restored(tmp_path: Path) -> None:
    """A disk is lost after a change; and a backup from after a change has the rows of all servers."""
    from plait.cli.gyro_backup import backup, restore
    from plait.cli.gyro_serve import _rebuild

    with changing(2) as running:
        load(running, 6, 15)
        running.add()
        running.change(remove=(0,))
        load(running, 7, 15)
        with running._paused():
            running.supervisor.kill(2)
            shutil.rmtree(running.folder / "server-2")
            _rebuild(2, running.now(), lambda _: None)
            running.supervisor.spawn(2, dict(os.environ))
        running.settle()
        assert running.wrong() == []
        backup(tmp_path / "b", str(running.folder))
        restore(tmp_path / "b", folder=tmp_path / "new")
        restored = ServerFiles(tmp_path / "new", board.SCHEMA)
        assert load_settings(tmp_path / "new" / "settings.json").numbers == [1, 2]
        for server in (1, 2):
            for query in TABLES:
                assert restored.rows(server, query) == running.engine.rows(server, query)


@pytest.mark.slow
def test_servers_are_upgraded_one_by_one_under_load(tmp_path: Path) -> None:
    """While old and new servers run together, clients notice nothing."""
    old, new = tmp_path / "old" / "board.py", tmp_path / "new" / "board.py"
    source = Path(str(board.__file__)).read_text(encoding="utf-8")
    greet = '\n\ndef greet(db: Any, board: Any) -> Any:\n    """New."""\n'
    greet += '    return db.execute("SELECT items FROM boards WHERE id = ?", (board,)).fetchone()[0]\n'
    for file, text in ((old, source), (new, source + greet)):
        file.parent.mkdir()
        file.write_text(text, encoding="utf-8")
    found = {file: analyze(file) for file in (old, new)}
    parts = {file: analyzed(each, definitions(board.SCHEMA)) for file, each in found.items()}
    with changing(2, application=str(old), routes=routes(found[old]), analyzed=parts[old]) as running:
        with meanwhile(lambda: load(running, 8, 60)):
            upgraded = msgspec.structs.replace(
                running.settings, application=str(new), routes=routes(found[new]), analyzed=parts[new], upgrade=True
            )
            upgraded.save()
            for server in (0, 1):
                with running._paused():
                    running.supervisor.kill(server)
                    running.supervisor.spawn(server, dict(os.environ))
                until(lambda server=server: unready(running.settings.url(server)) is None, "the server is ready")  # type: ignore[misc]
                versions = [msgspec.json.decode(ask(url, "/status")[1])["version"] for url in running.settings.urls]
                assert versions == ([2, 1] if server == 0 else [2, 2])
        assert isinstance(running.client.call("greet", board=1), str)
        assert running.wrong() == []


@pytest.mark.slow
@needs_postgresql
def test_ids_of_postgresql_are_unique() -> None:
    with changing(2, postgresql=True) as running:
        ids = [running.client.call("draw", owner=owner, label="x") for owner in range(6)]
        running.change(remove=(0,))
        ids += [running.client.call("draw", owner=owner, label="x") for owner in range(6)]
        running.add()
        ids += [running.client.call("draw", owner=owner, label="x") for owner in range(6)]
        assert len(set(ids)) == 18
        assert sorted(i for o in range(6) for i, _ in running.client.call("drawn", owner=o)) == sorted(ids)

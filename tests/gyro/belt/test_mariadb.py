"""MariaDB as the DBMS of a server: what only MariaDB does, and what is refused because triggers or locks would miss it."""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pymysql
import pytest

from plait.gyro.analysis import analyze
from plait.gyro.belt.databases.mariadb.connection import address, connect, execute
from plait.gyro.belt.databases.mariadb.database import MariadbDatabase
from plait.gyro.belt.databases.mariadb.server import MariadbServer
from plait.gyro.belt.logs.embedded import EmbeddedLog
from plait.gyro.belt.records import Call, DatabaseGoneError, Entry, OperationError, chained
from plait.gyro.belt.service.events import passwords
from plait.kernel.errors import UsageError
from tests.gyro.belt.variants import needs_mariadb
from tests.support.engines import Mariadb, scratch, shared_mariadb
from tests.support.patience import PATIENCE, until

pytestmark = [pytest.mark.slow, needs_mariadb]
SCRIPT = Path(__file__).parents[3] / "deploy" / "gyro" / "role-mariadb.sql"


class Twins:
    """Two servers with one schema. What the first one executes in a visit is applied at the second one."""

    def __init__(self, schema: str) -> None:
        self._folder = scratch()
        self.engine = Mariadb(self._folder, schema)
        self.here, self.there = (self.engine.open(n, 2, lambda _: None) for n in range(2))
        self._log = EmbeddedLog(self._folder / "log.db")
        self._log.reissue(0)

    def execute(self, *statements: Any) -> bytes:
        def run(db: Any) -> bytes:
            for each in statements:
                sql, parameters = (each, ()) if isinstance(each, str) else each
                db.execute(sql, parameters)
            return b"1"

        with self.here.visit() as visit:
            reply, update = visit.execute(Call("", "t", {}, run))
            name = f"request {visit.seq}"
            entry = Entry(visit.seq + 1, 1, 0, 0, name, "t", b"{}", reply, update)
            visit.commit(chained(visit.chain, [entry]) if update else [], self._log)
        self.there.apply(self._log.read(self.there.applied()), 1)
        return update

    def same(self, query: str) -> list[tuple[Any, ...]]:
        here, there = (self.engine.rows(n, query) for n in range(2))
        assert here == there
        return here

    def write(self, sql: str, *parameters: Any) -> Any:
        call = Call(sql + repr(parameters), "t", {}, lambda db: msgspec.json.encode(list(db.execute(sql, parameters))))
        return self.here.write(call)

    def close(self) -> None:
        for each in (self.here, self.there, self._log, self.engine):
            each.close()
        shutil.rmtree(self._folder, ignore_errors=True)


@pytest.fixture
def twins() -> Iterator[Callable[[str], Twins]]:
    made: list[Twins] = []

    def make(schema: str) -> Twins:
        made.append(Twins(schema))
        return made[-1]

    yield make
    for each in made:
        each.close()


TYPES = """
CREATE TABLE t (
  id BIGINT UNSIGNED PRIMARY KEY, a TINYINT, b DECIMAL(40,10), c FLOAT, d DOUBLE, e BIT(9), f ENUM('x','y'), g SET('x','y'),
  h CHAR(5), i VARCHAR(20) CHARACTER SET latin1, j TEXT, k BINARY(4), l VARBINARY(9), m LONGBLOB, n DATE, o TIME(6),
  p DATETIME(6), q TIMESTAMP(6) NULL, r YEAR, s JSON, u UUID, v INET6, w BOOLEAN, x INT GENERATED ALWAYS AS (a + 1) STORED,
  y VARCHAR(36) DEFAULT (UUID()), z TIMESTAMP(6) DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6))
"""
VALUES = {
    "id": 2**64 - 1, "a": -128, "b": "123456789012345678901234567890.0123456789", "c": 0.1, "d": 0.1 + 0.2, "e": 257,
    "f": "y", "g": "x,y", "h": "a  ", "i": "é'\\ ", "j": "\U0001f600\0,N", "k": b"a\0", "l": b"\xff\x00'",
    "m": bytes(range(256)), "n": "2019-12-31", "o": "-838:59:58.999999", "p": "2019-12-31 23:59:59.123456",
    "q": "2019-12-31 23:59:59.999999", "r": 2019, "s": '{"a": [1, null]}', "u": "6a2f41a3-c54c-4ce8-92d2-0324e1c32e22",
    "v": "::1", "w": True,
}  # fmt: skip


def test_every_type_reaches_other_servers_unchanged(twins: Callable[[str], Twins]) -> None:
    made = twins(TYPES)
    names, marks = ", ".join(VALUES), ", ".join("?" * len(VALUES))
    made.execute((f"INSERT INTO t ({names}) VALUES ({marks})", list(VALUES.values())), "INSERT INTO t (id) VALUES (0)")
    exact = "SELECT HEX(j), c + 0e0, e + 0, t.* FROM t ORDER BY id"
    assert len(made.same(exact)) == 2
    made.execute("UPDATE t SET c = RAND(), d = RAND(), y = UUID(), p = NOW(6), j = CONCAT(j, CONNECTION_ID())")
    made.same(exact)
    made.execute("UPDATE t SET id = 7, f = NULL, m = NULL WHERE id > 0", "UPDATE t SET a = 5, z = z WHERE id = 7")
    assert [row[3] for row in made.same(exact)] == [0, 7]
    made.execute("DELETE FROM t WHERE id = 7")
    assert len(made.same(exact)) == 1


def test_a_time_that_mariadb_sets_by_itself_is_not_set_again(twins: Callable[[str], Twins]) -> None:
    """The column does not change in the same microsecond; on another server it is later."""
    made = twins("CREATE TABLE t (id INT PRIMARY KEY, a INT, z TIMESTAMP NULL ON UPDATE CURRENT_TIMESTAMP)")
    made.execute("INSERT INTO t VALUES (1, 0, '2001-01-01 00:00:00')")
    update = made.execute("UPDATE t SET a = 1, z = z")
    assert b'"z"' not in update
    assert made.same("SELECT YEAR(z) FROM t") == [(2001,)]


TRIGGERS = """
CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(40));
CREATE TABLE noted (n INT AUTO_INCREMENT PRIMARY KEY, id INT);
CREATE TRIGGER before_it BEFORE INSERT ON t FOR EACH ROW SET NEW.b = UUID();
CREATE TRIGGER after_it AFTER INSERT ON t FOR EACH ROW BEGIN INSERT INTO noted (id) VALUES (NEW.id); END;
"""


def test_triggers_act_once(twins: Callable[[str], Twins]) -> None:
    made = twins(TRIGGERS)
    made.execute("INSERT INTO t (id, a) VALUES (4, 1)")
    assert made.same("SELECT n, id FROM noted") == [(2, 4)]
    assert len(made.same("SELECT b FROM t")[0][0]) == 36
    made.there.write(Call("r", "t", {}, lambda db: b"%d" % db.execute("INSERT INTO t (id) VALUES (5)").rowcount))
    assert made.engine.rows(1, "SELECT n % 2, id FROM noted WHERE id = 5") == [(1, 5)]


def test_writes_of_mysql_are_recorded(twins: Callable[[str], Twins]) -> None:
    made = twins("CREATE TABLE t (id INT PRIMARY KEY, a INT UNIQUE, b INT DEFAULT 3)")
    made.execute("INSERT INTO t (id, a) VALUES (1, 1), (2, 2)")
    made.execute("REPLACE INTO t (id, a) VALUES (3, 1)")
    made.execute("INSERT INTO t (id, a) VALUES (9, 2) ON DUPLICATE KEY UPDATE b = b + 1")
    made.execute("INSERT IGNORE INTO t (id, a) VALUES (2, 7), (5, 5)")
    assert made.same("SELECT id, a, b FROM t ORDER BY id") == [(2, 2, 4), (3, 1, 3), (5, 5, 3)]


STATEMENTS = {
    "TRUNCATE t": "TRUNCATE in an operation",
    "CALL p()": "CALL in an operation",
    "# COMMIT\nCOMMIT": "COMMIT in an operation",
    "/*!50000 COMMIT */": "a comment that MariaDB executes",
    "SELECT /*M! 1 */": "a comment that MariaDB executes",
    "LOAD DATA INFILE 'x' INTO TABLE t": "LOAD in an operation",
    "XA RECOVER": "XA in an operation",
    "HANDLER t OPEN": "HANDLER in an operation",
    "CREATE TEMPORARY TABLE x (a INT)": "CREATE in an operation",
    "LOCK TABLES t WRITE": "LOCK in an operation",
    "EXECUTE IMMEDIATE 'COMMIT'": "EXECUTE in an operation",
    "SELECT @x := 1": "a variable",
    "SELECT 1; COMMIT": "COMMIT in an operation",
    "SELECT 'a\\''; COMMIT; SELECT '": "SQL syntax",
    "INSERT IGNORE INTO t VALUES (300, 1)": "must not change values",
    "INSERT INTO t VALUES (300, 1)": "Out of range",
    "INSERT INTO t VALUES (3, '0000-00-00')": "DataError|OperationalError",
}


def test_statements_that_are_not_the_applications(twins: Callable[[str], Twins]) -> None:
    made = twins("CREATE TABLE t (id TINYINT PRIMARY KEY, a DATE)")
    for statement, said in STATEMENTS.items():
        with pytest.raises(OperationError, match=said):
            made.write(statement)
    assert made.same("SELECT * FROM t") == []
    read = Call("q", "q", {}, lambda db: msgspec.json.encode(list(db.execute("SELECT id FROM t FOR UPDATE"))))
    with pytest.raises(OperationError, match="a read-only operation takes no locks"):
        made.here.read(read)
    assert made.write("SELECT ';', '@', `id` FROM t -- COMMIT\n").reply == b"[]"


SCHEMAS = {
    "CREATE TABLE t (a INT)": "table t has no primary key",
    "CREATE TABLE t (a VARCHAR(20), PRIMARY KEY (a(3)))": "only a prefix",
    "CREATE TABLE t (a INT PRIMARY KEY) ENGINE=MyISAM": "the engine MyISAM",
    "CREATE TABLE t (a INT PRIMARY KEY) ENGINE=Aria": "the engine Aria",
    "CREATE TABLE t (a INT PRIMARY KEY, b TEXT, FULLTEXT (b))": "FULLTEXT index b",
    "CREATE TABLE t (a INT PRIMARY KEY, b POINT)": "t.b has the type point",
    "CREATE TABLE t (a INT PRIMARY KEY); CREATE TABLE T (a INT PRIMARY KEY)": "differ in case only",
    "CREATE TABLE t (a INT PRIMARY KEY); CREATE SEQUENCE s": "s is a sequence",
    "CREATE TABLE t (a INT PRIMARY KEY) WITH SYSTEM VERSIONING": "t is a system versioned",
    "CREATE TABLE t (a INT PRIMARY KEY); CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO DELETE FROM t": "the event e",
    "CREATE TABLE t (a INT PRIMARY KEY, b INT, FOREIGN KEY (b) REFERENCES t (a) ON  DELETE CASCADE)": "ON DELETE CASCADE",
    "CREATE TABLE t (a INT PRIMARY KEY, b INT, FOREIGN KEY (b) REFERENCES t (a) ON UPDATE SET NULL)": "ON UPDATE SET NULL",
    "CREATE TABEL t (a INT)": "refuses the schema or the data",
}


def test_what_triggers_or_locks_would_miss_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    engine = Mariadb(tmp_path, "")
    try:
        for schema, said in SCHEMAS.items():
            with pytest.raises(UsageError, match=said):
                MariadbDatabase(engine.dsn(0), schema=schema)
            assert engine.rows(0, "SHOW TABLES") == []
        MariadbDatabase(engine.dsn(0), schema="CREATE TABLE t (a INT PRIMARY KEY)").close()
    finally:
        engine.close()


def test_a_set_up_that_was_interrupted_is_noticed(tmp_path: Path) -> None:
    engine = Mariadb(tmp_path, "")
    db = connect(engine.dsn(0))
    execute(db, "CREATE TABLE gyro_state (one INT PRIMARY KEY)")
    db.close()
    with pytest.raises(UsageError, match="was interrupted"):
        MariadbDatabase(engine.dsn(0), schema="CREATE TABLE t (a INT PRIMARY KEY)")
    engine.close()


def test_the_user_has_no_rights_but_on_its_database() -> None:
    db = connect(shared_mariadb().dsn)
    try:
        grants = [grant for (grant,) in execute(db, "SHOW GRANTS")]
    finally:
        db.close()
    assert any(grant.startswith("GRANT USAGE ON *.*") for grant in grants)
    assert all(".* TO " in grant and "ON *.*" not in grant for grant in grants if not grant.startswith("GRANT USAGE"))


def test_the_script_for_operators_makes_such_a_user() -> None:
    text = SCRIPT.read_text(encoding="utf-8").replace("gyro_user", "scripted").replace("gyro_database", "scripted_shop")
    server = shared_mariadb()
    db = connect(server.admin, several=True)
    try:
        with db.cursor() as cursor:
            cursor.execute(text)
            while cursor.nextset():
                pass
        dsn = f"mariadb://scripted@/scripted_shop?unix_socket={server.socket}"
        made = MariadbDatabase(dsn, schema="CREATE TABLE t (id INT PRIMARY KEY)")
        assert made.write(Call("r", "t", {}, lambda c: b"%d" % c.execute("INSERT INTO t VALUES (1)").rowcount)).wrote
        made.close()
    finally:
        execute(db, "DROP DATABASE IF EXISTS scripted_shop")
        execute(db, "DROP USER IF EXISTS scripted@localhost")
        db.close()


def test_mysql_is_refused_by_name() -> None:
    """A server that greets like MySQL 8.0. Debian has no package of MySQL."""
    salt = b"a" * 8 + b"\0\xff\xf7\x2d\x02\0\x0f\xc0\x15" + b"\0" * 10 + b"b" * 12 + b"\0mysql_native_password\0"
    greeting = b"\x0a8.0.36\0" + (7).to_bytes(4, "little") + salt
    accepted = b"\0\0\0\x02\0\0\0"
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection, contextlib.suppress(ConnectionResetError):  # the client may hang up with unread packets
                connection.sendall(len(greeting).to_bytes(3, "little") + b"\0" + greeting)
                while packet := connection.recv(4096):
                    number = bytes([packet[3] + 1])
                    connection.sendall(len(accepted).to_bytes(3, "little") + number + accepted)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        with pytest.raises(UsageError, match=r"mariadb://127.0.0.1:\d+/shop is MySQL 8.0.36, expected MariaDB"):
            MariadbDatabase(f"mariadb://u:secret@127.0.0.1:{listening.getsockname()[1]}/shop")
        thread.join(timeout=PATIENCE)


def test_passwords_of_a_dsn_are_secrets() -> None:
    assert set(passwords(["mariadb://u:open%20sesame@h/d", "mariadb://u@h/d"])) == {"open%20sesame", "open sesame"}


@pytest.mark.parametrize(
    "dsn", ["host=a dbname=b", "mariadb://a", "mariadb://u@h:x/d", "mariadb://u@h/d?nonsense=1", "postgresql://u@h/d"]
)
def test_a_dsn_that_is_not_understood(dsn: str) -> None:
    with pytest.raises(UsageError, match="the DSN is not") as error:
        address(dsn)
    assert "mariadb://USER" in str(error.value.hint)


@pytest.mark.parametrize("logged", [False, True])
def test_after_a_crash_of_mariadb_local_operations_wait_for_the_log(logged: bool) -> None:
    """The visit has read a row that a local operation changes. The crash has released its lock on this row."""
    folder = scratch()
    server = MariadbServer(folder, options=("--innodb-log-file-size=16M", "--innodb-buffer-pool-size=32M"))
    server.start()
    log = EmbeddedLog(folder / "log.db")
    log.reissue(0)

    class Stop(BaseException):
        pass

    def step(name: str) -> None:
        if name == ("appended" if logged else "prepared"):
            server.stop(signal.SIGKILL)
            raise Stop

    try:
        schema = "CREATE TABLE t (id INT PRIMARY KEY, a INT); INSERT INTO t VALUES (1, 1), (2, 2)"
        database = MariadbDatabase(server.dsn, schema=schema, step=step)
        visited = Call("v", "t", {}, lambda db: _moved(db, 1, 2))
        with pytest.raises(Stop):
            _visited(database, visited, log)
        server.start()
        done = threading.Event()
        found: list[Any] = []

        def local() -> None:
            while not found:
                try:
                    found.append(database.write(Call("l", "t", {}, lambda db: _moved(db, 2, 1))))
                except DatabaseGoneError:
                    continue
            done.set()

        thread = threading.Thread(target=local, daemon=True)
        thread.start()
        assert not done.wait(1.0)
        until(lambda: _settled(database, log), "MariaDB answers")
        assert done.wait(PATIENCE)
        thread.join(PATIENCE)
        assert found[0].seq == int(logged)
        rows = database.read(
            Call("r", "t", {}, lambda db: msgspec.json.encode(list(db.execute("SELECT a FROM t ORDER BY id"))))
        )
        assert msgspec.json.decode(rows.reply) == ([[1], [1]] if logged else [[2], [2]])  # never swapped
        database.close()
    finally:
        log.close()
        server.close()
        shutil.rmtree(folder, ignore_errors=True)


def _visited(database: MariadbDatabase, call: Call, log: EmbeddedLog) -> None:
    with database.visit() as visit:
        reply, update = visit.execute(call)
        visit.commit(chained("", [Entry(1, 1, 0, 0, "v", "t", b"{}", reply, update)]), log)


def _settled(database: MariadbDatabase, log: EmbeddedLog) -> bool:
    try:
        database.settle(log)
    except DatabaseGoneError:  # a connection from before the crash
        return False
    return True


def _moved(db: Any, source: int, target: int) -> bytes:
    """Copy the value of a row to another one."""
    (value,) = db.execute("SELECT a FROM t WHERE id = ?", (source,)).fetchone()
    db.execute("UPDATE t SET a = ? WHERE id = ?", (value, target))
    return b"1"


# -- the analysis ------------------------------------------------------------------------------------------------------


def classes(tmp_path: Path, text: str) -> dict[str, tuple[str, list[str]]]:
    file = tmp_path / "a.sql"
    file.write_text(text, encoding="utf-8")
    return {o.name: (o.classed, o.keys) for o in analyze(file, dialect="mysql").operations}


KEYED = """
CREATE TABLE t (k VARCHAR(20){}, v INT, PRIMARY KEY (k)) ENGINE=InnoDB{};
-- transaction: put(k, v)
{}
-- transaction: find(k)
SELECT v FROM t WHERE k = :k;
"""
PUTS = [
    "INSERT INTO t (k, v) VALUES (:k, :v)",
    "REPLACE INTO t (k, v) VALUES (:k, :v)",
    "REPLACE t VALUES (:k, :v)",
    "INSERT IGNORE INTO t (k, v) VALUES (:k, :v)",
    "INSERT INTO t SET k = :k, v = :v",
    "INSERT INTO t (k, v) VALUES (:k, :v) ON DUPLICATE KEY UPDATE v = VALUES(v)",
]


@pytest.mark.parametrize("put", PUTS)
def test_writes_of_mysql_are_understood(put: str, tmp_path: Path) -> None:
    for column, table, keyed in (
        (" COLLATE utf8mb4_bin", "", True),
        ("", " COLLATE=utf8mb4_nopad_bin", True),
        ("", "", False),
        (" CHARACTER SET latin1", " COLLATE=utf8mb4_bin", False),
        (" COLLATE utf8mb4_general_ci", " COLLATE=utf8mb4_bin", False),
    ):
        found = classes(tmp_path, KEYED.format(column, table, f"{put};"))
        classed, keys = found["put"]
        assert (classed, "k" in keys) == (("local", True) if keyed else ("global", False)), (put, column, table)


def test_a_unique_prefix_is_no_key(tmp_path: Path) -> None:
    """Two different values may violate it, at two servers."""
    text = KEYED.format(" COLLATE utf8mb4_bin", "", "INSERT INTO t (k, v) VALUES (:k, :v);")
    for more in (", UNIQUE KEY u (k(3))", ""):
        found = classes(tmp_path, text.replace(", PRIMARY KEY (k)", f", PRIMARY KEY (k){more}"))
        assert found["put"][0] == ("global" if more else "local")
    found = classes(
        tmp_path, text.replace(";\n-- transaction: put", ";\nCREATE UNIQUE INDEX u ON t (k(3));\n-- transaction: put")
    )
    assert found["put"][0] == "global"


def test_a_mariadb_that_does_not_answer_leaves_no_socket_open(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(pymysql.OperationalError, match="cannot connect to MariaDB at") as error:
        connect(f"mariadb://gyro@/gyro?unix_socket={tmp_path / 'none'}")
    assert len(list(Path("/proc/self/fd").iterdir())) == before, error  # while the exception has its frames

"""Real servers whose configuration changes while clients work, and the judges of such a run."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from plait.bench.gyro.faults import board
from plait.bench.gyro.faults.history import Event, Replay, find_cycle
from plait.bench.gyro.faults.workload import observe
from plait.cli.gyro_change import change
from plait.gyro.belt.client import CallError
from plait.gyro.belt.configuration.follower import reserve
from plait.gyro.belt.ids import Ids
from plait.gyro.belt.replication.rebuild import GAP
from plait.gyro.belt.routing import server_of
from plait.gyro.belt.server import open_log
from plait.gyro.belt.settings import Settings, load_settings
from plait.gyro.belt.supervisor import JOINING, answers, free_ports
from plait.kernel.errors import UsageError
from tests.gyro.belt.processes import Processes, started
from tests.gyro.belt.runs import GENERATED, work
from tests.support.patience import PATIENCE, until

Stage = tuple[int, list[int], int]
"""The seq at which a configuration began, its members, and how many ids of each were left out."""
TABLES = {
    "SELECT id, items FROM boards ORDER BY id": None,
    "SELECT id, score FROM people ORDER BY id": None,
    "SELECT id, ticket, label FROM prizes ORDER BY id": None,
    "SELECT owner, items FROM notes ORDER BY owner": 0,
    "SELECT id, colour FROM people ORDER BY id": 0,
    "SELECT owner, id, label FROM tickets ORDER BY id": 0,
    "SELECT bidder, id, item, amount FROM bids ORDER BY id": 0,
    "SELECT item, id, bidder, amount FROM bids ORDER BY id": 0,
}
"""Queries, and the column with the key whose server has the row; None if every server has it."""


class StagedReplay(Replay):
    """One database. When a configuration begins, ids go on above all ids, with other remainders."""

    def stage(self, members: Sequence[int], gap: int) -> None:
        keys = self._ids[0]._tables if isinstance(self._ids, list) else next(iter(self._ids.values()))._tables
        count = len(members)
        for table, (key, _) in keys.items():
            ((used,),) = self.db.execute(f"SELECT coalesce(max(last), 0) FROM gyro_ids WHERE name = '{table}'")
            ((greatest,),) = self.db.execute(f"SELECT coalesce(max({key}), 0) FROM {table}")
            base = (max(used, greatest) // count + gap) * count
            self.db.execute(f"DELETE FROM gyro_ids WHERE name = '{table}'")
            for rank in range(count):
                self.db.execute(f"INSERT INTO gyro_ids VALUES ('{table}', {rank}, {base + rank})")
        self._ids = {server: Ids(keys, rank, count) for rank, server in enumerate(members)}  # type: ignore[assignment]

    def stages(self, events: Sequence[Event], stages: Sequence[Stage]) -> list[tuple[Event, Any]]:
        """The events whose reply differs."""
        wrong = []
        ends = [seq for seq, *_ in stages[1:]] + [1 << 62]
        for number, ((_, members, gap), end) in enumerate(zip(stages, ends, strict=True)):
            if number:
                self.stage(members, gap)
            begin = stages[number][0]
            mine = [e for e in events if begin <= e.seq < end]
            wrong += self.run(mine)
        return wrong


def judge(events: Sequence[Event], stages: Sequence[Stage], rows: Any) -> list[str]:
    """What is wrong with a run."""
    faults: list[str] = []
    cycle = find_cycle([observe(e) for e in events])
    if cycle is not None:
        faults.append(f"cycle: {cycle}")
    replay = StagedReplay(board, len(stages[0][1]))
    faults += [f"reply: {event}: one database says {reply!r}" for event, reply in replay.stages(events, stages)[:3]]
    members = stages[-1][1]
    for rank, server in enumerate(members):
        for query, whose in TABLES.items():

            def kept(found: list[Any], whose: int | None = whose, rank: int = rank) -> list[Any]:
                return [r for r in found if whose is None or server_of(r[whose], len(members)) == rank]

            expected, found = kept(replay.rows(query)), kept(rows(server, query))
            if found != expected:
                faults.append(f"state of server {server}: {query}: {found} instead of {expected}")
    return faults


class Changing(Processes):
    """Processes whose configuration changes. Clients know only what the servers tell them."""

    def call(self, operation: str, arguments: dict[str, Any], *, request: str, here: int = 0) -> Any:
        try:
            found = self.client.send(operation, arguments, request=request)
        except CallError as error:
            if error.raised != "ValueError":
                raise
            return error
        wrote = found.wrote or found.repeated
        kind = "global" if wrote and found.position == 0 else "local" if wrote else "read"
        event = Event(operation, arguments, kind, found.server, found.reply, found.seq, found.position, wrote)  # type: ignore[arg-type]
        with self._lock:
            self.events.append(event)
        return found.reply

    @property
    def folder(self) -> Path:
        return Path(self.settings.folder)

    def change(self, **options: Any) -> None:
        """`plait gyro change`."""
        change(str(self.folder), **options)

    def add(self, **options: Any) -> str:
        """Add a server; its URL."""
        scheme = self.settings.urls[0].partition(":")[0]
        url = f"{scheme}://127.0.0.1:{free_ports(1)[0]}"
        if self.settings.log != "embedded":
            self._join(url)
        self.change(add=(url,), **options)
        return url

    def _join(self, url: str) -> None:
        """Start a server, as `plait gyro serve --join` does on another machine."""
        log = open_log(self.settings)
        number = reserve(log, max(self.now().numbers), url)
        log.close()
        (self.folder / JOINING).write_bytes(msgspec.json.encode({number: url}))
        until(lambda: answers(url, tls=self.supervisor._tls), "the server answers")

    def now(self) -> Settings:
        """The settings as the servers have written them."""
        return load_settings(self.folder / "settings.json")

    def stages(self) -> list[Stage]:
        """All configurations, from the log."""
        log = open_log(self.settings)
        found: list[Stage] = [(0, self.settings.numbers, 0)]
        for entry in log.read(0, 1_000_000):
            if entry.operation == "gyro:prepare":
                proposal = msgspec.json.decode(entry.arguments)
            elif entry.operation == "gyro:activate":
                gap = GAP if proposal["gone"] else 0
                found.append((entry.seq, [m["server"] for m in proposal["members"]], gap))
        log.close()
        return found

    def settle(self) -> None:
        self.client.refresh()
        super().settle()

    def wrong(self) -> list[str]:
        """What is wrong with the run."""
        self.settle()
        return judge(self.events, self.stages(), self.engine.rows)


@contextmanager
def changing(servers: int = 2, **options: Any) -> Iterator[Changing]:
    """Servers of the board application, whose configuration can be changed. They have a copy of its source."""
    with TemporaryDirectory() as folder:
        application = Path(shutil.copy(str(board.__file__), folder))
        given = {"replicate": "acknowledged", "application": str(application), "spare": 2} | options
        with started(Changing, servers, **given) as running:
            yield running


@contextmanager
def meanwhile(work: Any) -> Iterator[None]:
    """Run a function in a thread."""
    failures: list[BaseException] = []

    def attempt() -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    yield
    thread.join(timeout=PATIENCE)
    assert not thread.is_alive(), "clients wait for ever"
    if failures:
        raise failures[0]


NEW = '''

def frame(db: Any, person: Any, style: Any) -> Any:
    """Local: a new column."""
    db.execute("UPDATE people SET style = ? WHERE id = ?", (style, person))
    return [list(r) for r in db.execute("SELECT colour, style FROM people WHERE id = ?", (person,)).fetchall()]


def like(db: Any, person: Any) -> Any:
    """Global: a new table."""
    db.execute("UPDATE likes SET number = 99 WHERE id = ?", (person,))


def likes(db: Any) -> Any:
    """A new table."""
    return [list(r) for r in db.execute("SELECT id, number FROM likes ORDER BY id").fetchall()]
'''
MIGRATION = """
ALTER TABLE people ADD COLUMN style VARCHAR(9) NOT NULL DEFAULT 'plain';
CREATE TABLE likes (id INTEGER PRIMARY KEY, number INTEGER NOT NULL);
INSERT INTO likes (id, number) SELECT id, score FROM people;
"""


def new_program(running: Changing, folder: Path) -> dict[str, Any]:
    """The options of a change to an application with more operations, a new column and a new table."""
    new, migration, ddl = folder / "board2.py", folder / "migration.sql", folder / "board2.sql"
    new.write_text(Path(str(board.__file__)).read_text(encoding="utf-8") + NEW, encoding="utf-8")
    migration.write_text(MIGRATION, encoding="utf-8")
    schema = running.settings.schema.partition("INSERT INTO boards")[0].replace(
        "score INTEGER NOT NULL DEFAULT 0);",
        "score INTEGER NOT NULL DEFAULT 0, style VARCHAR(9) NOT NULL DEFAULT 'plain');",
    )
    ddl.write_text(f"{schema}CREATE TABLE likes (id INTEGER PRIMARY KEY, number INTEGER NOT NULL);", encoding="utf-8")
    return {"application": str(new), "schema": ddl, "migration": migration}


STEPS = ["prepare?", "prepare", "closed", "ready?", "ready", "activate?", "activate", "switched"]
"""Where a server may die in a change: before and after each append, and after its part of the switch."""
MIGRATING = [*STEPS[2:], "migrate?", "migrate"]
"""Where it may die in a change of the tables. The last two are in a migration that cannot be rolled back (MariaDB)."""


def load(running: Changing, seed: int, operations: int = 40) -> None:
    without = GENERATED if running.settings.db != "sqlite" else set()  # one database generates other ids
    work(running, seed, operations=operations, think=0.05, without=without)


def killed(step: str, server: int, *, seed: int, migrating: bool = False, **options: Any) -> None:
    """Kill a server at a step of a change. The change ends, one way or the other."""
    with changing(2, **options) as running, TemporaryDirectory() as folder:
        program = new_program(running, Path(folder))
        with meanwhile(lambda: load(running, seed)):
            running.doom(server, f"{step}@{server}")
            time.sleep(1.0)
            for _ in range(3):
                try:
                    if migrating:
                        running.change(**program)
                    else:
                        running.add()
                    break
                except UsageError:  # the proposal has died with its server, or the server does not answer yet
                    time.sleep(1.0)
        assert running.deaths >= 1
        assert running.wrong() == []

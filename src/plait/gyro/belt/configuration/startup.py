"""What a server executes when it starts: the configuration that its database has, and the version of its cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import ModuleType
from typing import Any

import msgspec

from plait.gyro.belt.configuration.configuration import Configuration, State
from plait.gyro.belt.configuration.follower import newest
from plait.gyro.belt.configuration.request import followed
from plait.gyro.belt.databases.changeable import Changeable
from plait.gyro.belt.databases.database import Database
from plait.gyro.belt.logs.log import Log
from plait.gyro.belt.replication.rebuild import initial, rebuild
from plait.gyro.belt.settings import Settings
from plait.gyro.belt.supervisor import answers
from plait.gyro.belt.version import Version, content, lineage, settle
from plait.kernel.errors import UsageError

logger = logging.getLogger("plait.gyro")


def stored(database: Database) -> Configuration | None:
    """The configuration that a database has stored; None if there was no change yet."""
    text = database.configuration() if isinstance(database, Changeable) else None
    return None if text is None else msgspec.json.decode(text, type=State).configuration


def mend(number: int, settings: Settings, log: Log, open_database: Callable[..., Any]) -> Settings:
    """Build the database of a server again from the log, after an interrupted migration; return its settings."""
    logger.warning("server %d: a migration was interrupted; its database is built again from the log", number)
    now = newest(log)
    if now is not None and now.number > settings.configuration:
        settings = followed(settings, now)
        settings.save()
    again = msgspec.structs.replace(settings, schema=initial(log))
    database = open_database(number, again, lambda _: None, log.largest)
    try:
        rebuild(number, database, log)
    finally:
        database.close()
    return settings


def agree(
    number: int, settings: Settings, module: ModuleType, database: Database, log: Log, now: Configuration | None
) -> Version:
    """Check that this server executes the version of its cluster; with `upgrade`, write a new one."""

    def running() -> list[int]:
        return [n for n in settings.numbers if n != number and answers(settings.url(n))]

    try:
        count = settings.first or settings.servers
        mine = content(settings.analyzed, count, settings.routes, module, database)
        begun = None
        if now is not None and now.program is not None:
            part, sources = now.program.analyzed, now.program.sources
            begun = lineage(now.lineage, part, count, now.program.routes, sources, now.tables)
        return settle(mine, log, upgrade=settings.upgrade, running=running, begun=begun)
    except UsageError as error:
        raise UsageError(f"server {number}: {error.message}", hint=error.hint) from None

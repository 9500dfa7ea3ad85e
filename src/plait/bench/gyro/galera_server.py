"""A server whose DBMS is a node of Galera: `python -m plait.bench.gyro.galera_server SETTINGS NUMBER`."""

from __future__ import annotations

import sys
from typing import Any

from plait.bench.gyro.mariadb import GaleraDatabase
from plait.gyro.belt.server import main
from plait.gyro.belt.service.watch import exit_with
from plait.gyro.belt.settings import Settings


def open_node(number: int, settings: Settings, step: Any) -> GaleraDatabase:
    """Connect to this server's node of Galera."""
    return GaleraDatabase(settings.dsns[number], server=number)


if __name__ == "__main__":
    exit_with(main(sys.argv[1:], open_database=open_node))

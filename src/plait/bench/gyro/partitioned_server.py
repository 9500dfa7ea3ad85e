"""A server of a partitioned database: `python -m plait.bench.gyro.partitioned_server SETTINGS NUMBER`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

from plait.bench.gyro.partitioned import PartitionedDatabase
from plait.gyro.belt.server import main
from plait.gyro.belt.service.watch import exit_with
from plait.gyro.belt.settings import Settings

PARTITIONS = "partitions.json"
"""The file in the folder of the settings with the tables that are partitioned, and their columns."""


def open_partitioned(number: int, settings: Settings, step: Any) -> PartitionedDatabase:
    """Connect to the PostgreSQL of all servers."""
    partitions = msgspec.json.decode((Path(settings.folder) / PARTITIONS).read_bytes(), type=dict[str, str])
    return PartitionedDatabase(settings.dsns, partitions, server=number)


if __name__ == "__main__":
    exit_with(main(sys.argv[1:], open_database=open_partitioned))

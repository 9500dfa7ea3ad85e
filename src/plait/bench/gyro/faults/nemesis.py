"""The faults of a run. Each one strikes a server, the network or the log, and is healed after some time."""

from __future__ import annotations

import contextlib
import os
import random
import signal
from collections.abc import Callable
from typing import NamedTuple

from plait.bench.gyro.faults.cluster import FaultyCluster, can_jump, can_log, can_mount
from plait.gyro.belt.faults import CRASH

STEPS = ("received", "applied", "execute", "executed", "captured", "appended", "committed", "replied", "pass", "passed")
JUMPS = (-86_400, -3_600, -10, 10, 3_601, 86_400)
"""Seconds by which a clock is wrong. Servers forget replies after an hour."""

Heal = Callable[[], None]


class Fault(NamedTuple):
    """A kind of fault: what it does, how long it lasts at most, and why it may be impossible here."""

    about: str
    strike: Callable[[FaultyCluster, random.Random], Heal]
    lasts: float = 1.5
    impossible: Callable[[], str | None] = lambda: None
    etcd: bool = False
    """It needs etcd as the log."""


def _nothing() -> None:
    pass


def _kill(cluster: FaultyCluster, chance: random.Random) -> Heal:
    cluster.signal(chance.randrange(cluster.servers), signal.SIGKILL)
    return _nothing


def _crash(cluster: FaultyCluster, chance: random.Random) -> Heal:
    """The server dies at a step of the protocol; the supervisor starts it without this fault afterwards."""
    server = chance.randrange(cluster.servers)
    cluster.crash(server, os.environ | {CRASH: f"{chance.choice(STEPS)}:{chance.randrange(1, 4)}"})
    return _nothing


def _pause(cluster: FaultyCluster, chance: random.Random) -> Heal:
    server = chance.randrange(cluster.servers)
    cluster.signal(server, signal.SIGSTOP)
    return lambda: cluster.signal(server, signal.SIGCONT)


def _disk(cluster: FaultyCluster, chance: random.Random) -> Heal:
    filler = cluster.filler(chance.randrange(cluster.servers))
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    return lambda: filler.unlink(missing_ok=True)


def _partition(cluster: FaultyCluster, chance: random.Random) -> Heal:
    """Cut all links of some servers, or only those in one direction."""
    alone = chance.sample(range(cluster.servers), chance.randrange(1, cluster.servers))
    links = [name for server in alone for name in cluster.links(server)]
    if chance.random() < 0.3:
        links = [name for name in links if int(name.partition(">")[0]) in alone]
    cluster.network.cut(links)
    return lambda: cluster.network.heal(links)


def _clock(cluster: FaultyCluster, chance: random.Random) -> Heal:
    server = chance.randrange(cluster.servers)
    cluster.supervisor.set_clock(server, chance.choice(JUMPS))
    return lambda: cluster.supervisor.set_clock(server, 0)


def _log(cluster: FaultyCluster, chance: random.Random) -> Heal:
    assert cluster.etcd is not None
    etcd, member = cluster.etcd, chance.randrange(len(cluster.etcd.ports))
    etcd.kill(member)
    return lambda: etcd.start(member)


FAULTS = {
    "kill": Fault("a server is killed", _kill),
    "crash": Fault("a server dies at a step of the protocol", _crash),
    "pause": Fault("a server is suspended, longer than the timeout for a lost token", _pause, 3.0),
    "disk": Fault("the disk of a server is full", _disk, 1.0, can_mount),
    "partition": Fault("links between servers, and to the log, are cut", _partition, 3.0),
    "clock": Fault("the clock of a server jumps, up to a day", _clock, 1.0, can_jump),
    "log": Fault("a member of the log is killed", _log, 1.0, can_log, etcd=True),
}

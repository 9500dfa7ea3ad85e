"""Small instances of the zoo with their twins and variants, besides those of `agreement.py`: all states in moments."""

from __future__ import annotations

from collections.abc import Callable

from plait.model.system import System
from plait.protocols.abd import abd
from plait.protocols.atomic_register import atomic_register
from plait.protocols.ben_or import ben_or
from plait.protocols.chain import chain
from plait.protocols.commit_rounds import commit_rounds
from plait.protocols.conveyor_belt import conveyor_belt
from plait.protocols.dijkstra_scholten import dijkstra_scholten
from plait.protocols.distal_paxos import distal_paxos
from plait.protocols.echo_multicast import echo_multicast
from plait.protocols.gossip import gossip
from plait.protocols.hirschberg_sinclair import hirschberg_sinclair
from plait.protocols.lamport_mutex import lamport_mutex
from plait.protocols.one_third_rule import one_third_rule
from plait.protocols.online_change import online_change
from plait.protocols.pbft import pbft
from plait.protocols.raft import raft
from plait.protocols.raft_membership import raft_membership
from plait.protocols.shipped_updates import shipped_updates
from plait.protocols.split_log import split_log
from plait.protocols.three_phase_commit import three_phase_commit
from plait.protocols.two_phase_commit import two_phase_commit
from plait.protocols.uniform_voting import uniform_voting
from plait.protocols.view_change import view_change
from plait.protocols.viewstamped import viewstamped
from plait.protocols.zab import zab

INSTANCES: dict[str, Callable[[], System]] = {
    "abd, at once": lambda: abd(clients=1, servers=3, quorum=True),
    "atomic_register": lambda: atomic_register(base_objects=2),
    "atomic_register, one by one": lambda: atomic_register(base_objects=2, quorum=False),
    "atomic_register, two readers": lambda: atomic_register(base_objects=2, readers=2, reads=1),
    "ben_or": lambda: ben_or(inputs=(0, 1), f=0, phases=2),
    "ben_or, impatient": lambda: ben_or(inputs=(0, 0), f=0, faulty="impatient"),
    "chain": lambda: chain(writers=1, reads=1),
    "chain, faulty": lambda: chain(servers=2, writers=1, crash=False, faulty="any"),
    "commit_rounds": lambda: commit_rounds(participants=2, transactions=1),
    "commit_rounds, doubt": lambda: commit_rounds(participants=2, transactions=1, faulty="doubt"),
    "conveyor_belt": lambda: conveyor_belt(servers=2),
    "conveyor_belt, crashes": lambda: conveyor_belt(servers=2, carts=0, crashes=1),
    "conveyor_belt, early": lambda: conveyor_belt(carts=0, faulty="early"),
    "dijkstra_scholten": lambda: dijkstra_scholten(nodes=3, sends=1),
    "dijkstra_scholten, fickle": lambda: dijkstra_scholten(nodes=2, sends=2, faulty="fickle"),
    "dijkstra_scholten, hasty": lambda: dijkstra_scholten(nodes=2, sends=2, faulty="hasty"),
    "distal_paxos": lambda: distal_paxos(ballots=1),
    "distal_paxos, printed": lambda: distal_paxos(replicas=2, ballots=3, faulty="printed"),
    "echo_multicast": lambda: echo_multicast(2, 1, 0, 1),
    "echo_multicast, beyond": lambda: echo_multicast(2, 0, 2, 1, attack="both"),
    "echo_multicast, gullible": lambda: echo_multicast(2, 0, 0, 1, quorum=False, faulty="gullible"),
    "gossip": lambda: gossip(nodes=3, topology="line"),
    "gossip, overwrite": lambda: gossip(nodes=2, faulty="overwrite"),
    "gossip, tie": lambda: gossip(nodes=2, faulty="tie"),
    "hirschberg_sinclair": lambda: hirschberg_sinclair(nodes=3),
    "hirschberg_sinclair, meek": lambda: hirschberg_sinclair(nodes=2, faulty="meek"),
    "hirschberg_sinclair, reversed": lambda: hirschberg_sinclair(nodes=3, faulty="reversed"),
    "lamport_mutex": lambda: lamport_mutex(processes=2, entries=2),
    "lamport_mutex, one by one": lambda: lamport_mutex(processes=2, entries=None, quorum=False, clock_limit=3),
    "lamport_mutex, unordered": lambda: lamport_mutex(processes=2, network="unordered"),
    "one_third_rule": lambda: one_third_rule(),
    "online_change": lambda: online_change(before=2, after=1, adds=0, aborts=0, crashes=0),
    "online_change, adds": lambda: online_change(orders=0, aborts=0, crashes=0),
    "online_change, crashes": lambda: online_change(adds=0, orders=0, aborts=0),
    "online_change, hasty": lambda: online_change(before=2, after=1, orders=0, aborts=0, crashes=0, faulty="hasty"),
    "pbft": lambda: pbft(byzantine="both", requests=1),
    "pbft, one by one": lambda: pbft(byzantine="both", requests=1, quorum=False),
    "pbft, two traitors": lambda: pbft(byzantine="both"),
    "raft": lambda: raft(servers=2, entries=2, elections="any"),
    "raft, faulty": lambda: raft(elections="1+2", faulty="vote"),
    "raft, one by one": lambda: raft(elections="any", quorum=False),
    "raft_membership": lambda: raft_membership(servers=3, joiners=1),
    "raft_membership, early": lambda: raft_membership(servers=2, joiners=1, faulty="early"),
    "shipped_updates": lambda: shipped_updates(looks=0, backups=0),
    "shipped_updates, crashes": lambda: shipped_updates(looks=0, orders=0, crashes=1, backups=0),
    "shipped_updates, late": lambda: shipped_updates(looks=0, backups=0, faulty="late"),
    "split_log": lambda: split_log(carts=0, timeouts=0),
    "split_log, first": lambda: split_log(faulty="first", orders=0),
    "three_phase_commit": lambda: three_phase_commit(crashes=1),
    "three_phase_commit, local": lambda: three_phase_commit(crashes=1, faulty="local"),
    "three_phase_commit, one by one": lambda: three_phase_commit(participants=1, quorum=False),
    "three_phase_commit, slow": lambda: three_phase_commit(crashes=0, faulty="slow"),
    "three_phase_commit, slow, crashes": lambda: three_phase_commit(participants=1, crashes=1, faulty="slow"),
    "two_phase_commit, at once": lambda: two_phase_commit(quorum=True),
    "uniform_voting": lambda: uniform_voting(inputs=(0, 1), phases=2),
    "uniform_voting, split": lambda: uniform_voting(inputs=(0, 1), faulty="split"),
    "view_change": lambda: view_change(replicas=2),
    "view_change, quorum": lambda: view_change(replicas=2, faulty="quorum"),
    "viewstamped": lambda: viewstamped(clients=1, replicas=5, repeats=0),
    "viewstamped, faulty": lambda: viewstamped(replicas=2, repeats=0, faulty="order"),
    "viewstamped, one by one": lambda: viewstamped(clients=1, quorum=False),
    "zab": lambda: zab(leaders=1),
    "zab, divided": lambda: zab(leaders=3, proposals=0, restless=0, specification="live"),
    "zab, one by one": lambda: zab(followers=2, restless=1, quorum=False),
}

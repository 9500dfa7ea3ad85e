"""`System(symmetric=[Role])`: what may be declared, what is refused, and what the zoo declares."""

from __future__ import annotations

from typing import Any

import pytest

from plait import Message, ModelError, Process, System
from plait.cli.main import main
from plait.protocols.mcpaxos import mcpaxos
from plait.protocols.paxos import Acceptor, AnyLearner, paxos
from plait.protocols.two_phase_commit import ResourceManager, two_phase_commit


class Server(Process): ...


class Backup(Server): ...


class Client(Process): ...


def declare(*roles: Any, **more: Any) -> System:
    return System([Server(), Server(), Backup(), Client()], symmetric=roles, **more)


def test_roles_are_kept() -> None:
    assert declare().symmetric == []
    assert declare(Server).symmetric == [Server]
    assert System([Server(), Backup()], symmetric=[Server]).symmetric == [Server], "one role, two classes"


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ([Client], r"only Client0 has this role\nhint: leave Client out: symmetry needs at least two"),
        ([Backup], "only Backup0"),
        ([Acceptor], r"symmetric=\[Acceptor\], but no process has this role"),
        ([Message], "is not a Process class"),
        ([Server()], "is not a Process class\nhint: give classes"),
        (["Server"], "'Server' in symmetric is not a Process class"),
        ([Server, Server], "Server0 has two symmetric roles, Server and Server"),
        ([Process, Server], "Server0 has two symmetric roles, Process and Server"),
    ],
)
def test_what_is_refused(roles: list[Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        declare(*roles)


def test_rings() -> None:
    system = System([Server(), Server(), Client(), Client()], symmetric=[Client], rotations=[Server])
    assert (system.symmetric, system.rotations) == ([Client], [Server])
    with pytest.raises(ModelError, match="Server0 has two symmetric roles, Server and Server"):
        System([Server(), Server()], symmetric=[Server], rotations=[Server])
    with pytest.raises(
        ModelError, match=r"rotations=\[Server\], but .* not all of one class: Server, Backup\nhint: leave"
    ):
        System([Server(), Server(), Backup()], rotations=[Server])
    with pytest.raises(ModelError, match=r"rotations=\[Client\], but only Client0 has this role"):
        System([Client(), Server()], rotations=[Client])
    with pytest.raises(ModelError, match=r"is not a list\nhint: write rotations=\[Acceptor\]"):
        System([Server(), Server()], rotations=Server)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=r"rotations=\[Server\], but Server has spare slots"):
        System([Server(), Server()], rotations=[Server], spare={Server: 1})


def test_spare_slots_are_refused() -> None:
    for spare in ({Server: 1}, {Backup: 1}):
        with pytest.raises(ModelError, match="has spare slots"):
            declare(Server, spare=spare)
    assert declare(Server, spare={Client: 1, Backup: 0}).symmetric == [Server]


def test_not_a_list() -> None:
    with pytest.raises(ModelError, match=r"is not a list\nhint: write symmetric=\[Acceptor\]"):
        System([Server(), Server()], symmetric=Server)  # type: ignore[arg-type]


def test_the_zoo() -> None:
    assert two_phase_commit().symmetric == [ResourceManager]
    assert two_phase_commit(resource_managers=1).symmetric == []
    assert paxos().symmetric == [Acceptor]
    assert paxos(learners=2).symmetric == [AnyLearner, Acceptor]
    assert paxos(faulty="acceptor").symmetric == [Acceptor], "the faulty one is only alike with itself"
    assert paxos(faulty="learner").symmetric == [], "it takes the vote of the first acceptor"
    assert paxos(faulty="learner", quorum=False).symmetric == [Acceptor]
    assert [role.__name__ for role in mcpaxos().symmetric] == ["Acceptor"]


@pytest.mark.slow
def test_show(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "paxos", "-p", "learners=2"]) == 0
    assert "symmetric: AnyLearner, Acceptor" in capsys.readouterr().out.splitlines()
    assert main(["show", "ping_pong"]) == 0
    assert "symmetric" not in capsys.readouterr().out

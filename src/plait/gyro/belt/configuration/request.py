"""What an operator asks for, and whether it is possible now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from plait.gyro.belt.configuration.configuration import ZERO, Configuration, Member, Program, Proposal, State
from plait.gyro.belt.logs.log import Log
from plait.gyro.belt.settings import Settings
from plait.kernel.errors import UsageError

_ROOM = 4096
"""More than the other parts of an entry of the log need, in bytes."""


class ChangeRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Servers to add and to remove, and another program."""

    add: list[Member] = []
    remove: list[int] = []
    dead: bool = False
    """The servers to remove are dead: go on with what the log has of them."""
    program: Program | None = None
    migration: str = ""
    patience: float = 60.0


def propose(
    request: ChangeRequest, state: State, settings: Settings, log: Log, answers: Callable[[str], bool]
) -> Proposal:
    """The proposal for a request. UsageError: it is not possible now."""
    now = state.configuration
    if state.change is not None:
        raise UsageError(
            f"a change to configuration {state.change.proposal.number} is under way",
            hint="wait until it is over, or abort it: plait gyro change --abort",
        )
    for number in request.remove:
        if number not in now.numbers:
            raise UsageError(
                f"server {number} is not a member", hint=f"members: {', '.join(map(str, now.numbers))}"
            )  # fmt: skip
    members = [Member(n, settings.url(n)) for n in now.numbers]
    for new in request.add:
        if new.server <= now.used or any(new.url == m.url for m in members):
            raise UsageError(
                f"{new.url} is or was server {new.server} already", hint="give the URL of a server that has just joined"
            )
        members.append(new)
    members = [m for m in members if m.server not in request.remove]
    if not members:
        raise UsageError("a cluster needs a server", hint="remove fewer servers, or add another one first")
    if request.program is not None:
        check_kind(settings, bool(request.program.recording))
    if not request.add and not request.remove and request.program is None:
        raise UsageError("nothing changes", hint="give servers to add or to remove, or another application")
    made = Proposal(now.number + 1, members, request.program, request.migration, {}, request.patience)
    if (size := len(msgspec.json.encode(made)) + _ROOM) > log.largest:
        raise UsageError(
            f"the change has {size:,} bytes, and the log accepts {log.largest:,}",
            hint="make the schema, the recording or the migration smaller; or use another log",
        )
    gone = _fenced(request, settings, log, answers) if request.dead else {}
    for number in now.numbers:
        if number not in gone and not answers(settings.url(number)):
            raise UsageError(
                f"server {number} does not answer at {settings.url(number)}",
                hint=f"start it; or, if it is lost: plait gyro change --remove {number} --dead",
            )
    return msgspec.structs.replace(made, gone=gone)


def check_kind(settings: Settings, recorded: bool) -> None:
    """Refuse to replace a web application by functions, or the other way round."""
    if recorded != bool(settings.recording) and settings.folder:
        raise UsageError(
            "the servers run a web application" if settings.recording else "the servers run functions",
            hint="give its recording, too: plait gyro change --recording FILE" if settings.recording
            else "leave out --recording",
        )  # fmt: skip


def _fenced(
    request: ChangeRequest, settings: Settings, log: Log, answers: Callable[[str], bool]
) -> dict[int, int]:  # fmt: skip
    """From now on, the log refuses everything that the dead servers send. So the ends of their streams are final."""
    for number in request.remove:
        if answers(settings.url(number)):
            raise UsageError(f"server {number} answers, so it is not dead", hint="stop it, or remove it without --dead")
    for number in request.remove:
        while log.replace(number, log.fence().incarnations.get(number, 0)) is None:
            continue
    return {number: log.stream(number).last for number in request.remove}


def first_configuration(settings: Settings, log: Log) -> Configuration:
    """Configuration 0: the servers with which the cluster was started."""
    count = len(settings.urls)
    mine = Configuration(
        0, [Member(n, url) for n, url in zip(settings.numbers, settings.urls, strict=True)], count - 1, count
    )
    known = log.agreed(ZERO) if settings.configuration else log.agree(ZERO, msgspec.json.encode(mine).decode())
    return mine if known is None else msgspec.json.decode(known, type=Configuration)


def followed(settings: Settings, configuration: Configuration) -> Settings:
    """The settings of a server in a configuration."""
    changed: dict[str, Any] = {
        "urls": [m.url for m in configuration.members],
        "members": configuration.numbers,
        "configuration": configuration.number,
        "first": configuration.first,
    }
    if (program := configuration.program) is not None:
        changed |= {
            "application": program.application,
            "routes": program.routes,
            "analyzed": program.analyzed,
            "recording": program.recording,
            "upgrade": False,
        }
    return msgspec.structs.replace(settings, **changed)


def shown(state: State) -> dict[str, Any]:
    """The configuration and the change, for `plait gyro status`."""
    change = None
    if (pending := state.change) is not None:
        change = {
            "number": pending.proposal.number,
            "members": [msgspec.structs.asdict(m) for m in pending.proposal.members],
            "ready": sorted(pending.ready),
            "missing": pending.missing(state.configuration),
            "application": pending.proposal.program.application if pending.proposal.program is not None else None,
        }
    return {
        "configuration": state.configuration.number,
        "members": state.configuration.numbers,
        "used": state.configuration.used,
        "change": change,
        "aborted": state.aborted or None,
        "aborts": state.aborts,
    }

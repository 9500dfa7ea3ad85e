"""The paths with which an operator changes the configuration: POST /belt/change and /belt/abort, with the secret."""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Any

import msgspec

from plait.gyro.belt.configuration.request import ChangeRequest, propose
from plait.gyro.belt.logs.log import LogGoneError
from plait.gyro.belt.supervisor import answers
from plait.gyro.belt.transport import SECRET
from plait.kernel.errors import UsageError
from plait.kernel.extras import needs

if TYPE_CHECKING:
    from plait.gyro.belt.server import Server

with needs("serve"):
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route


def routes(server: Server) -> list[Route]:
    """The paths of a server."""
    return [
        Route("/belt/change", functools.partial(_change, server), methods=["POST"]),
        Route("/belt/abort", functools.partial(_abort, server), methods=["POST"]),
    ]


async def _change(server: Server, request: Request) -> Response:
    """Append a proposal to the log at the next visit of the token."""
    if not server.trusted(request):
        return _json({"error": "a change needs the secret", "hint": f"send it in the header {SECRET}"}, 403)
    changes = server.node.changes
    try:
        asked = msgspec.json.decode(await request.body(), type=ChangeRequest)
        if changes is None:
            raise UsageError(
                "rows of a server are at no other one: local updates are not replicated, or the DBMS cannot merge rows",
                hint="replication must be on since the first start: `plait gyro serve --replicate acknowledged`",
            )
        reached = functools.partial(answers, tls=server.tls)
        work = functools.partial(propose, asked, changes.state, server.settings, server.node.log, reached)
        proposal = await asyncio.get_running_loop().run_in_executor(None, work)
    except msgspec.DecodeError as error:
        return _json({"error": f"the body is not a change: {error}"}, 400)
    except UsageError as error:
        return _json({"error": error.message, "hint": error.hint}, 409)
    except LogGoneError as error:
        return _json({"error": f"the log does not answer: {error}", "hint": "try again"}, 503)
    changes.propose(proposal)
    return _json({"number": proposal.number, "members": proposal.members}, 202)


async def _abort(server: Server, request: Request) -> Response:
    """Abort the change that is under way."""
    if not server.trusted(request):
        return _json({"error": "a change needs the secret", "hint": f"send it in the header {SECRET}"}, 403)
    changes = server.node.changes
    if changes is None or changes.pending is None:
        return _json({"error": "no change is under way", "hint": "see plait gyro status"}, 409)
    changes.abort("an operator has aborted it")
    return _json({"number": changes.state.configuration.number}, 202)


def _json(value: Any, status: int) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")

"""`plait explore`: serves a page to walk through the states of a model, and opens it."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

from cyclopts import Parameter

from plait.cli.options import Flag, Parameters, Target, split
from plait.cli.output import emit, note


def explore(
    target: Target,
    /,
    *,
    parameters: Parameters = (),
    host: str = "127.0.0.1",
    port: Annotated[int, Parameter(name="--port")] = 0,
    no_open: Flag = False,
) -> int:
    """Walk the states of a model in a browser (the help text is in `plait.cli.main`).

    Parameters
    ----------
    target
        A name of the zoo, a Python file (models/token.py or models/token.py:ring), or package.module:function.
    parameters
        Set a parameter of the model, as in -p acceptors=3. plait show TARGET lists the parameters.
    host
        Serve at this address of the machine. Others can reach the page then, if they know the secret.
    port
        Serve at this port. 0 stands for any free port.
    no_open
        Do not open the page in a browser.
    """
    from plait.kernel.errors import UsageError
    from plait.kernel.extras import require

    if not 0 <= port <= 65_535:
        raise UsageError(f"--port {port} is not a port", hint="give a number from 0 to 65535")
    require("explore")
    from plait.explore.server import serve
    from plait.model.loading.loader import load

    given = split(parameters)
    load(target, given)  # a wrong target or parameter is an error of the command; later ones appear in the page

    def ready(address: str) -> None:
        emit(f"explore: {address}")
        note("Ctrl-C ends")
        if not no_open:
            import webbrowser

            if not webbrowser.open(address):
                note("no browser was found: open the address yourself")

    with suppress(KeyboardInterrupt):  # this is how the command ends
        serve(target, given, host=host, port=port, ready=ready)
    return 0

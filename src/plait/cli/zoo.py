"""`plait zoo`: lists the protocols of the zoo."""

from __future__ import annotations

from plait.cli.options import Flag
from plait.cli.output import emit, emit_json
from plait.model.loading import loader


def zoo(*, json: Flag = False) -> int:
    """List the protocols that come with Plait. Each name is a target of `plait check` and `plait show`.

    Parameters
    ----------
    json
        Print one JSON object: for each name, the first line of its documentation.
    """
    protocols = loader.zoo()
    if json:
        emit_json(protocols)
        return 0
    longest = max(map(len, protocols), default=0)
    emit("\n".join(f"{name:<{longest}}  {doc}" for name, doc in protocols.items()))
    return 0

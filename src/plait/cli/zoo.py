"""`plait zoo`: the protocols that ship with Plait."""

from __future__ import annotations

from plait.cli.options import Flag
from plait.cli.output import emit
from plait.model import loader


def zoo(*, json: Flag = False) -> int:
    """List the protocols that ship with Plait; each is a target of `plait check` and `plait show`.

    Parameters
    ----------
    json
        Print one JSON object: documentation by name.
    """
    protocols = loader.zoo()
    if json:
        import msgspec

        emit(msgspec.json.encode(protocols).decode())
        return 0
    longest = max(map(len, protocols), default=0)
    emit("\n".join(f"{name:<{longest}}  {doc}" for name, doc in protocols.items()))
    return 0

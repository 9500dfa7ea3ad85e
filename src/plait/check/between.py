"""The search for states between rounds, on the engine of a protocol. `plait.rounds.between` says when it is used."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plait._native import RoundsReport, search_rounds
from plait.check.options import Options
from plait.check.progress import Progress
from plait.check.runner import Runner
from plait.model.message import Message

__all__ = ["RoundsReport", "searched_between"]


def searched_between(
    runner: Runner,
    options: Options,
    place_of: Callable[[Message], int],
    end: int,
    exchanges: Sequence[tuple[Sequence[int], Sequence[tuple[bytes, Sequence[int]]]]],
    *,
    collect: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> RoundsReport:
    """Search up to the round `end`; `place_of` says the round of a message.

    `exchanges` are ways to exchange names of created processes: by process its new place, by role the new index of each
    index. With `collect`, the report has the local states of each state.
    """
    codec = runner.tabulation.model_codec
    return search_rounds(
        runner.engine,
        options,
        lambda sender, content: place_of(codec.message(sender, content)),
        end,
        exchanges=exchanges,
        collect=collect,
        progress=(lambda counters: progress(Progress.of("bfs", counters))) if progress else None,
    )
